"""How concentrated labeled nodes are in a graph: a measure of bias that needs no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch import Tensor

STEPS = 3
"""Length of the random walks."""

MOST_STARTS = 256
"""Labeled nodes from which walks start, if there are more."""

LABELS_AT_ONCE = 1 << 15
"""Labeled nodes of several sets whose walks are computed together."""

ENTRIES_AT_ONCE = 1 << 22
"""Walks of two steps from starts that are listed together."""

NodeSets = Sequence[NDArray[np.int64]]


def concentration(
    sets: NodeSets, adjacency: sp.csr_array, starts: int = MOST_STARTS
) -> NDArray[np.float64]:
    r"""``(len(sets),)`` how much more often labeled nodes reach each other than by chance.

    A random walk of one to three steps from a labeled node ends at another labeled node with
    probability o on average. By chance, it would be e: the share of edge ends at the other labeled
    nodes. With L labeled nodes, the result is :math:`(L o + 1) / (L e + 1)`; the added ones keep it
    near one if few visits are expected. Labels drawn uniformly or by degree have values around one.
    Labels from one part of the graph have values of two and more.

    Args:
        sets: the labeled nodes of each set.
        adjacency: ``(n, n)``, symmetric, without self-loops.
        starts: most nodes of a set from which walks start.
    """
    degrees = adjacency @ np.ones(adjacency.shape[0], dtype=adjacency.dtype)
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    total = max(degrees.sum(dtype=float), 1e-12)
    found = []
    for some in _groups([nodes.size for nodes in sets], LABELS_AT_ONCE):
        visits = _visits(sets[some], adjacency, inverse, starts)
        for nodes, observed in zip(sets[some], visits, strict=True):
            expected = (nodes.size - 1) * degrees[nodes].sum(dtype=float) / total
            found.append((observed + 1) / (expected + 1) if nodes.size else 1.0)
    return np.array(found)


def _visits(
    sets: NodeSets, adjacency: sp.csr_array, inverse: NDArray[np.floating], most: int
) -> NDArray[np.float64]:
    """Sum over the nodes of each set of the mean visits at others of the set in three steps."""
    starts = [nodes[:: max(1, -(-nodes.size // most))] for nodes in sets]
    owner = np.repeat(np.arange(len(sets)), [own.size for own in starts])
    start = np.concatenate(starts).astype(np.int64)
    edges = adjacency[start]
    row = np.repeat(np.arange(start.size), np.diff(edges.indptr))
    # A walk is at a labeled node after one step more than from one of its neighbors.
    values = sum(edges.data * own for own in _reached(sets, adjacency, inverse, owner[row], edges))
    _, first, place = np.unique(start, return_index=True, return_inverse=True)
    returns = _returns(edges[first], adjacency, inverse)[place]
    visits = np.bincount(row, values, minlength=start.size) - returns
    sums = np.bincount(owner, visits * inverse[start], minlength=len(sets))
    weight = [nodes.size / max(1, own.size) for nodes, own in zip(sets, starts, strict=True)]
    found: NDArray[np.float64] = sums / STEPS * np.array(weight)
    return found


def _reached(
    sets: NodeSets,
    adjacency: sp.csr_array,
    inverse: NDArray[np.floating],
    owner: NDArray[np.int64],
    edges: sp.csr_array,
) -> Iterator[NDArray[np.floating]]:
    """For zero to two steps: the probability of each entry's neighbor to be in the owner's set."""
    n, sizes = adjacency.shape[0], [nodes.size for nodes in sets]
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    members = np.concatenate(list(sets))
    ones = np.ones(members.size, dtype=adjacency.dtype)
    reached = sp.csr_array((ones, members, pointers), shape=(len(sets), n))
    wanted = owner * n + edges.indices
    for step in range(STEPS):
        if step:
            reached = reached @ adjacency
            reached.data *= inverse[reached.indices]
        reached.sort_indices()
        rows = np.repeat(np.arange(len(sets)), np.diff(reached.indptr))
        keys = np.append(rows * n + reached.indices, np.iinfo(np.int64).max)
        place = np.searchsorted(keys, wanted)
        yield np.where(keys[place] == wanted, np.append(reached.data, 0)[place], 0)


def _returns(
    edges: sp.csr_array, adjacency: sp.csr_array, inverse: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Walks that return to their start: over one edge in two steps, around a triangle in three.

    Args:
        edges: rows of the adjacency, of the starts.
        adjacency: ``(n, n)``.
        inverse: of the degrees.
    """
    back = edges.copy()
    back.data *= inverse[back.indices]
    found: NDArray[np.floating] = edges.multiply(back).sum(axis=1)
    lengths = np.diff(adjacency.indptr)[edges.indices]
    pointers = np.concatenate([[0], np.cumsum(lengths)])[edges.indptr]
    for own in _groups(np.diff(pointers).tolist(), ENTRIES_AT_ONCE):
        found[own] += (back[own] @ adjacency).multiply(back[own]).sum(axis=1)
    return found


def _groups(sizes: Sequence[int], most: int) -> Iterator[slice]:
    """Ranges of consecutive items of at most this size together, or of one item."""
    first = total = 0
    for number, size in enumerate(sizes):
        if number > first and total + size > most:
            yield slice(first, number)
            first, total = number, 0
        total += size
    if len(sizes) > first:
        yield slice(first, len(sizes))


def representativeness(concentration: Tensor) -> Tensor:
    """Map concentration to a trust in the labels: one up to 1.25, zero from 2.25 on."""
    return (2.25 - concentration).clamp(0, 1)
