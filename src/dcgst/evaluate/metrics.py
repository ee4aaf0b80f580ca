"""Accuracy, class shares, and correction of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError


def accuracy(
    predicted: NDArray[np.int64], truth: NDArray[np.int64], mask: NDArray[np.bool_]
) -> float:
    """Share of correct predictions among the nodes of the mask.

    Example:
        >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([True, True, True]))
        0.6666666666666666
    """
    if not mask.any():
        raise InputError("accuracy needs at least one node of known class")
    return float((predicted == truth)[mask].mean())


def share_error(shares: NDArray[np.floating], truth: NDArray[np.int64]) -> float:
    """Half the sum of differences between estimated and true class shares; 0 if they are equal.

    Args:
        shares: ``(C,)``, for example mean probabilities.
        truth: true class codes.

    Example:
        >>> share_error(np.array([0.5, 0.5]), np.array([0, 0, 0, 1]))
        0.25
    """
    true = np.bincount(truth, minlength=len(shares)) / len(truth)
    return float(np.abs(shares - true).sum() / 2)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for multiple tests (Holm, 1979).

    Example:
        >>> holm([0.01, 0.04])
        [0.02, 0.04]
    """
    corrected = np.empty(len(p_values))
    highest = 0.0
    for place, index in enumerate(np.argsort(p_values)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = highest
    return [float(value) for value in corrected]
