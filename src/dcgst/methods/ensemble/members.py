"""Members of an ensemble, each fitted alone to all labels and to all but one fold of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dcgst.engine.random import Purpose, Streams, derive
from dcgst.graph import UNKNOWN
from dcgst.methods.core.base import Method
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result
from dcgst.methods.core.row_models import NetworkRows, RowModel
from dcgst.methods.core.storage import storable
from dcgst.numerics.graph_tensors import NodeTensors

SMALLEST = 1e-6
"""Probabilities of members are at least this, so that no member alone excludes a class."""


@dataclass(frozen=True)
class MemberFit:
    """One member of R fits.

    Attributes:
        log_proba: ``(R, n, C)`` of the fit to all labels.
        left_out: ``(R, n, C)``, for labeled nodes the prediction of the fit that did not have their
            label; equal to ``log_proba`` for the other nodes.
        results: of the fits to all labels.
    """

    log_proba: Tensor
    left_out: Tensor
    results: Sequence[Result]

    def model(self) -> RowModel | None:
        """The fitted member as a model of other nodes, if it has one.

        A method that needs the labels of the graph that it predicts has none.
        """
        models = [result.predictors for result in self.results]
        if all(models):
            return StackedRows([own for (own,) in models])
        networks = [result.models for result in self.results]
        if all(networks):
            return StackedRows([NetworkRows(own) for (own,) in networks])
        return None


def label_folds(labels: Tensor, folds: int, seeds: tuple[int, ...]) -> Tensor:
    """``(R, n)`` number of the fold in which a label is left out, -1 for never.

    Each class is divided evenly. The only label of a class is never left out: no method could
    predict a class without labels.

    Args:
        labels: ``(R, n)`` class codes, -1 elsewhere.
        folds: number of folds.
        seeds: one per fit.
    """
    seeds = tuple(derive(seed, Purpose.FOLDS) for seed in seeds)
    random = Streams(seeds).uniform(labels.shape[1]).to(labels.device)
    number = torch.full_like(labels, UNKNOWN)
    for fit, own in enumerate(labels):
        nodes = (own >= 0).nonzero().squeeze(1)
        by_class = nodes[random[fit, nodes].argsort()]
        by_class = by_class[own[by_class].argsort(stable=True)]
        number[fit, by_class] = torch.arange(len(nodes), device=labels.device) % folds
        counts = torch.bincount(own[nodes])
        number[fit, nodes[counts[own[nodes]] == 1]] = UNKNOWN
    return number


def fit_member(name: str, member: Method, problem: Problem, folds: Tensor) -> MemberFit:
    """Fit one member to the training labels of each fit, and to all but each fold of them.

    All of these fits are computed together.

    Args:
        name: of the member in this ensemble.
        member: the method.
        problem: the input, without validation labels.
        folds: ``(R, n)`` of :func:`label_folds`.
    """
    count = int(folds.max()) + 1
    labels = [problem.train_labels]
    labels += [problem.train_labels.masked_fill(folds == k, UNKNOWN) for k in range(count)]
    together = replace(
        problem,
        graph=problem.graph.scaled_by(member.scale_features),
        train_labels=torch.cat(labels),
        val_labels=problem.val_labels.repeat(count + 1, 1),
        pool=problem.pool.repeat(count + 1, 1),
        seeds=problem.seeds * (count + 1),
        checkpoint=problem.checkpoint.within(name),
    )
    results = member.solve(together)
    proba = torch.stack([torch.as_tensor(result.proba) for result in results])
    log_proba = proba.to(problem.device).clamp_min(SMALLEST).log()
    full, *parts = torch.split(log_proba, problem.num_fits)
    left_out = full
    for number, part in enumerate(parts):
        left_out = torch.where((folds == number)[..., None], part, left_out)
    return MemberFit(full, left_out, results[: problem.num_fits])


@storable
@dataclass(frozen=True, eq=False)
class StackedRows:
    """The models of R fits, one object each."""

    fits: Sequence[RowModel]

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return torch.cat([model(nodes) for model in self.fits])

    def select(self, fit: int) -> StackedRows:
        """The model of one fit."""
        return StackedRows([self.fits[fit]])
