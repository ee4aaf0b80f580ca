"""Tensors of all or some nodes of a graph, shared by all runs and replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.features.columns import Features, to_features
from dcgst.features.graph_features import GraphFeatures, Learned
from dcgst.features.matrix import MOST_AT_ONCE, ROWS, Neighbors, Nodes, Workspace
from dcgst.features.similarity import SimilarNodes
from dcgst.features.smoothing import FILTERS, Filter, OneFilterAtATime, Propagation, Views
from dcgst.features.sparse import Pattern, SparseMatrix, normalize_adjacency
from dcgst.graph import FeatureMatrix

NEIGHBORS = 2
"""Neighbors of each node of a sample that are part of it."""

Scale = Callable[[FeatureMatrix], FeatureMatrix]
"""A function that scales rows of features."""


def unscaled(rows: FeatureMatrix) -> FeatureMatrix:
    """The rows as they are."""
    return rows


class NodeRows:
    """What fitted models read of some nodes of a graph, computed when it is needed.

    Args:
        source: the features of the graph.
        nodes: the nodes.
        scale: scales rows of features as the method needs them.
    """

    def __init__(self, source: GraphFeatures, nodes: Nodes, scale: Scale = unscaled) -> None:
        self.source, self.nodes, self.scale = source, nodes, scale
        self._shared: dict[str, Any] = {}

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        """A value that does not depend on the scale, computed once for all scales."""
        if name not in self._shared:
            self._shared[name] = compute()
        return self._shared[name]

    def at(self, nodes: Nodes) -> NodeRows:
        """The same of other nodes of the graph."""
        return NodeRows(self.source, nodes, self.scale)

    def scaled_by(self, scale: Scale) -> Self:
        """The same nodes with features scaled by another method; the rest is shared."""
        other = object.__new__(type(self))
        other.__dict__.update({key: value for key, value in vars(self).items() if key != "x"})
        other.scale = scale
        return other

    @cached_property
    def x(self) -> Features:
        """``(m, d)`` features."""
        return to_features(self.scale(self.source.rows(self.nodes)), self.source.device)

    @property
    def adjacency(self) -> SparseMatrix:
        """Their edges."""
        raise ValueError("networks that use edges need all nodes of a graph at once")

    @property
    def propagated(self) -> dict[str, Tensor]:
        """Blocks of features by number of hops, ``(m, k)`` each."""
        found: dict[str, Tensor] = self._once(
            "propagated", lambda: self.source.propagated(self.nodes)
        )
        return found

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """The same, computed as on another graph."""
        if propagation.equals(self.source.propagation):
            return self.propagated
        return self.source.propagated(self.nodes, propagation)

    @property
    def views(self) -> Sequence[Views]:
        """18 versions of the smoothed features for EM: ``views[i]`` holds those of filter i."""
        found: Sequence[Views] = self._once("views", self._compute_views)
        return found

    def _compute_views(self) -> Sequence[Views]:
        source, nodes = self.source, self.nodes  # not self: a cycle would keep its memory

        def compute(number: int) -> Views:
            return source.views(nodes, number)

        count = source.num_nodes if isinstance(nodes, slice) else len(nodes)
        if count > ROWS:
            return OneFilterAtATime(compute)
        return [compute(number) for number in range(len(FILTERS))]


NodeFunction = Callable[[NodeRows], Tensor]
"""A function that returns ``(R, m, C)`` values of m nodes."""


class GraphTensors(NodeRows):
    """All nodes of a graph with their edges, or a sample of them, as methods read it.

    All runs and replicas share one instance; :meth:`of` creates that of a whole graph.

    Args:
        source: the features of the whole graph.
        scale: scales rows of features as the method needs them.
        adjacency: ``(m, m)`` the edges; in a sample, those from chosen nodes to some neighbors.
        nodes: positions of the nodes of a sample in the graph; default all nodes.
        chosen: ``(m,)`` bool, nodes of a sample that are not only neighbors of others.
        neighbor_factor: ``(m,)`` number of neighbors of each node in the graph divided by those in
            the sample.
    """

    def __init__(
        self,
        source: GraphFeatures,
        scale: Scale,
        adjacency: SparseMatrix,
        nodes: Tensor | None = None,
        chosen: NDArray[np.bool_] | None = None,
        neighbor_factor: Tensor | float = 1.0,
    ) -> None:
        super().__init__(source, slice(None) if nodes is None else nodes, scale)
        self._adjacency, self.neighbor_factor = adjacency, neighbor_factor
        self.positions = np.arange(source.num_nodes) if nodes is None else nodes.numpy()
        self.chosen = np.ones(len(self.positions), dtype=bool) if chosen is None else chosen
        self._similar: dict[int, SimilarNodes] = {}

    @classmethod
    def of(
        cls,
        features: FeatureMatrix,
        adjacency: sp.csr_array,
        device: torch.device | str = "cpu",
        scale: Scale = unscaled,
        *,
        columns_weighted: bool = False,
        learned: Learned | None = None,
    ) -> GraphTensors:
        """All nodes of a graph in memory.

        Args:
            features: ``(n, d)``.
            adjacency: ``(n, n)``.
            device: where all tensors are.
            scale: scales rows of features as the method needs them.
            columns_weighted: see :class:`GraphFeatures`.
            learned: see :class:`GraphFeatures`.
        """
        source = GraphFeatures(
            features,
            Neighbors(adjacency, device=device),
            Workspace(None, MOST_AT_ONCE, device),
            columns_weighted=columns_weighted,
            learned=learned,
        )
        return cls(source, scale, SparseMatrix.from_scipy(adjacency, device))

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what is computed: another process reads it from the files of the graph."""
        nodes = None if self.complete else self.nodes
        parts = self.source, self.scale, self.adjacency, nodes, self.chosen, self.neighbor_factor
        return GraphTensors, parts

    @property
    def complete(self) -> bool:
        """Whether all nodes of the graph are here; else a sample."""
        return isinstance(self.nodes, slice)

    @property
    def device(self) -> torch.device:
        return self.adjacency.values.device

    @property
    def adjacency(self) -> SparseMatrix:
        return self._adjacency

    @property
    def normalized(self) -> SparseMatrix:
        """``D^-1/2 (A + I) D^-1/2``; in a sample, some entries of it, without its diagonal."""
        found: SparseMatrix = self._once("normalized", self._normalize)
        return found

    def _normalize(self) -> SparseMatrix:
        if self.complete:
            return normalize_adjacency(self.adjacency)
        scale = self.source.neighbors.scale[self.nodes].squeeze(1)
        pattern = self.adjacency.pattern
        ends = scale[pattern.rows] * scale[pattern.indices]
        return self.adjacency.with_values(self.adjacency.values * ends)

    def scaled_by(self, scale: Scale) -> Self:
        """The same nodes with features scaled by another method; the rest is shared."""
        other = super().scaled_by(scale)
        other._similar = {}
        return other

    def similar_nodes(self, count: int) -> SimilarNodes:
        """The ``count`` most similar nodes of any node."""
        if count not in self._similar:
            self._similar[count] = SimilarNodes(self.x, count)
        return self._similar[count]

    def in_graph(self, labels: Tensor) -> Tensor:
        """Labels ``(R, m)`` of the nodes of this object as ``(R, n)`` labels of the graph."""
        if self.complete:
            return labels
        found = labels.new_full((len(labels), self.source.num_nodes), -1)
        found[:, self.nodes] = labels
        return found

    def prepare(self) -> None:
        """Compute the matrices that every fit reads."""
        _ = self.source.bases, self.propagated

    def smooth(self, values: NodeFunction, by: Filter, name: str) -> NodeFunction:
        """Smooth values over the graph.

        Args:
            values: function of nodes.
            by: the filter.
            name: of the files of a large graph; the same name stands for the same values.

        Returns:
            function that returns the smoothed values of nodes.
        """
        source = self.source
        fits, _, columns = values(self.at(slice(0, 1))).shape

        def wide(nodes: slice) -> Tensor:
            return values(self.at(nodes)).transpose(0, 1).flatten(1)

        shape = source.num_nodes, fits * columns
        smoothed = source.smooth_by([by], name, shape, wide, means=False, title="labels")[by]

        def rows(nodes: NodeRows) -> Tensor:
            own = source.rows_of(smoothed, nodes.nodes)
            return own.view(-1, fits, columns).transpose(0, 1)

        return rows


