"""Measures of predictions against the truth."""

from __future__ import annotations

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
