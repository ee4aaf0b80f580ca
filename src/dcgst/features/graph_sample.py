"""A sample of the nodes of a large graph, which methods use like a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.features.graph_tensors import GraphTensors, Learned, NodeFunction, Scale
from dcgst.features.large_graph import LargeGraph
from dcgst.features.normalize import Features
from dcgst.features.propagation import Propagation
from dcgst.features.smoothing import Filter, OneFilterAtATime, Views
from dcgst.features.sparse import Pattern, SparseMatrix

NEIGHBORS = 2
"""Neighbors of each node of a sample that are part of it."""


class GraphSample(GraphTensors):
    """Some nodes of a large graph, with some neighbors of each.

    Args:
        graph: the large graph.
        nodes: all nodes of the sample, neighbors included; ``positions`` is the same as an array.
        chosen: ``(m,)`` bool, the nodes that are not only neighbors.
        adjacency: ``(m, m)`` edges from chosen nodes to their neighbors in the sample.
        factor: ``(m,)`` number of neighbors in the graph divided by those in the sample.
    """

    complete = False

    def __init__(
        self,
        graph: LargeGraph,
        nodes: Tensor,
        chosen: NDArray[np.bool_],
        adjacency: SparseMatrix,
        factor: Tensor,
    ) -> None:
        self.graph, self.nodes, self.chosen, self.adjacency = graph, nodes, chosen, adjacency
        self.positions: NDArray[np.int64] = nodes.numpy()
        self.matrix, self.factor = graph.matrix, factor
        self.own = graph.rows(nodes)
        self._similar = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what is computed: another process reads it from the files of the graph."""
        parts = self.graph, self.nodes, self.chosen, self.adjacency, self.factor
        return GraphSample, parts

    @cached_property
    def x(self) -> Features:  # type: ignore[override]
        return self.own.x

    @cached_property
    def normalized(self) -> SparseMatrix:
        """Entries of ``D^-1/2 (A + I) D^-1/2`` of the large graph, without its diagonal."""
        scale = self.graph.neighbors.scale[self.nodes].squeeze(1)
        pattern = self.adjacency.pattern
        ends = scale[pattern.rows] * scale[pattern.indices]
        return self.adjacency.with_values(self.adjacency.values * ends)

    @cached_property
    def views(self) -> Sequence[Views]:
        return OneFilterAtATime(self.own.views_by)

    @cached_property
    def propagation(self) -> Propagation:
        return self.graph.propagation

    @property
    def learned(self) -> Learned:
        return self.graph.learned

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        return self.own.propagated

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        return self.propagated

    def features_by(self, scale: Scale) -> Features:
        return self.own.features_by(scale)

    def in_graph(self, labels: Tensor) -> Tensor:
        found = labels.new_full((len(labels), self.graph.num_nodes), -1)
        found[:, self.nodes] = labels
        return found

    @property
    def neighbor_factor(self) -> Tensor:
        return self.factor

    def prepare(self) -> None:
        """Compute the matrices that every fit reads."""
        _ = self.graph.bases, self.propagated

    def smooth(self, values: NodeFunction, by: Filter, name: str) -> NodeFunction:
        return self.graph.smooth(values, by, name)


def draw_sample(large: LargeGraph, chosen: NDArray[np.int64]) -> GraphSample:
    """Some nodes of a graph, with some neighbors of each.

    Args:
        large: the graph.
        chosen: nodes, sorted.
    """
    rng = np.random.default_rng(len(chosen))
    indptr, indices = large.matrix.indptr, large.matrix.indices
    start, count = indptr[chosen], np.diff(indptr)[chosen]
    kept = np.minimum(count, NEIGHBORS)
    owner = np.repeat(np.arange(len(chosen)), kept)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(kept) - kept, kept)
    # One neighbor from each of equally long parts of the list.
    share = (place + rng.random(len(owner))) / np.repeat(kept, kept)
    entries = start[owner] + (share * count[owner]).astype(np.int64)
    neighbors, weights = indices[entries], large.matrix.data[entries]
    nodes, position = np.unique(np.concatenate([chosen, neighbors]), return_inverse=True)
    rows, columns = position[owner], position[len(chosen) :]
    counts = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.add.at(counts, rows + 1, 1)
    by_row = np.argsort(rows, kind="stable")
    pattern = Pattern(
        torch.tensor(np.cumsum(counts), device=large.device),
        torch.tensor(columns[by_row].astype(np.int64), device=large.device),
        len(nodes),
    )
    ordered = torch.tensor(weights[by_row].astype(np.float32), device=large.device)
    factor = np.ones(len(nodes), dtype=np.float32)
    factor[position[: len(chosen)]] = count / np.maximum(kept, 1)
    inside = np.isin(nodes, chosen)
    adjacency = SparseMatrix(pattern, ordered)
    return GraphSample(
        large, torch.from_numpy(nodes), inside, adjacency, torch.tensor(factor, device=large.device)
    )
