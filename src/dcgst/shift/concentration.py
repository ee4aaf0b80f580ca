"""How concentrated labeled nodes are in a graph: a measure of bias that needs no model."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

STEPS = 3
"""Length of the random walks."""

MOST_STARTS = 256
"""Labeled nodes from which walks start, if there are more."""

STARTS_AT_ONCE = 16


def concentration(labeled: NDArray[np.bool_], adjacency: sp.csr_array) -> Tensor:
    r"""``(R,)`` how much more often labeled nodes reach each other than by chance.

    A random walk of one to three steps from a labeled node ends at another labeled node with
    probability o on average. By chance, it would be e: the share of edge ends at the other labeled
    nodes. With L labeled nodes, the result is :math:`(L o + 1) / (L e + 1)`; the added ones keep it
    near one if few visits are expected. Labels drawn uniformly or by degree have values around one.
    Labels from one part of the graph have values of two and more.

    Args:
        labeled: ``(R, n)``.
        adjacency: ``(n, n)``, symmetric, without self-loops.
    """
    degrees = adjacency @ np.ones(adjacency.shape[0], dtype=adjacency.dtype)
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    values = [_concentration(row, adjacency, degrees, inverse) for row in labeled]
    return torch.tensor(values, dtype=torch.float32)


def _concentration(
    labeled: NDArray[np.bool_],
    adjacency: sp.csr_array,
    degrees: NDArray[np.floating],
    inverse: NDArray[np.floating],
) -> float:
    nodes = np.flatnonzero(labeled)
    starts = nodes[:: max(1, -(-nodes.size // MOST_STARTS))]
    reached = labeled.astype(adjacency.dtype)
    visits = np.zeros(starts.size)
    for _ in range(STEPS):
        reached = inverse * (adjacency @ reached)
        visits += reached[starts]
    # Without the walks that return to their start: after two steps over the same edge, after three
    # steps around a triangle.
    for first in range(0, starts.size, STARTS_AT_ONCE):
        own = slice(first, first + STARTS_AT_ONCE)
        edges = adjacency[starts[own]]
        back = edges.copy()
        back.data *= inverse[back.indices]
        returned = (edges.multiply(back) + (back @ adjacency).multiply(back)).sum(axis=1)
        visits[own] -= inverse[starts[own]] * np.asarray(returned).reshape(-1)
    observed = visits.sum() / STEPS * nodes.size / max(1, starts.size)
    share = degrees[nodes].astype(float) / max(degrees.sum(dtype=float), 1e-12)
    expected = (share.sum() - share).sum()
    return float((observed + 1) / (expected + 1))


def representativeness(concentration: Tensor) -> Tensor:
    """Map concentration to a trust in the labels: one up to 1.25, zero from 2.25 on."""
    return (2.25 - concentration).clamp(0, 1)
