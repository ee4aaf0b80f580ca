"""The stages of a self-training: what was chosen in each, how the shift fell, when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.training import Callback, StageEnd
from dcgst.shift.cmd import cmd

GIVEN, NEVER = 0, -1
"""Stages of a node's label: there from the start, and not at all."""

AUDIT = np.dtype(
    [
        ("replica", np.int16),
        ("stage", np.int16),
        ("node", np.int64),
        ("label", np.int16),
        ("truth", np.int16),
        ("confidence", np.float32),
        ("rank", np.int64),
        ("q", np.float32),
        ("ner", np.float32),
        ("weight", np.float32),
        ("chosen", np.bool_),
    ]
)
"""One row per candidate for a pseudo-label and stage; ``pandas.DataFrame(audit)`` shows it.

``truth`` is for evaluation, -1 where unknown: no method sees it. ``q`` and ``ner`` are nan for
methods that do not know them.
"""


@dataclass(frozen=True)
class Stage:
    """What R runs found in one stage; all tensors ``(R, n)``.

    Attributes:
        predicted: the class that each node is believed to have.
        confidence: its probability.
        candidates: bool, who could be chosen.
        rank: place by confidence among those of the same class, from 0.
        chosen: bool, who was.
        q: what speaks for a candidate beside its confidence, from 0 to 1; None if nothing does.
        ner: neighbourhood entropy reduction, if it is known.
        weight: what a label counts in the next training; None if all count the same.
    """

    predicted: Tensor
    confidence: Tensor
    candidates: Tensor
    rank: Tensor
    chosen: Tensor
    q: Tensor | None = None
    ner: Tensor | None = None
    weight: Tensor | None = None

    def audit(self, run: int, number: int) -> NDArray[np.void]:
        """The candidates of one run as rows of a table, in the order of the nodes."""
        nodes = self.candidates[run].nonzero().squeeze(-1)
        table = np.zeros(len(nodes), dtype=AUDIT)
        table["truth"], table["q"], table["ner"], table["weight"] = -1, np.nan, np.nan, 1
        table["stage"], table["node"] = number, nodes.numpy(force=True)
        table["label"] = self.predicted[run, nodes].numpy(force=True)
        for column in ("confidence", "rank", "chosen", "q", "ner", "weight"):
            values = getattr(self, column)
            if values is not None:
                table[column] = values[run, nodes].numpy(force=True)
        return table


def shift(z: Tensor, labels: Tensor, pool: Tensor, support: float | None = None) -> Tensor:
    """``(R,)`` CMD between labeled and pool nodes in a representation ``(R, n, d)``.

    Zero where the pool is empty: there is nothing to be far from.
    """
    labeled = (labels >= 0).to(z.dtype)
    distance = cmd(z, z, labeled, pool.to(z.dtype), support=support)
    return torch.where(pool.any(1), distance, 0.0)


