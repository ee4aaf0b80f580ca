"""Trace of R fits: history of the stages and table of candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.training import StageEnd
from dcgst.methods.core.problem import Problem
from dcgst.shift.cmd import labeled_shift

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
