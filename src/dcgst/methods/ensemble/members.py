"""Members of an ensemble, each fitted alone to all labels and to all but one fold of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dcgst.features.graph_tensors import NodeRows
from dcgst.graph import UNKNOWN
from dcgst.methods.base import Method
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result
from dcgst.methods.row_models import NetworkRows, RowModel
from dcgst.methods.storage import storable, stored
from dcgst.train.executors import Shared, current_cluster
from dcgst.train.random import Purpose, Streams, derive

STUDENT = "student"
"""Name of the member that is trained on pseudo-labels of the others."""

SMALLEST = 1e-6
"""Probabilities of members are at least this, so that no member alone excludes a class."""

MAX_LEFT_OUT = 500
"""Folds are left out until so many labels have been; the others are not needed."""


@dataclass(frozen=True)
class Task:
    """What all members are fitted to.

    Attributes:
        problem: the input of R fits, without validation labels.
        folds: ``(R, n)`` of :func:`label_folds`.
        rows: ``(m,)`` nodes whose labels are evidence about the members.
    """

    problem: Problem
    folds: Tensor
    rows: Tensor


@storable
@dataclass(frozen=True)
class MemberFit:
    """One member of R fits.

    Attributes:
        log_proba: ``(R, n, C)`` of the fit to all labels.
        left_out: ``(R, m, C)`` of the rows of the task, by fits that did not have their label.
        model: predicts nodes of other graphs; None if only the method itself can.
        row_model: predicts the nodes of the same graph that are not in a sample of it.
    """

    log_proba: Tensor
    left_out: Tensor
    model: RowModel | None
    row_model: RowModel | None


def label_folds(
    labels: Tensor, folds: int, seeds: Sequence[int], always: Tensor | None = None
) -> Tensor:
    """``(R, n)`` number of the fold in which a label is left out, -1 for never.

    Each class is divided evenly. The only label of a class is never left out: no method could
    predict a class without labels. If there are many labels, some folds are enough.

    Args:
        labels: ``(R, n)`` class codes, -1 elsewhere.
        folds: number of folds.
        seeds: one per fit.
        always: ``(R, n)`` bool, labels that are left out in any case, because predictions of their
            nodes must not use them; default none.
    """
    always = torch.zeros_like(labels, dtype=torch.bool) if always is None else always
    random = Streams([derive(seed, Purpose.FOLDS) for seed in seeds]).uniform(labels.shape[1])
    random = random.to(labels.device)
    number = torch.full_like(labels, UNKNOWN)
    for fit, own in enumerate(labels):
        nodes = (own >= 0).nonzero().squeeze(1)
        by_class = nodes[random[fit, nodes].argsort()]
        by_class = by_class[own[by_class].argsort(stable=True)]
        number[fit, by_class] = torch.arange(len(nodes), device=labels.device) % folds
        counts = torch.bincount(own[nodes])
        number[fit, nodes[(counts[own[nodes]] == 1) & ~always[fit, nodes]]] = UNKNOWN
    total = [(number <= last).sum(1) - (number < 0).sum(1) for last in range(folds)]
    needed = 1 + (torch.stack(total) < MAX_LEFT_OUT).sum(0).clamp_max(folds - 1)[:, None]  # (R, 1)
    number = torch.where(always, number % needed, number)
    return number.masked_fill(number >= needed, UNKNOWN)


def fit_members(members: Mapping[str, Method], task: Task) -> dict[str, MemberFit]:
    """Fit all members by name; on a cluster, at the same time.

    Members that propagate labels are fitted here: what is propagated over the whole graph is
    divided into blocks of columns instead.
    """
    cluster = current_cluster()
    if cluster is None:
        return {name: fit_member(name, own, task) for name, own in members.items()}
    shared = cluster.share(replace(task, problem=replace(task.problem, callbacks=())))
    running: dict[str, Future[MemberFit]] = {
        name: cluster.submit(_fit_shared, name, own, shared)
        for name, own in members.items()
        if not own.propagates_labels
    }
    here = {name: fit_member(name, members[name], task) for name in members if name not in running}
    return {name: running[name].result() if name in running else here[name] for name in members}


def _fit_shared(name: str, member: Method, shared: Shared[Task]) -> MemberFit:
    return fit_member(name, member, shared.get())


def fit_member(name: str, member: Method, task: Task) -> MemberFit:
    """Fit one member to the training labels of each fit, and to all but each fold of them.

    All of these fits are computed together.

    Args:
        name: of the member in this ensemble.
        member: the method.
        task: what it is fitted to.
    """
    problem, folds = task.problem, task.folds
    checkpoint = problem.checkpoint.within(name)
    count = int(folds.max()) + 1
    labels = [problem.train_labels]
    labels += [problem.train_labels.masked_fill(folds == k, UNKNOWN) for k in range(count)]
    together = replace(
        problem,
        graph=problem.graph.scaled_by(member.scale_features),
        train_labels=torch.cat(labels),
        val_labels=problem.val_labels.repeat(count + 1, 1),
        pool=problem.pool.repeat(count + 1, 1),
        seeds=seeds_of(name, member, problem.seeds) * (count + 1),
        checkpoint=checkpoint,
    )

    def fit() -> MemberFit:
        results = member.solve(together)
        proba = torch.stack([torch.as_tensor(result.proba) for result in results])
        log_proba = proba.to(problem.device).clamp_min(SMALLEST).log()
        full, *parts = torch.split(log_proba, problem.num_fits)
        left_out, fold = full[:, task.rows], folds[:, task.rows, None]
        for number, part in enumerate(parts):
            left_out = torch.where(fold == number, part[:, task.rows], left_out)
        model = fitted_model(results[: problem.num_fits])
        return MemberFit(full.clone(), left_out, model, row_model(results, problem.num_fits))

    # What propagated labels predict is in files already, as a function that cannot be stored.
    return fit() if member.propagates_labels else stored(checkpoint, "fit", fit, problem.device)


def fit_student(student: Method, task: Task, labels: Tensor, left_out: Tensor) -> MemberFit:
    """Fit the student once, to training labels and pseudo-labels.

    Args:
        student: the method.
        task: that of the members.
        labels: ``(R, n)`` pseudo-labels, -1 elsewhere.
        left_out: ``(R, m, C)`` of the members that taught it. They stand for those of the student
            at labels that it is trained on; at others, its own predictions are left out.
    """
    problem = task.problem
    taught = replace(problem, train_labels=torch.maximum(problem.train_labels, labels))
    once = replace(task, problem=taught, folds=torch.full_like(task.folds, UNKNOWN))
    fit = fit_member(STUDENT, student, once)
    trained_on = (problem.train_labels[:, task.rows] >= 0)[..., None]
    return replace(fit, left_out=torch.where(trained_on, left_out, fit.left_out))


def seeds_of(name: str, member: Method, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds of one member: those of the fits, unless it has a seed or a number of its own."""
    if member.seed == 0 and name in (member.name, STUDENT):
        return seeds
    own = zlib.crc32(name.encode())
    return tuple(derive(seed, Purpose.MEMBER, member.seed, own) for seed in seeds)


def fitted_model(results: Sequence[Result]) -> RowModel | None:
    """The fitted member as a model of other nodes, if it has one."""
    models = [result.predictors for result in results]
    if all(models):
        return StackedRows([own for (own,) in models])
    networks = [result.models for result in results]
    return StackedRows([NetworkRows(own) for (own,) in networks]) if all(networks) else None


def row_model(results: Sequence[Result], count: int) -> RowModel | None:
    """The model of the first fits for nodes that are not in the sample that was fitted."""
    model = results[0].row_model
    return None if model is None else StackedRows([model.select(fit) for fit in range(count)])


@storable
@dataclass(frozen=True, eq=False)
class StackedRows:
    """The models of R fits, one object each."""

    fits: Sequence[RowModel]

    def __call__(self, nodes: NodeRows) -> Tensor:
        return torch.cat([model(nodes) for model in self.fits])

    def select(self, fit: int) -> StackedRows:
        """The model of one fit."""
        return StackedRows([self.fits[fit]])
