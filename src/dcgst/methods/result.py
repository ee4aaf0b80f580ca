"""The output of a method: results, the history of their stages, and candidates."""

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
from dcgst.features.graph_features import Learned
from dcgst.features.matrix import row_ranges
from dcgst.graph.references import ByReference
from dcgst.memory import forget
from dcgst.methods.problem import Problem
from dcgst.methods.row_models import RowModel
from dcgst.methods.storage import storable
from dcgst.nn.backbones import Backbone
from dcgst.shift.cmd import labeled_shift
from dcgst.train.training import StageEnd

TRAINING_LABEL, NOT_LABELED = 0, -1
"""Values of ``labeled_stage`` for a training label, and for a node without any label."""

CANDIDATE = np.dtype(
    [
        ("replica", np.int16),
        ("stage", np.int16),
        ("node", np.int64),
        ("label", np.int16),
        ("truth", np.int16),
        ("confidence", np.float32),
        ("rank", np.int64),
        ("selection_score", np.float32),
        ("ner", np.float32),
        ("weight", np.float32),
        ("selected", np.bool_),
    ]
)
"""One row per replica, stage and candidate for a pseudo-label; see ``pandas.DataFrame``.

``rank`` is the rank by confidence among the pool nodes of the same predicted class, from 1.

``truth`` is for evaluation, -1 where unknown: no method sees it. ``selection_score`` and ``ner``
are nan for methods that do not compute them.
"""

EDGE_PROBABILITIES = np.dtype(
    [
        ("replica", np.int16),
        ("source", np.int64),
        ("target", np.int64),
        ("present", np.bool_),
        ("probability", np.float32),
    ]
)
"""One row per node pair that may change: whether it is an edge, and its predicted probability.

Pairs are unordered: the smaller number comes first.
"""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Candidates and selected nodes of one stage in R fits; all tensors ``(R, n)``.

    Attributes:
        predicted: predicted class of each node.
        confidence: its probability.
        candidates: bool, nodes that could be selected.
        rank: rank by confidence among the pool nodes of the same predicted class, from 0.
        selected: bool, nodes that get their predicted class as pseudo-label.
        selection_score: score from 0 to 1; None for methods without a score.
        ner: neighborhood entropy reduction, if computed.
        weight: weight of a label in the next training; None if all are equal.
    """

    predicted: Tensor
    confidence: Tensor
    candidates: Tensor
    rank: Tensor
    selected: Tensor
    selection_score: Tensor | None = None
    ner: Tensor | None = None
    weight: Tensor | None = None

    def table(self, fit: int, stage: int) -> NDArray[np.void]:
        """The candidates of one fit as rows of :data:`CANDIDATE`, in node order."""
        nodes = self.candidates[fit].nonzero().flatten()
        table = np.zeros(len(nodes), dtype=CANDIDATE)
        table["truth"], table["weight"] = -1, 1
        table["selection_score"] = table["ner"] = np.nan
        table["stage"], table["node"] = stage, nodes.numpy(force=True)
        columns = {
            "label": self.predicted,
            "confidence": self.confidence,
            "rank": self.rank + 1,
            "selected": self.selected,
            "selection_score": self.selection_score,
            "ner": self.ner,
            "weight": self.weight,
        }
        for name, values in columns.items():
            if values is not None:
                table[name] = values[fit, nodes].numpy(force=True)
        return table


class Trace:
    """History, candidates, predictions and stop reason of each of R fits.

    Args:
        problem: the input.
        z: ``(R, n, d)`` the embedding in which the shift is measured.
        support: :math:`|b-a|` of the shift, see :func:`~dcgst.shift.cmd.cmd`.
    """

    def __init__(self, problem: Problem, z: Tensor, support: float | None = None) -> None:
        self.problem = problem
        labeled = problem.train_labels >= 0
        cmd = labeled_shift(z, labeled, problem.pool, support)
        self.history: list[list[dict[str, float]]] = [
            [{"stage": 0, "labeled": count, "cmd": value}]
            for count, value in zip(labeled.sum(1).tolist(), cmd.tolist(), strict=True)
        ]
        self.stop_reasons = ["no pseudo-labels"] * problem.num_fits
        self.tables: list[list[NDArray[np.void]]] = [[] for _ in problem.seeds]
        self.predictions: list[list[NDArray[np.int16]]] = [[] for _ in problem.seeds]

    def record(
        self,
        stage: int,
        selection: Selection,
        labels: Tensor,
        before: Tensor,
        after: Tensor,
        active: Tensor,
    ) -> None:
        """Record a stage for all active fits, and call the callbacks.

        Args:
            stage: its number, from 1.
            selection: candidates and selected nodes.
            labels: ``(R, n)`` the labels after the stage.
            before: ``(R,)`` shift of the training labels alone, in the embedding of this stage.
            after: ``(R,)`` shift of the labels after the stage.
            active: ``(R,)`` bool.
        """
        columns = {
            "labeled": (labels >= 0).sum(1).tolist(),
            "candidates": selection.candidates.sum(1).tolist(),
            "cmd_before": before.tolist(),
            "cmd": after.tolist(),
        }
        fits = active.nonzero().flatten().tolist()
        for fit in fits:
            record = {name: values[fit] for name, values in columns.items()}
            self.history[fit].append({"stage": stage, **record})
            self.tables[fit].append(selection.table(fit, stage))
            predicted = selection.predicted[fit].to(torch.int16)
            self.predictions[fit].append(predicted.numpy(force=True))
        for callback in self.problem.callbacks:
            callback(StageEnd(stage, [self.history[fit][-1] for fit in fits]))

    def discard_after(self, fit: int, stage: int) -> None:
        """Remove all stages of a fit after the given one."""
        del self.history[fit][stage + 1 :]
        del self.tables[fit][stage:]
        del self.predictions[fit][stage:]

    def candidates(self, fit: int) -> NDArray[np.void]:
        """Every candidate of every stage of one fit."""
        return np.concatenate([np.zeros(0, dtype=CANDIDATE), *self.tables[fit]])


History = list[dict[str, float]]

LEFT_OUT = "left_out_accuracy"
"""Accuracy on training labels when each is left out, as in cross-validation."""

AGREEMENT = "member_agreement"
"""Mean share of nodes for which two members of an ensemble predict the same class."""


@storable
@dataclass(frozen=True, eq=False)
class Result(ByReference):
    """What a method found in one fit, or in one run, the mean of its replicas.

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
        member_weights: weight of each member of an ensemble; empty for other methods.
        expectation: what is known about the accuracy without a random sample: :data:`LEFT_OUT`
            and :data:`AGREEMENT`, as far as the method computes them.
        models: one fitted :class:`Backbone` per replica; empty if the method has none.
        predictors: one model per replica that predicts the nodes of other graphs; empty if the
            networks or the method itself do.
        learned: what the predictors need of the graph of the fit.
        row_model: predicts the nodes that are not in the sample that the method was fitted to.
        stage_predictions: ``(n,)`` predicted classes of each stage, until the runner has compared
            them with the truth.

    Example:
        >>> from dcgst import EM, load
        >>> result = EM().fit(load("synthetic")).result_
        >>> result.proba.shape, result.labels.shape
        ((1200, 4), (1200,))
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
    member_weights: Mapping[str, float] = field(default_factory=dict)
    expectation: Mapping[str, float] = field(default_factory=dict)
    models: tuple[Backbone, ...] = ()
    predictors: tuple[RowModel, ...] = ()
    learned: Learned | None = None
    row_model: RowModel | None = None
    stage_predictions: tuple[NDArray[np.int16], ...] = ()

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """``(n,)`` class codes: given labels, and the most likely class elsewhere."""
        return np.where(self.given >= 0, self.given, self._likeliest[0])

    @property
    def confidence(self) -> NDArray[np.float32]:
        """``(n,)`` the highest probability."""
        return self._likeliest[1]

    @property
    def margin(self) -> NDArray[np.float32]:
        """``(n,)`` the highest probability minus the second highest."""
        return self._likeliest[2]

    @cached_property
    def _likeliest(self) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """The most likely class, its probability and its margin, computed in blocks of rows."""
        codes = np.empty(len(self.proba), dtype=np.int64)
        confidence, margin = np.empty((2, len(codes)), dtype=np.float32)
        for nodes in row_ranges(len(codes)):
            proba = self.proba[nodes]
            codes[nodes] = proba.argmax(axis=1)
            top = -np.partition(-proba, 1, axis=1)[:, :2]
            confidence[nodes], margin[nodes] = top[:, 0], top[:, 0] - top[:, 1]
        forget(self.proba)
        return codes, confidence, margin

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


