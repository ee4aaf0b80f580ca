"""Distances between sets of nodes and all nodes, in four respects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.progress import counted
from dcgst.graph import FeatureMatrix, Graph
from dcgst.numerics.components import smoothed_components
from dcgst.numerics.neighbors import Neighbors
from dcgst.shift.cmd import CMDFrom

HOPS = 4
"""Smoothing steps of the representation."""

TELEPORT, STEPS = 0.1, 15
"""Of PageRank."""

SETS_AT_ONCE = 16
"""Node sets whose PageRank is computed at a time: few, so that they fit into the CPU's cache."""

MOST_ROWS = 1_000_000
"""Nodes from which the moments of all nodes are computed."""

SHIFT_NAMES = {
    "features": "features",
    "degree": "number of neighbors",
    "position": "position in the graph",
    "representation": "features averaged over neighbors",
}

NodeSets = Sequence[NDArray[np.int64]]


def distances(graph: Graph, sets: NodeSets) -> dict[str, NDArray[np.float64]]:
    """Distance of each node set from all nodes, by name: ``(len(sets),)`` each."""
    return {
        "features": cmd_distances(smoothed_components(graph, hops=0), sets),
        "degree": degree_distances(graph, sets),
        "position": position_distances(graph, sets),
        "representation": cmd_distances(smoothed_components(graph, hops=HOPS), sets),
    }


def describe(name: str, significant: bool, graph: Graph, labeled_nodes: NDArray[np.int64]) -> str:
    """A difference between labeled nodes and all nodes in words."""
    how = "more than" if significant else "about as much as"
    own, mean = graph.degrees[labeled_nodes].mean(), graph.degrees.mean()
    differ = {
        "features": "features differ",
        "degree": f"labeled nodes have {own:.1f} neighbors on average, all nodes {mean:.1f}; they "
        "differ",
        "position": "positions in the graph differ",
        "representation": "features averaged over neighbors differ",
    }[name]
    return f"{differ} {how} in a random sample"


def cmd_distances(z: Tensor, sets: NodeSets) -> NDArray[np.float64]:
    """CMD of each set from all nodes in a representation ``(n, d)``."""
    from_all = CMDFrom(z[:: -(-len(z) // MOST_ROWS)])
    return np.array([float(from_all(z[s])) for s in sets])


def column_distances(
    features: FeatureMatrix, widths: Sequence[int], sets: NodeSets
) -> NDArray[np.float64]:
    """``(columns, sets)`` distance of the mean of each set from that of all nodes.

    Args:
        features: ``(n, d)``.
        widths: number of features of each column; further features are left out.
        sets: the sets.
    """
    n = features.shape[0]
    rows = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    shares = np.repeat([1 / len(own) for own in sets], [len(own) for own in sets])
    shares = shares.astype(features.dtype)  # else all features would be copied
    means = sp.csr_array((shares, (rows, np.concatenate(sets))), shape=(len(sets), n)) @ features
    means = (means.toarray() if sp.issparse(means) else means)[:, : sum(widths)]
    center = features[:: -(-n // MOST_ROWS)].mean(axis=0)
    squares = (means - np.asarray(center).reshape(1, -1)[:, : sum(widths)]) ** 2
    starts = np.cumsum([0, *widths])[:-1]
    found: NDArray[np.float64] = np.sqrt(np.add.reduceat(squares, starts, axis=1)).T
    return found


def degree_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Absolute difference of the mean log-degree of each set and of all nodes."""
    size = np.log1p(graph.degrees)
    return np.array([abs(size[s].mean() - size.mean()) for s in sets])


def position_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Total variation between PageRank from each set and from all nodes: 0 equal, 1 disjoint.

    A walk that starts at an isolated node stays there.
    """
    neighbors, n = Neighbors(graph.adjacency, graph.weighted), graph.num_nodes
    from_all = _pagerank(neighbors, torch.full((n, 1), 1 / n))
    found = []
    for first in counted("diagnosis", range(0, len(sets), SETS_AT_ONCE)):
        some = sets[first : first + SETS_AT_ONCE]
        start = torch.zeros(n, len(some))
        for column, nodes in enumerate(some):
            start[torch.from_numpy(nodes), column] = 1 / len(nodes)
        mass = _pagerank(neighbors, start)
        found.append(mass.sub_(from_all).abs_().sum(0, dtype=torch.double) / 2)
    variation: NDArray[np.float64] = torch.cat(found).numpy()
    return variation


def _pagerank(neighbors: Neighbors, start: Tensor) -> Tensor:
    """``(n, k)`` PageRank from each distribution in the columns of ``start``."""
    degrees = neighbors.degrees
    inverse, stays = 1 / degrees.clamp_min(1e-12) * (degrees > 0), degrees == 0
    mass, out = start.clone(), torch.empty_like(start)

    def finish(nodes: slice, sums: Tensor) -> None:
        sums.add_(before[nodes] * stays[nodes]).mul_(1 - TELEPORT)
        sums.add_(start[nodes], alpha=TELEPORT)

    for _ in range(STEPS):
        before = mass
        mass = neighbors.sums(mass * inverse, out, finish)
        out = before
    return mass
