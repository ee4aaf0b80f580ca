"""Whether probabilities are honest: of those told 80 %, eight in ten should be right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 20
"""Validation nodes below which a temperature cannot be learned."""

STRENGTH = 30.0
"""How many nodes' worth of evidence it takes to move from the usual temperature."""


@dataclass(frozen=True)
class Calibration:
    """How probabilities were made honest.

    Attributes:
        temperature: above one, probabilities became less sure.
        nodes: validation nodes it was learned from; none where the usual one is used.
        words: the same for people.
    """

    temperature: float
    nodes: int
    words: str

    def apply(self, proba: NDArray[np.float32]) -> NDArray[np.float32]:
        """``(n, C)`` probabilities with this temperature; which class is likeliest stays."""
        return soften(proba, self.temperature)


def calibrate(
    proba: NDArray[np.float32], labels: NDArray[np.int64], usual: float = 1.0
) -> Calibration:
    """Learn a temperature from nodes whose class is known and was not trained on.

    Args:
        proba: ``(n, C)``.
        labels: ``(n,)`` class codes of validation nodes, -1 elsewhere.
        usual: the temperature that the method needs as a rule; what is learned stays near it as
            long as there are few nodes.
    """
    known = labels >= 0
    count = int(known.sum())
    if count < FEWEST:
        there = f"{count} validation nodes are" if count else "without validation nodes there is"
        return Calibration(
            usual,
            0,
            f"{there} too little to calibrate on: the usual temperature, {usual:g}, is used",
        )
    grid = np.exp(np.linspace(np.log(0.2), np.log(5), 161))
    losses = [
        count * log_loss(soften(proba[known], t), labels[known])
        + STRENGTH * (np.log(t) - np.log(usual)) ** 2
        for t in grid
    ]
    best = float(grid[int(np.argmin(losses))])
    return Calibration(
        best, count, f"temperature {best:.2f}, learned from {count} validation nodes"
    )


def soften(proba: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    """Probabilities to the power of one over the temperature, summing to one again."""
    logits = np.log(np.clip(proba, 1e-12, 1)) / temperature
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    softened: NDArray[np.float32] = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return softened


def log_loss(proba: NDArray[np.float32], truth: NDArray[np.int64]) -> float:
    """Mean negative logarithm of the true class's probability."""
    return float(-np.log(np.clip(proba[np.arange(len(truth)), truth], 1e-12, 1)).mean())


@dataclass(frozen=True)
class Bin:
    """Nodes that were told about equally likely."""

    confidence: float
    accuracy: float
    nodes: int


def reliability(proba: NDArray[np.float32], truth: NDArray[np.int64], bins: int = 10) -> list[Bin]:
    """Confidence beside accuracy in bins of equal width; empty bins are left out."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        Bin(float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (place == b for b in range(bins))
        if inside.any()
    ]


def expected_calibration_error(
    proba: NDArray[np.float32], truth: NDArray[np.int64], bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy, bin by bin (Guo et al., 2017)."""
    found = reliability(proba, truth, bins)
    return sum(b.nodes * abs(b.confidence - b.accuracy) for b in found) / max(1, len(truth))