def draw_sample(source: GraphFeatures, chosen: NDArray[np.int64], scale: Scale) -> GraphTensors:
    """Some nodes of a graph, with some neighbors of each.

    Args:
        source: the features of the graph.
        chosen: nodes, sorted.
        scale: scales rows of features as the method needs them.
    """
    rng = np.random.default_rng(len(chosen))
    indptr, indices = source.neighbors.adjacency.indptr, source.neighbors.adjacency.indices
    start, count = indptr[chosen], np.diff(indptr)[chosen]
    kept = np.minimum(count, NEIGHBORS)
    owner = np.repeat(np.arange(len(chosen)), kept)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(kept) - kept, kept)
    # One neighbor from each of nearly equal parts of the list, so that none is drawn twice.
    length, parts = count[owner], kept[owner]
    first, stop = place * length // parts, (place + 1) * length // parts
    entries = start[owner] + first + (rng.random(len(owner)) * (stop - first)).astype(np.int64)
    neighbors, weights = indices[entries], source.neighbors.adjacency.data[entries]
    nodes, position = np.unique(np.concatenate([chosen, neighbors]), return_inverse=True)
    rows, columns = position[owner], position[len(chosen) :]
    counts = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.add.at(counts, rows + 1, 1)
    by_row = np.argsort(rows, kind="stable")
    pattern = Pattern(
        torch.tensor(np.cumsum(counts), device=source.device),
        torch.tensor(columns[by_row].astype(np.int64), device=source.device),
        len(nodes),
    )
    ordered = torch.tensor(weights[by_row].astype(np.float32), device=source.device)
    factor = np.ones(len(nodes), dtype=np.float32)
    factor[position[: len(chosen)]] = count / np.maximum(kept, 1)
    return GraphTensors(
        source,
        scale,
        SparseMatrix(pattern, ordered),
        torch.from_numpy(nodes),
        np.isin(nodes, chosen),
        torch.tensor(factor, device=source.device),
    )


def known_labels(labels: Tensor, num_classes: int) -> NodeFunction:
    """Labels ``(R, n)`` as function of nodes: one-hot rows, zero for -1."""

    def rows(nodes: NodeRows) -> Tensor:
        own = labels[:, nodes.nodes]
        known = (own >= 0)[..., None].float()
        coded = torch.zeros(*own.shape, num_classes, device=own.device)
        return coded.scatter_(-1, own.clamp_min(0)[..., None], known)

    return rows
