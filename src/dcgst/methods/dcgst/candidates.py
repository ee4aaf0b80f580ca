"""Candidates for pseudo-labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dcgst.methods.core.trace import Selection
from dcgst.shift.selection import select_top


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one stage in R fits, C of the paper; tensors ``(R, n)`` unless noted.

    Attributes:
        mask: bool, the candidates.
        predicted: predicted class of each node.
        confidence: its probability.
        rank: rank by confidence among the pool nodes of the same predicted class, from 0.
        ner: neighborhood entropy reduction of each node.
        budget: ``(R,)`` δ, the number of candidates to select.
        quotas: ``(R, C)`` the number to select of each predicted class; None: no limit by class.
    """

    mask: Tensor
    predicted: Tensor
    confidence: Tensor
    rank: Tensor
    ner: Tensor
    budget: Tensor
    quotas: Tensor | None

    def select(self, score: Tensor) -> Selection:
        """Select the candidates with the largest score ``(R, n)``."""
        if self.quotas is None:
            selected = select_top(score, self.confidence, self.mask, self.budget)
        else:
            selected = select_top(score, self.confidence, self.mask, self.quotas, self.predicted)
        return Selection(
            predicted=self.predicted,
            confidence=self.confidence,
            candidates=self.mask,
            rank=self.rank,
            selected=selected,
            selection_score=score,
            ner=self.ner,
        )
