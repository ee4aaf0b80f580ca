"""The output of a method: one :class:`Result` per fit; the runner averages replicas."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.row_models import RowModel
from dcgst.methods.core.trace import (
    CANDIDATE,
    EDGE_PROBABILITIES,
    NOT_LABELED,
    TRAINING_LABEL,
    Trace,
)
from dcgst.nn.base import Backbone

History = list[dict[str, float]]

LEFT_OUT = "left_out_accuracy"
"""Accuracy on training labels when each is left out, as in cross-validation."""

AGREEMENT = "expert_agreement"
"""Mean share of nodes for which two experts predict the same class."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a method found in one fit, or in one run after :func:`average`.

    n is the number of nodes, C the number of classes.

    Attributes:
        proba: ``(n, C)`` probabilities, averaged over replicas.
        given: ``(n,)`` class codes of given labels, -1 elsewhere.
        labeled_stage: ``(n,)`` the stage since which a node has had its training label or
            pseudo-label without interruption: 0 for training labels, -1 for nodes without.
        agreement: ``(n,)`` share of replicas that predict the same class.
        history: one record per replica and stage.
        stop_reason: why the training ended.
        candidates: table with one row per replica, stage and candidate (:data:`CANDIDATE`); empty
            if the method has no pseudo-labels.
        edge_probabilities: table of node pairs that an edge predictor may change
            (:data:`EDGE_PROBABILITIES`).
        expert_weights: weight of each expert and student in the prediction; empty if the method
            combines none.
        expectation: what is known about the accuracy without a random sample: :data:`LEFT_OUT`
            and :data:`AGREEMENT`, as far as the method computes them.
        models: one fitted :class:`Backbone` per replica; empty if the method has none.
        row_model: predicts the nodes that are not in the sample that the method was fitted to.
        stage_predictions: ``(n,)`` predicted classes of each stage, until the runner has compared
            them with the truth.
    """

    proba: NDArray[np.float32]
    given: NDArray[np.int64]
    labeled_stage: NDArray[np.int64]
    agreement: NDArray[np.float32]
    history: History
    stop_reason: str
    candidates: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=CANDIDATE))
    edge_probabilities: NDArray[np.void] = field(
        default_factory=lambda: np.zeros(0, dtype=EDGE_PROBABILITIES)
    )
    expert_weights: Mapping[str, float] = field(default_factory=dict)
    expectation: Mapping[str, float] = field(default_factory=dict)
    models: tuple[Backbone, ...] = ()
    row_model: RowModel | None = None
    stage_predictions: tuple[NDArray[np.int16], ...] = ()

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """``(n,)`` class codes: given labels, and the most likely class elsewhere."""
        codes: NDArray[np.int64] = np.where(
            self.given >= 0, self.given, self.proba.argmax(axis=1)
        ).astype(np.int64)
        return codes

    @property
    def cmd_before(self) -> float:
        """Shift of the training labels alone, in the embedding of the last stage."""
        return self.history[-1].get("cmd_before", self.history[0]["cmd"])

    @property
    def cmd_after(self) -> float:
        """Shift of all labels at the end, in the embedding of the last stage."""
        return self.history[-1]["cmd"]

    def with_truth(self, truth: NDArray[np.int64], pool: NDArray[np.bool_]) -> Result:
        """Return a copy with true classes and the accuracy of each stage on the pool.

        Args:
            truth: ``(n,)`` true class codes, -1 where unknown.
            pool: ``(n,)`` bool.
        """
        candidates = self.candidates.copy()
        candidates["truth"] = truth[candidates["node"]]
        known = pool & (truth >= 0)
        history = [dict(record) for record in self.history]
        if known.any():
            for record, predicted in zip(history[1:], self.stage_predictions, strict=True):
                record["accuracy"] = float((predicted[known] == truth[known]).mean())
        return dataclasses.replace(
            self, candidates=candidates, history=history, stage_predictions=()
        )

    def reorder(self, order: NDArray[np.int64]) -> Result:
        """Return the same result with node ``order[i]`` at position ``i``."""
        candidates, edges, position = (
            self.candidates.copy(),
            self.edge_probabilities.copy(),
            np.argsort(order),
        )
        candidates["node"] = position[candidates["node"]]
        candidates = candidates[
            np.lexsort([candidates[key] for key in ("node", "stage", "replica")])
        ]
        ends = np.sort(
            [
                position[self.edge_probabilities["source"]],
                position[self.edge_probabilities["target"]],
            ],
            axis=0,
        )
        edges["source"], edges["target"] = ends
        return dataclasses.replace(
            self,
            candidates=candidates,
            edge_probabilities=edges,
            proba=self.proba[order],
            given=self.given[order],
            labeled_stage=self.labeled_stage[order],
            agreement=self.agreement[order],
        )


def results_without_stages(
    problem: Problem,
    proba: Tensor,
    z: Tensor,
    stop_reasons: Sequence[str],
    model: Backbone | None = None,
) -> list[Result]:
    """Results of a method without pseudo-labels.

    Args:
        problem: the input.
        proba: ``(R, n, C)``.
        z: ``(R, n, d)`` the embedding in which the shift is measured.
        stop_reasons: one per fit.
        model: the network with R replicas, if there is one.
    """
    trace = Trace(problem, z)
    trace.stop_reasons = list(stop_reasons)
    labeled_stage = torch.where(problem.train_labels >= 0, TRAINING_LABEL, NOT_LABELED)
    return make_results(problem, proba, labeled_stage, trace, model)


def make_results(
    problem: Problem,
    proba: Tensor,
    labeled_stage: Tensor,
    trace: Trace,
    model: Backbone | None = None,
    edge_probabilities: Sequence[NDArray[np.void]] | None = None,
    expert_weights: Mapping[str, Tensor] | None = None,
) -> list[Result]:
    """One result per fit; raises if the probabilities are not finite.

    Args:
        problem: the input.
        proba: ``(R, n, C)``.
        labeled_stage: ``(R, n)``.
        trace: history, candidates and stop reasons.
        model: the network with R replicas, if there is one.
        edge_probabilities: one table per fit, if there is an edge predictor.
        expert_weights: ``(R,)`` by name, if there are experts.
    """
    if not bool(proba.isfinite().all()):
        raise InputError("training diverged: probabilities are not finite; try a smaller lr")
    given = torch.maximum(problem.train_labels, problem.val_labels)
    results = []
    for fit in range(problem.num_fits):
        more: dict[str, Any] = (
            {} if edge_probabilities is None else {"edge_probabilities": edge_probabilities[fit]}
        )
        results.append(
            Result(
                proba=proba[fit].numpy(force=True),
                given=given[fit].numpy(force=True),
                labeled_stage=labeled_stage[fit].numpy(force=True),
                agreement=np.ones(proba.shape[1], dtype=np.float32),
                history=[{"replica": 0, **record} for record in trace.history[fit]],
                stop_reason=trace.stop_reasons[fit],
                candidates=trace.candidates(fit),
                expert_weights={k: float(v[fit]) for k, v in (expert_weights or {}).items()},
                models=() if model is None else (model.select_replica(fit),),
                stage_predictions=tuple(trace.predictions[fit]),
                **more,
            )
        )
    return results


def average(replicas: Sequence[Result], folds: NDArray[np.int64] | None = None) -> Result:
    """Combine replicas: mean probabilities, median labeled stages, joined tables.

    Args:
        replicas: results of the same run.
        folds: ``(n,)`` number of the replica whose prediction for a node counts alone, because the
            others know its label; -1 if all count.
    """
    first, *others = replicas
    if not others:
        return first
    proba = np.mean([r.proba for r in replicas], axis=0)
    for number, replica in enumerate(replicas if folds is not None else ()):
        proba[folds == number] = replica.proba[folds == number]
    given = np.max([r.given for r in replicas], axis=0)
    mean = dataclasses.replace(
        first,
        proba=proba,
        given=given,
        labeled_stage=majority_stage(np.stack([r.labeled_stage for r in replicas])),
        history=[{**record, "replica": i} for i, r in enumerate(replicas) for record in r.history],
        stop_reason="; ".join(sorted({r.stop_reason for r in replicas})),
        candidates=np.concatenate([_number(r.candidates, i) for i, r in enumerate(replicas)]),
        edge_probabilities=np.concatenate(
            [_number(r.edge_probabilities, i) for i, r in enumerate(replicas)]
        ),
        expert_weights=_mean_by_name([r.expert_weights for r in replicas]),
        expectation=_mean_by_name([r.expectation for r in replicas]),
        models=tuple(model for r in replicas for model in r.models),
        stage_predictions=(),
    )
    equal = np.stack([(r.labels == mean.labels) | (given >= 0) for r in replicas])
    agreement: NDArray[np.float32] = equal.mean(axis=0, dtype=np.float32)
    return dataclasses.replace(mean, agreement=agreement)


def _mean_by_name(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([own[name] for own in values])) for name in values[0]}


def majority_stage(stages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Combine ``(replicas, n)`` labeled stages.

    If most replicas labeled a node, return the lower median of their stages, else ``NOT_LABELED``.
    """
    labeled = stages != NOT_LABELED
    count = labeled.sum(axis=0)
    by_stage = np.sort(np.where(labeled, stages, np.iinfo(np.int64).max), axis=0)
    middle = np.take_along_axis(by_stage, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    return np.where(count > len(stages) / 2, middle, NOT_LABELED)


def _number(table: NDArray[np.void], replica: int) -> NDArray[np.void]:
    table = table.copy()
    table["replica"] = replica
    return table