def with_predictors(
    results: Sequence[Result], model: RowModel | None, problem: Problem, *, views: bool = True
) -> list[Result]:
    """The same results with a model of R fits that predicts the nodes of other graphs.

    Args:
        results: of R fits.
        model: the model; None changes nothing.
        problem: the input.
        views: whether the model reads views.
    """
    if model is None:
        return list(results)
    source = problem.graph.source
    learned = source.learned if views else Learned(source.propagation)
    results = with_row_model(results, model, problem)
    return [
        dataclasses.replace(result, predictors=(model.select(fit),), learned=learned)
        for fit, result in enumerate(results)
    ]


def with_row_model(results: Sequence[Result], model: RowModel, problem: Problem) -> list[Result]:
    """The same results, with a model of R fits for nodes outside the sample that was fitted."""
    if problem.graph.complete:
        return list(results)
    return [dataclasses.replace(result, row_model=model) for result in results]


def make_results(
    problem: Problem,
    proba: Tensor,
    labeled_stage: Tensor,
    trace: Trace,
    model: Backbone | None = None,
    edge_probabilities: Sequence[NDArray[np.void]] | None = None,
) -> list[Result]:
    """One result per fit; raises if the probabilities are not finite.

    Args:
        problem: the input.
        proba: ``(R, n, C)``.
        labeled_stage: ``(R, n)``.
        trace: history, candidates and stop reasons.
        model: the network with R replicas, if there is one.
        edge_probabilities: one table per fit, if there is an edge predictor.
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
                models=() if model is None else (model.select_replica(fit),),
                stage_predictions=tuple(trace.predictions[fit]),
                **more,
            )
        )
    return results
