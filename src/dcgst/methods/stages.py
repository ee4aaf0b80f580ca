"""The stages of a self-training: what was chosen in each, how the shift fell, when to stop."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
        ("chosen", np.bool_),
    ]
)
"""One row per candidate for a pseudo-label and stage; ``pandas.DataFrame(audit)`` shows it.

``truth`` is for evaluation, -1 where unknown: no method sees it.
"""


@dataclass(frozen=True)
class Stage:
    """What R runs found in one stage; all tensors ``(R, n)``.

    Attributes:
        predicted: the class that each node is believed to have.
        confidence: its probability.
        candidates: bool, who could be chosen.
        rank: place by confidence among those of the same class, from 0.
        q: the relaxed choice.
        ner: neighbourhood entropy reduction.
        chosen: bool, who was.
    """

    predicted: Tensor
    confidence: Tensor
    candidates: Tensor
    rank: Tensor
    q: Tensor
    ner: Tensor
    chosen: Tensor

    def audit(self, run: int, number: int) -> NDArray[np.void]:
        """The candidates of one run as rows of a table, in the order of the nodes."""
        nodes = self.candidates[run].nonzero().squeeze(-1)
        table = np.zeros(len(nodes), dtype=AUDIT)
        table["truth"] = -1
        table["stage"], table["node"] = number, nodes.numpy(force=True)
        table["label"] = self.predicted[run, nodes].numpy(force=True)
        for column in ("confidence", "rank", "q", "ner", "chosen"):
            table[column] = getattr(self, column)[run, nodes].numpy(force=True)
        return table


@dataclass
class Stages:
    """The book that is kept over the stages, run by run.

    Attributes:
        given: ``(R, n)`` labels from the start, -1 elsewhere.
        patience: stages without a lower CMD after which a run stops.
        most: stages after which it stops anyway.
    """

    given: Tensor
    patience: int
    most: int
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
        self.reasons = [""] * runs
        self.audits = [[] for _ in range(runs)]
        self.predictions = [[] for _ in range(runs)]
        self._lowest = torch.full((runs,), float("inf"), device=device)
        self._waited = torch.zeros(runs, dtype=torch.long, device=device)

    def begin(self, cmd: Tensor) -> None:
        """Note the shift of the given labels, before any stage."""
        for run, value in enumerate(cmd.tolist()):
            count = int((self.given[run] >= 0).sum())
            self.history[run].append({"stage": 0, "labeled": count, "cmd": value})

    def propose(self, stage: Stage) -> Tensor:
        """``(R, n)`` the labels after a stage; runs that have stopped keep theirs."""
        new = torch.where(stage.chosen & (self.given < 0), stage.predicted, self.given)
        return torch.where(self.active[:, None], new, self.labels)

    def take(self, stage: Stage, cmd_before: Tensor, cmd: Tensor, exhausted: Tensor) -> None:
        """Enter a stage: its labels, the shift without and with them, and whether to go on.

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
        self.number += 1
        lower = cmd < self._lowest
        self._lowest = torch.where(lower, cmd, self._lowest)
        self._waited = torch.where(lower, 0, self._waited + 1)
        self._stop(self._waited >= self.patience, f"CMD did not fall for {self.patience} stages")
        self._stop(exhausted, "the pool is exhausted")
        if number >= self.most:
            self._stop(torch.ones_like(exhausted), f"all {self.most} stages done")

    def _stop(self, which: Tensor, reason: str) -> None:
        for run in (which & self.active).nonzero().squeeze(-1).tolist():
            self.reasons[run] = reason
        self.active = self.active & ~which

    def audit(self, run: int) -> NDArray[np.void]:
        """Every candidate of every stage of one run."""
        return np.concatenate([np.zeros(0, dtype=AUDIT), *self.audits[run]])
