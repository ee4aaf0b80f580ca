"""State of self-training: pseudo-labels, stop rule, and both together with the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.methods.problem import Problem
from dcgst.methods.result import NOT_LABELED, TRAINING_LABEL, Result, Selection, Trace, make_results
from dcgst.nn.backbones import Backbone
from dcgst.shift.cmd import labeled_shift


class PseudoLabels:
    """The labels to train on, and the stage in which each was assigned.

    Args:
        train_labels: ``(R, n)``, -1 elsewhere. They never change.
        accumulate: whether pseudo-labels stay once assigned. Otherwise they are replaced in every
            stage.

    Attributes:
        labels: ``(R, n)`` current labels.
        labeled_stage: ``(R, n)`` since which stage, ``TRAINING_LABEL`` or ``NOT_LABELED``.
    """

    def __init__(self, train_labels: Tensor, accumulate: bool = False) -> None:
        self.train_labels, self.accumulate = train_labels, accumulate
        self.labels = train_labels
        self.labeled_stage = torch.where(train_labels >= 0, TRAINING_LABEL, NOT_LABELED)
        self._stages = [(self.labels, self.labeled_stage)]

    def apply(self, stage: int, selection: Selection, active: Tensor) -> None:
        """Assign the selected nodes their predicted class in all active fits ``(R,)``."""
        kept = self.labels if self.accumulate else self.train_labels
        new = torch.where(selection.selected & (kept < 0), selection.predicted, kept)
        self.labels = torch.where(active[:, None], new, self.labels)
        labeled = self.labels >= 0
        already = labeled & (self.labeled_stage != NOT_LABELED)
        since = torch.where(labeled, stage, NOT_LABELED)
        self.labeled_stage = torch.where(already, self.labeled_stage, since)
        self._stages.append((self.labels, self.labeled_stage))

    def restore(self, fit: int, stage: int) -> None:
        """Set one fit back to its labels after the given stage."""
        self.labels, self.labeled_stage = self.labels.clone(), self.labeled_stage.clone()
        self.labels[fit], self.labeled_stage[fit] = (past[fit] for past in self._stages[stage])


class StopRule:
    """When each fit stops.

    Args:
        problem: the input of R fits.
        max_stages: stages after which a fit stops.
        patience: stop after this many stages in a row in which the shift did not decrease, or when
            there are no further candidates. None: stop after ``max_stages`` only.
        compare_with: the shift did not decrease if it is not below that of the ``previous`` stage,
            or not below the ``lowest`` so far.

    Attributes:
        stage: number of the current stage, from 1.
        active: ``(R,)`` bool, fits that have not stopped.
        reasons: one per fit, set when it stops.
        lowest_stage: ``(R,)`` the stage with the lowest shift, 0 before the first.
    """

    def __init__(
        self,
        problem: Problem,
        max_stages: int,
        patience: int | None = None,
        compare_with: str = "previous",
    ) -> None:
        fits, device = problem.num_fits, problem.device
        self.max_stages, self.patience, self.compare_with = max_stages, patience, compare_with
        self.stage = 1
        self.active = torch.full((fits,), max_stages > 0, device=device)
        self.reasons = ["no pseudo-labels"] * fits
        self._previous = torch.full((fits,), float("inf"), device=device)
        self._lowest = self._previous
        self._waited = torch.zeros(fits, dtype=torch.long, device=device)
        self.lowest_stage = torch.zeros(fits, dtype=torch.long, device=device)

    def update(self, cmd: Tensor, exhausted: Tensor) -> None:
        """Finish the current stage.

        Args:
            cmd: ``(R,)`` shift after the stage.
            exhausted: ``(R,)`` bool, a later stage cannot select more nodes.
        """
        lowest = cmd < self._lowest
        decreased = lowest if self.compare_with == "lowest" else cmd < self._previous
        self.lowest_stage = torch.where(lowest & self.active, self.stage, self.lowest_stage)
        self._lowest, self._previous = torch.where(lowest, cmd, self._lowest), cmd
        self._waited = torch.where(decreased, 0, self._waited + 1)
        if self.patience is not None:
            self._stop(
                self._waited >= self.patience, f"CMD did not decrease for {self.patience} stages"
            )
            self._stop(exhausted, "no further candidates")
        if self.stage >= self.max_stages:
            self._stop(torch.ones_like(exhausted), f"maximum number of stages ({self.max_stages})")
        self.stage += 1

    def _stop(self, which: Tensor, reason: str) -> None:
        for fit in (which & self.active).nonzero().flatten().tolist():
            self.reasons[fit] = reason
        self.active = self.active & ~which


class SelfTraining:
    """R self-training fits: pseudo-labels, stop rule and trace, advanced stage by stage.

    Args:
        problem: the input.
        z: ``(R, n, d)`` the embedding of the first network.
        stop_rule: when each fit stops.
        accumulate: see :class:`PseudoLabels`.
        support: :math:`|b-a|` of the shift, see :func:`~dcgst.shift.cmd.cmd`.
    """

    def __init__(
        self,
        problem: Problem,
        z: Tensor,
        stop_rule: StopRule,
        accumulate: bool = False,
        support: float | None = None,
    ) -> None:
        self.problem, self.stop_rule, self.support = problem, stop_rule, support
        self.pseudo_labels = PseudoLabels(problem.train_labels, accumulate)
        self.trace = Trace(problem, z, support)

    @property
    def labels(self) -> Tensor:
        """``(R, n)`` the labels to train on."""
        return self.pseudo_labels.labels

    @property
    def stage(self) -> int:
        """Number of the current stage, from 1."""
        return self.stop_rule.stage

    @property
    def active(self) -> Tensor:
        """``(R,)`` bool, fits that have not stopped."""
        return self.stop_rule.active

    def finish_stage(
        self, selection: Selection, z: Tensor, exhausted: Tensor | None = None
    ) -> Tensor:
        """Apply the selected pseudo-labels, record the stage, and update the stop rule.

        Args:
            selection: candidates and selected nodes.
            z: ``(R, n, d)`` the embedding that the selection is based on.
            exhausted: ``(R,)`` bool, a later stage cannot select more nodes. Default: every pool
                node has a label.

        Returns:
            ``(R,)`` the shift of the labels after the stage.
        """
        active = self.active
        self.pseudo_labels.apply(self.stage, selection, active)
        pool = self.problem.pool
        before = labeled_shift(z, self.problem.train_labels >= 0, pool, self.support)
        after = labeled_shift(z, self.labels >= 0, pool, self.support)
        self.trace.record(self.stage, selection, self.labels, before, after, active)
        if exhausted is None:
            exhausted = ~((self.labels < 0) & pool).any(1)
        self.stop_rule.update(after, exhausted)
        return after

    def restore_lowest_shift(self) -> None:
        """Set the labels of each fit back to those after the stage with the lowest shift."""
        for fit, stage in enumerate(self.stop_rule.lowest_stage.tolist()):
            self.pseudo_labels.restore(fit, stage)

    def restore(self, stages: Tensor) -> None:
        """Set each fit back to the given stage ``(R,)``; later stages are discarded."""
        for fit, stage in enumerate(stages.tolist()):
            last = len(self.trace.history[fit]) - 1
            if stage < last:
                self.pseudo_labels.restore(fit, stage)
                self.trace.discard_after(fit, stage)
                reason = f"stage {stage} of {last} had the best validation accuracy"
                self.stop_rule.reasons[fit] = reason

    def results(
        self,
        proba: Tensor,
        model: Backbone,
        edge_probabilities: Sequence[NDArray[np.void]] | None = None,
    ) -> list[Result]:
        """One result per fit.

        Args:
            proba: ``(R, n, C)``.
            model: the final network.
            edge_probabilities: one table per fit.
        """
        self.trace.stop_reasons = self.stop_rule.reasons
        stage = self.pseudo_labels.labeled_stage
        return make_results(self.problem, proba, stage, self.trace, model, edge_probabilities)
