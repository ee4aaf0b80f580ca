"""Distances between sets of nodes and all nodes, in four respects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.graph import Graph
from dcgst.numerics.normalize import random_walk
from dcgst.numerics.smoothing import Filter, smoothed_components
from dcgst.numerics.sparse import SparseMatrix
from dcgst.shift.cmd import CMDFrom

HOPS = 4
"""Smoothing steps of the representation."""

PAGERANK = Filter(teleport=0.1, hops=15)
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


def cmd_distances(z: Tensor, sets: NodeSets) -> NDArray[np.float64]:
    """CMD of each set from all nodes in a representation ``(n, d)``."""
    from_all = CMDFrom(z)
    return np.array([float(from_all(z[s])) for s in sets])


def degree_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Absolute difference of the mean log-degree of each set and of all nodes."""
    size = np.log1p(graph.degrees)
    return np.array([abs(size[s].mean() - size.mean()) for s in sets])


def position_distances(graph: Graph, sets: NodeSets) -> NDArray[np.float64]:
    """Total variation between PageRank from each set and from all nodes: 0 equal, 1 disjoint.

    A walk that starts at an isolated node stays there.
    """
    stay = sp.diags_array((graph.degrees == 0).astype(np.float32))
    walk = SparseMatrix.from_scipy(random_walk(graph.adjacency).astype(np.float32) + stay)
    start = np.zeros((graph.num_nodes, len(sets) + 1), dtype=np.float32)
    for column, nodes in enumerate(sets):
        start[nodes, column] = 1 / len(nodes)
    start[:, -1] = 1 / graph.num_nodes
    mass = PAGERANK(walk, torch.from_numpy(start)).numpy()
    variation: NDArray[np.float64] = abs(mass[:, :-1] - mass[:, -1:]).sum(axis=0) / 2
    return variation
