"""Features of the nodes that a node points to, and of those that point to it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph import FeatureMatrix

HALF_DEGREE = 10.0
"""Number of edges in one direction that counts as one half."""


def add_directions(
    features: FeatureMatrix, pairs: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> FeatureMatrix:
    """Append the means of the features over targets and over sources, and how many there are.

    Networks pass messages along edges in both directions. With these columns, they can tell the
    two directions apart. Nothing is learned, so another graph gets the same columns.

    Args:
        features: ``(n, d)``.
        pairs: ``(2, E)`` sources and targets.
        weights: ``(E,)``; None if unweighted.

    Returns:
        ``(n, 3 d + 2)``.

    Example:
        >>> add_directions(np.array([[1.0], [2.0]]), np.array([[0], [1]]), None).round(2)
        array([[1.  , 2.  , 0.  , 0.09, 0.  ],
               [2.  , 0.  , 1.  , 0.  , 0.09]])
    """
    count = features.shape[0]
    values = np.ones(pairs.shape[1]) if weights is None else weights
    used = (pairs[0] != pairs[1]) & (values > 0)
    position, values = (pairs[0] * count + pairs[1])[used], values[used]
    order = np.lexsort((values, position))  # of repeated edges, the one of largest weight is last
    last = np.append(np.diff(position[order]) > 0, True)[: order.size]
    kept = order[last]
    ends = np.divmod(position[kept], count)
    matrix = sp.csr_array((values[kept], ends), shape=(count, count))
    blocks = [features]
    degrees = []
    for own in (matrix, sp.csr_array(matrix.T)):
        total = np.maximum(np.asarray(own.sum(axis=1)), np.finfo(float).tiny).reshape(-1, 1)
        blocks.append(sp.csr_array(own / total).astype(features.dtype) @ features)
        edges = np.diff(own.indptr)
        degrees.append(edges / (edges + HALF_DEGREE))
    shares = np.stack(degrees, axis=1).astype(features.dtype)
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([*blocks, sp.csr_array(shares)]))
    return np.hstack([*blocks, shares])
