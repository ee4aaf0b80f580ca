"""Calibration: predicted probabilities that match observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_NODES = 20
"""Validation nodes below which no temperature is learned."""

PRIOR_STRENGTH = 30.0
"""Strength of the prior that keeps the temperature near one."""


@dataclass(frozen=True)
class Calibration:
    """Temperature scaling (Guo et al., ICML 2017, https://arxiv.org/abs/1706.04599).

    Attributes:
        temperature: above one, probabilities become less confident.
        nodes: number of validation nodes it was learned from; 0 if it was not learned.
        description: text for users.
    """

    temperature: float
    nodes: int
    description: str

    def apply(self, proba: NDArray[np.float32]) -> NDArray[np.float32]:
        """``(n, C)`` calibrated probabilities; the most likely class does not change."""
        return proba if self.temperature == 1 else scale_temperature(proba, self.temperature)


def calibrated_in_fit(nodes: int, agreement: bool) -> Calibration:
    """Of a method that calibrates its probabilities itself.

    Args:
        nodes: number of validation nodes.
        agreement: whether members agree or not.
    """
    sources = ["left-out labels"]
    if agreement:
        sources.append("the agreement of members")
    if nodes:
        sources.append(f"{nodes} validation nodes")
    *first, last = sources
    listed = f"{', '.join(first)} and {last}" if first else last
    return Calibration(1.0, nodes, f"in the fit, from {listed}")


def calibrate(proba: NDArray[np.float32], labels: NDArray[np.int64]) -> Calibration:
    """Learn a temperature from validation nodes.

    Args:
        proba: ``(n, C)``.
        labels: ``(n,)`` class codes of validation nodes, -1 elsewhere. A log-normal prior around
            one ensures that few of them change the temperature little.

    Example:
        >>> proba = np.full((400, 2), [0.99, 0.01], dtype=np.float32)
        >>> labels = np.repeat([0, 1], [300, 100])  # 75% correct, not 99%
        >>> calibrated = calibrate(proba, labels).apply(proba)
        >>> calibrated[0].round(2)
        array([0.84, 0.16], dtype=float32)
    """
    known = labels >= 0
    count = int(known.sum())
    if count < MIN_NODES:
        few = f"{count} validation nodes are too few to learn a temperature" if count else ""
        description = few or "there are no validation nodes to learn a temperature from"
        return Calibration(1.0, 0, f"{description}; the probabilities are not changed")
    grid = np.exp(np.linspace(np.log(0.2), np.log(5), 161))
    losses = [
        count * log_loss(scale_temperature(proba[known], t), labels[known])
        + PRIOR_STRENGTH * np.log(t) ** 2
        for t in grid
    ]
    best = float(grid[int(np.argmin(losses))])
    return Calibration(
        best, count, f"temperature {best:.2f}, learned from {count} validation nodes"
    )


def scale_temperature(proba: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    """Probabilities to the power of ``1 / temperature``, normalized.

    Example:
        >>> scale_temperature(np.array([[0.8, 0.2]], dtype=np.float32), 2).round(3)
        array([[0.667, 0.333]], dtype=float32)
    """
    logits = np.log(np.clip(proba, 1e-12, 1)) / temperature
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    scaled: NDArray[np.float32] = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return scaled


def log_loss(proba: NDArray[np.float32], truth: NDArray[np.int64]) -> float:
    """Mean negative log-probability of the true class."""
    return float(-np.log(np.clip(proba[np.arange(len(truth)), truth], 1e-12, 1)).mean())


@dataclass(frozen=True)
class Bin:
    """Nodes of similar confidence: their mean confidence, accuracy and number."""

    confidence: float
    accuracy: float
    nodes: int


def reliability(proba: NDArray[np.float32], truth: NDArray[np.int64], bins: int = 10) -> list[Bin]:
    """Confidence and accuracy in bins of equal width; empty bins are omitted.

    Example:
        >>> proba = np.array([[0.95, 0.05], [0.85, 0.15]], dtype=np.float32)
        >>> [(round(b.confidence, 2), b.accuracy) for b in reliability(proba, np.array([0, 1]))]
        [(0.85, 0.0), (0.95, 1.0)]
    """
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == truth
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        Bin(float(confidence[inside].mean()), float(correct[inside].mean()), int(inside.sum()))
        for inside in (index == b for b in range(bins))
        if inside.any()
    ]


def expected_calibration_error(
    proba: NDArray[np.float32], truth: NDArray[np.int64], bins: int = 15
) -> float:
    """Mean absolute difference between confidence and accuracy over bins (Guo et al., 2017)."""
    found = reliability(proba, truth, bins)
    return sum(b.nodes * abs(b.confidence - b.accuracy) for b in found) / max(1, len(truth))
