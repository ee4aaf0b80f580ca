"""Measures of predictions against the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError


def accuracy(
    predicted: NDArray[np.int64], truth: NDArray[np.int64], mask: NDArray[np.bool_]
) -> float:
    """Share of nodes in the mask that are right, from 0 to 1."""
    if not mask.any():
        raise InputError("accuracy needs at least one node whose class is known")
    return float((predicted == truth)[mask].mean())


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm, 1979)."""
    corrected = np.empty(len(p_values))
    highest = 0.0
    for place, index in enumerate(np.argsort(p_values)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = highest
    return [float(value) for value in corrected]
