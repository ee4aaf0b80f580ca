"""What the predictions have to do with each column of the node table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph import FeatureMatrix
from dcgst.io.encoders import FeatureEncoder

MOST_NAMES = 3
"""Columns to name."""

LITTLE = 0.1
"""Columns whose share is smaller than this part of the largest one say little."""


@dataclass(frozen=True)
class ColumnUse:
    """How much the predicted classes differ in a column.

    Attributes:
        name: of the column.
        explained: share of its variance that is between the predicted classes, beyond chance.
    """

    name: str
    explained: float


def column_use(
    encoder: FeatureEncoder, features: FeatureMatrix, classes: NDArray[np.integer]
) -> list[ColumnUse]:
    """Compare the predicted classes in each column, the largest difference first.

    Args:
        encoder: of the columns; its features are the first ones.
        features: ``(n, d)``.
        classes: ``(n,)`` predicted class codes.
    """
    n = len(classes)
    counts = np.bincount(classes)
    members = sp.csr_array((np.ones(n), (classes, np.arange(n))), shape=(len(counts), n))
    sums = members @ features
    sums = np.asarray(sums.toarray() if sp.issparse(sums) else sums, dtype=np.float64)
    between = (sums**2 / np.maximum(counts, 1)[:, None]).sum(axis=0)
    squares = features.multiply(features) if sp.issparse(features) else np.square(features)
    total = np.asarray(squares.sum(axis=0, dtype=np.float64)).reshape(-1)
    mean = sums.sum(axis=0) ** 2 / n
    used = []
    start = 0
    by_chance = (np.count_nonzero(counts) - 1) / max(1, n - 1)
    for column in encoder.columns:
        own = slice(start, start + column.width)
        start += column.width
        variance = (total - mean)[own].sum()
        share = (between - mean)[own].sum() / variance if variance > 0 else 0.0
        used.append(ColumnUse(column.name, round(max(0.0, float(share - by_chance)), 4)))
    return sorted(used, key=lambda column: (-column.explained, column.name))


def verdict(used: Sequence[ColumnUse]) -> str:
    """In which columns the predicted classes differ, in one or two sentences; empty for one column.

    Example:
        >>> verdict([ColumnUse("income", 0.4), ColumnUse("age", 0.2), ColumnUse("name", 0.01)])
        'The predicted classes differ most in the columns: income, age. Hardly at all in: name'
    """
    if len(used) < 2 or not used[0].explained:
        return ""
    least = LITTLE * used[0].explained
    much = [column.name for column in used if column.explained >= least]
    little = [column.name for column in reversed(used) if column.explained < least]
    text = f"The predicted classes differ most in the columns: {', '.join(much[:MOST_NAMES])}"
    if little:
        more = f" and {len(little) - MOST_NAMES} more" if len(little) > MOST_NAMES else ""
        text += f". Hardly at all in: {', '.join(little[:MOST_NAMES])}{more}"
    return text