@dataclass
class Stages:
    """The book that is kept over the stages, run by run.

    Attributes:
        given: ``(R, n)`` labels from the start, -1 elsewhere.
        pool: ``(R, n)`` bool, the nodes without one.
        most: stages after which a run stops; none if there are no pseudo-labels.
        patience: stages without a lower CMD after which it stops before that, as it then does
            when the pool is exhausted. None: neither stops it.
        accumulate: whether pseudo-labels stay once they are chosen.
        support: of the CMD; None for the range of the representation.
        callbacks: told of every stage.
    """

    given: Tensor
    pool: Tensor
    most: int = 0
    patience: int | None = None
    accumulate: bool = False
    support: float | None = None
    callbacks: Sequence[Callback] = ()
    labels: Tensor = field(init=False)  # (R, n) what to train on now
    joined: Tensor = field(init=False)  # (R, n) the stage since when
    active: Tensor = field(init=False)  # (R,) bool
    history: list[list[dict[str, float]]] = field(init=False)
    reasons: list[str] = field(init=False)
    audits: list[list[NDArray[np.void]]] = field(init=False)
    predictions: list[list[NDArray[np.int16]]] = field(init=False)  # the classes believed
    number: int = field(init=False, default=1)  # the stage to come

    def __post_init__(self) -> None:
        runs, device = len(self.given), self.given.device
        self.labels = self.given
        self.joined = torch.where(self.given >= 0, GIVEN, NEVER)
        self.active = torch.ones(runs, dtype=torch.bool, device=device)
        self.history = [[] for _ in range(runs)]
        self.reasons = ["no pseudo-labels"] * runs
        self.audits = [[] for _ in range(runs)]
        self.predictions = [[] for _ in range(runs)]
        self._past = [(self.labels, self.joined)]
        self._lowest = torch.full((runs,), float("inf"), device=device)
        self._waited = torch.zeros(runs, dtype=torch.long, device=device)

    def begin(self, z: Tensor) -> None:
        """Note the shift of the given labels in a representation ``(R, n, d)``."""
        for run, value in enumerate(self._shift(z, self.given).tolist()):
            count = int((self.given[run] >= 0).sum())
            self.history[run].append({"stage": 0, "labeled": count, "cmd": value})

    def propose(self, stage: Stage) -> Tensor:
        """``(R, n)`` the labels after a stage; runs that have stopped keep theirs."""
        kept = self.labels if self.accumulate else self.given
        new = torch.where(stage.chosen & (kept < 0), stage.predicted, kept)
        return torch.where(self.active[:, None], new, self.labels)

    def enter(self, stage: Stage, z: Tensor) -> None:
        """Enter a stage: its labels, the shift in the representation that led to them, the stop."""
        labels = self.propose(stage)
        exhausted = ~((labels < 0) & self.pool).any(1)
        self.take(stage, self._shift(z, self.given), self._shift(z, labels), exhausted)

    def take(self, stage: Stage, cmd_before: Tensor, cmd: Tensor, exhausted: Tensor) -> None:
        """Enter a stage whose shift is known.

        Args:
            stage: what was found.
            cmd_before: ``(R,)`` shift of the given labels alone, in this stage's representation.
            cmd: ``(R,)`` shift of all labels that it leaves.
            exhausted: ``(R,)`` bool, whether the next stage could choose no one new.
        """
        number, active = self.number, self.active.tolist()
        self.labels = self.propose(stage)
        stays = (self.labels >= 0) & (self.joined != NEVER)
        self.joined = torch.where(stays, self.joined, torch.where(self.labels >= 0, number, NEVER))
        self._past.append((self.labels, self.joined))
        before, after = cmd_before.tolist(), cmd.tolist()
        labeled = (self.labels >= 0).sum(1).tolist()
        candidates = stage.candidates.sum(1).tolist()
        for run in range(len(active)):
            if active[run]:
                self.audits[run].append(stage.audit(run, number))
                predicted = stage.predicted[run].to(torch.int16)
                self.predictions[run].append(predicted.numpy(force=True))
                self.history[run].append(
                    {
                        "stage": number,
                        "labeled": labeled[run],
                        "candidates": candidates[run],
                        "cmd_before": before[run],
                        "cmd": after[run],
                    }
                )
        records = [self.history[run][-1] for run in range(len(active)) if active[run]]
        for callback in self.callbacks:
            callback(StageEnd(number, records))
        self.number += 1
        lower = cmd < self._lowest
        self._lowest = torch.where(lower, cmd, self._lowest)
        self._waited = torch.where(lower, 0, self._waited + 1)
        if self.patience is not None:
            waited = f"CMD did not fall for {self.patience} stages"
            self._stop(self._waited >= self.patience, waited)
            self._stop(exhausted, "the pool is exhausted")
        if number >= self.most:
            self._stop(torch.ones_like(exhausted), _done(self.most))

    def return_to(self, numbers: Tensor) -> None:
        """Forget, run by run, what came after the stage of the given number ``(R,)``."""
        for run, number in enumerate(numbers.tolist()):
            if number + 1 < len(self.history[run]):
                self.labels, self.joined = self.labels.clone(), self.joined.clone()
                self.labels[run], self.joined[run] = (past[run] for past in self._past[number])
                tried = len(self.history[run]) - 1
                del self.history[run][number + 1 :]
                del self.audits[run][number:]
                del self.predictions[run][number:]
                self.reasons[run] = f"stage {number} of {tried} did best on validation"

    def _shift(self, z: Tensor, labels: Tensor) -> Tensor:
        return shift(z, labels, self.pool, self.support)

    def _stop(self, which: Tensor, reason: str) -> None:
        for run in (which & self.active).nonzero().squeeze(-1).tolist():
            self.reasons[run] = reason
        self.active = self.active & ~which

    def audit(self, run: int) -> NDArray[np.void]:
        """Every candidate of every stage of one run."""
        return np.concatenate([np.zeros(0, dtype=AUDIT), *self.audits[run]])


def _done(count: int) -> str:
    return "one stage done" if count == 1 else f"all {count} stages done"
