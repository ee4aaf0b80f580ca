"""Graphs of any size: propagation in blocks of columns, prediction in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dcgst.features.columns import MOST_COLUMNS, ColumnWeights, leading_directions, times
from dcgst.features.graph_tensors import Learned, NodeFunction, NodeTensors, OtherFeatures, Scale
from dcgst.features.matrix import Matrix, Means, Nodes, Smoothing, Workspace, row_ranges
from dcgst.features.neighbors import Neighbors
from dcgst.features.normalize import Features, to_features, unit_rows
from dcgst.features.propagation import DIMENSIONS, HOPS, SMOOTH, Propagation
from dcgst.features.smoothing import DIMENSIONS as VIEW_DIMENSIONS
from dcgst.features.smoothing import FILTERS, Basis, Filter, ViewBases, Views, views_of
from dcgst.features.sparse import SparseMatrix
from dcgst.graph import Graph
from dcgst.graph.references import ByReference
from dcgst.memory import forget


class LargeRows:
    """What models read of some nodes of a large graph, read when it is needed.

    Args:
        graph: the graph.
        nodes: the nodes.
    """

    def __init__(self, graph: LargeGraph, nodes: Nodes) -> None:
        self.graph, self.nodes = graph, nodes

    @cached_property
    def x(self) -> Features:
        return self.features_by(self.graph.scale)

    def features_by(self, scale: Scale) -> Features:
        """Features, scaled by another method."""
        return self.graph.feature_rows(self.nodes, scale)

    def scaled_by(self, scale: Scale) -> NodeTensors:
        """The same nodes with features scaled by another method."""
        return cast("NodeTensors", OtherFeatures(self, scale))

    @property
    def adjacency(self) -> SparseMatrix:
        raise ValueError("networks that use edges need all nodes of a graph at once")

    @cached_property
    def propagated(self) -> dict[str, Tensor]:
        matrices = [self.graph.rows_of(matrix, self.nodes) for matrix in self.graph.hop_matrices]
        degrees = self.graph.neighbors.degrees[self.nodes]
        return self.graph.propagation.normalize(matrices, degrees)

    def propagated_by(self, propagation: Propagation) -> dict[str, Tensor]:
        """The same: models are fitted to a sample of the same graph, or the graph uses theirs."""
        return self.propagated

    @cached_property
    def views(self) -> Sequence[Views]:
        return [self.views_by(number) for number in range(len(FILTERS))]

    def views_by(self, number: int) -> Views:
        """Views of the features smoothed by one filter."""
        bases = self.graph.bases[number]
        scores = [
            basis.scores(self.graph.rows_of(matrix, self.nodes))
            for basis, matrix in zip(bases, self.graph.smoothed[number], strict=True)
        ]
        return views_of(bases, scores)


SAMPLE_FOR_DIRECTIONS = 20_000
"""Rows from which the directions of most variance of wide features are computed."""


class LargeGraph(ByReference):
    """A graph whose propagated features are kept in memory if it suffices, else in files.

    It computes the same as :class:`GraphTensors`, with blocks of columns and of rows.

    Args:
        graph: its arrays may be memory-mapped.
        scale: scales rows of features as the method needs them.
        workspace: where matrices are kept.
        device: where blocks of columns and rows are computed; the matrices are not kept there.
        learned: from another graph; default: learned from this graph.
    """

    def __init__(
        self,
        graph: Graph,
        scale: Scale,
        workspace: Workspace,
        device: torch.device | str = "cpu",
        learned: Learned | None = None,
    ) -> None:
        self._learned, self._columns_weighted = learned, graph.columns_weighted
        self.features, self.matrix = graph.features, graph.adjacency
        self.scale, self.workspace = scale, workspace
        self.neighbors = Neighbors(graph.adjacency, graph.weighted, device)

    @property
    def num_nodes(self) -> int:
        return self.neighbors.num_nodes

    @property
    def device(self) -> torch.device:
        return self.neighbors.device

    def ranges(self) -> Iterator[slice]:
        """All nodes, in blocks."""
        return row_ranges(self.num_nodes)

    def rows(self, nodes: Nodes) -> LargeRows:
        """What models read of some nodes."""
        return LargeRows(self, nodes)

    def feature_rows(self, nodes: Nodes, scale: Scale | None = None) -> Features:
        """Features of some nodes."""
        chosen = nodes.numpy() if isinstance(nodes, Tensor) else nodes
        rows = self.features[chosen]
        if not sp.issparse(rows):
            rows = np.array(rows, dtype=np.float32)
        found = to_features(scale(rows) if scale else rows, self.device)
        forget(self.features)
        return found

    def rows_of(self, matrix: Matrix, nodes: Nodes) -> Tensor:
        """``(m, d)`` rows of a matrix, on the device."""
        return matrix.rows(nodes).to(self.device)

    @cached_property
    def connected(self) -> Tensor:
        """``(n, 1)`` one for nodes with neighbors; for all nodes if none has."""
        found = self.neighbors.degrees > 0
        return (found if bool(found.any()) else ~found).float()

    @cached_property
    def weights(self) -> ColumnWeights:
        """Weights of the feature columns."""
        if self._learned is not None:
            known = self._learned.propagation
            return ColumnWeights(known.factor, known.center)
        return ColumnWeights.of_parts(
            lambda: (self.feature_rows(part) for part in self.ranges()), self._columns_weighted
        )

    @cached_property
    def some_nodes(self) -> Tensor:
        """Nodes at random, for estimates."""
        count = min(self.num_nodes, SAMPLE_FOR_DIRECTIONS)
        chosen = np.random.default_rng(0).choice(self.num_nodes, count, replace=False)
        return torch.from_numpy(np.sort(chosen))

    def weighted_rows(self, nodes: Nodes) -> Features:
        """Rows of length one of the weighted features."""
        return unit_rows(self.weights(self.feature_rows(nodes)))

    def plain_rows(self, nodes: Nodes) -> Features:
        """Rows of length one of the features."""
        return unit_rows(self.feature_rows(nodes))

    def directions(self, rows: Callable[[Nodes], Features]) -> Tensor:
        """``(d, k)`` directions of most variance, all if d is small."""
        columns = self.features.shape[1]
        if columns <= MOST_COLUMNS:
            return torch.eye(columns, device=self.device)
        return leading_directions(rows(self.some_nodes), min(MOST_COLUMNS, len(self.some_nodes)))

    @cached_property
    def view_directions(self) -> list[Tensor]:
        """``(d, k)`` directions of the weighted and of the plain features."""
        if self._learned is not None and self._learned.views is not None:
            return list(self._learned.views.directions)
        return [self.directions(rows) for rows in (self.weighted_rows, self.plain_rows)]

    @cached_property
    def smoothed(self) -> list[list[Matrix]]:
        """For each filter, the smoothed weighted and plain features."""
        versions = {"weighted features": self.weighted_rows, "features": self.plain_rows}
        found: list[list[Matrix]] = [[] for _ in FILTERS]
        for (name, rows), directions in zip(versions.items(), self.view_directions, strict=True):
            shape = self.num_nodes, directions.shape[1]
            product = product_with(rows, directions)
            for by, matrix in self.smooth_by(FILTERS, name, shape, product, means=True).items():
                found[FILTERS.index(by)].append(matrix)
        return found

    def smooth_by(
        self,
        filters: Sequence[Filter],
        name: str,
        shape: tuple[int, int],
        values: Matrix | Callable[[slice], Tensor],
        *,
        means: bool,
        title: str = "features",
    ) -> dict[Filter, Matrix]:
        """Smooth a matrix; filters with the same teleport share their steps.

        Args:
            filters: the filters.
            name: of the files.
            shape: of the matrix.
            values: the matrix, or a function that returns the rows of a range of nodes.
            means: whether to divide by the smoothed constant one, so that rows are means.
            title: what the matrix is, for the user.
        """
        found: dict[Filter, Matrix] = {}
        source = values if isinstance(values, Matrix) else None
        for teleport in dict.fromkeys(by.teleport for by in filters):
            same = sorted((by for by in filters if by.teleport == teleport), key=lambda f: f.hops)
            hops = tuple(by.hops for by in same)
            names = [f"{name.replace(' ', '-')}-{teleport:g}-{count}" for count in hops]
            matrices = self.workspace.find(names, shape)
            if matrices is None:
                if not isinstance(values, Matrix):
                    source = source or self.workspace.from_rows(name, shape, values, title)
                assert source is not None
                sums = self.row_sums(teleport, hops) if means else None
                smoothing = Smoothing(teleport, hops, sums)
                matrices = self.workspace.from_columns(
                    names, source, smoothing, self.neighbors, f"propagation of {title}"
                )
            found.update(zip(same, matrices, strict=True))
        if source is not None and source is not values:
            source.delete()
        return found

    def row_sums(self, teleport: float, hops: tuple[int, ...]) -> tuple[Tensor, ...]:
        """``(n, 1)`` the smoothed constant one after each number of hops."""
        if (teleport, hops) not in self._row_sums:
            ones = torch.ones(self.num_nodes, 1, device=self.device)
            smoothed = self.neighbors.smooth(ones, teleport, hops)
            self._row_sums[teleport, hops] = tuple(sums.clone() for sums in smoothed)
        return self._row_sums[teleport, hops]

    @cached_property
    def _row_sums(self) -> dict[tuple[float, tuple[int, ...]], tuple[Tensor, ...]]:
        return {}

    @cached_property
    def bases(self) -> list[list[Basis]]:
        """Directions of most variance of each matrix in ``smoothed``."""
        if self._learned is not None and self._learned.views is not None:
            return [list(own) for own in self._learned.views.bases]
        return [
            [self.basis(partial(self.rows_of, matrix), VIEW_DIMENSIONS) for matrix in own]
            for own in self.smoothed
        ]

    def basis(self, rows: Callable[[slice], Tensor], dimensions: int) -> Basis:
        """Directions of most variance of the rows of all nodes."""
        parts = ((rows(part), self.connected[part]) for part in self.ranges())
        return Basis.fit(parts, dimensions)

    @property
    def learned(self) -> Learned:
        """What other graphs need so that their features mean the same."""
        views = ViewBases(self.weights, self.view_directions, self.bases)
        return Learned(self.propagation, views)

    @cached_property
    def propagation(self) -> Propagation:
        """How features by number of hops are computed."""
        return self._propagated[0]

    @cached_property
    def hop_matrices(self) -> list[Matrix]:
        """Projected features of 0 to 3 hops, and their PageRank means."""
        return self._propagated[1]

    @cached_property
    def _propagated(self) -> tuple[Propagation, list[Matrix]]:
        """How features by number of hops are computed, and the result, before centering."""
        if self._learned is not None:
            return self._learned.propagation, self._propagate(self._learned.propagation)
        directions = self.directions(self.weighted_rows)
        basis = self.basis(product_with(self.weighted_rows, directions), DIMENSIONS)
        missing = min(DIMENSIONS, self.features.shape[1]) - basis.right.shape[1]
        projection = torch.nn.functional.pad(directions @ basis.right, (0, missing))
        offset = torch.nn.functional.pad(basis.mean @ basis.right, (0, missing))
        size = self.neighbors.degrees.log1p()
        degree = torch.stack([size.mean(), size.std(correction=0).clamp_min(1e-12)])
        weights = self.weights
        found = Propagation(weights.factor, weights.center, projection, offset, offset, degree)
        matrices = self._propagate(found)
        means = torch.stack([self.mean(matrix) for matrix in matrices])
        final = Propagation(weights.factor, weights.center, projection, offset, means, degree)
        return final, matrices

    def _propagate(self, by: Propagation) -> list[Matrix]:
        """Projected features of 0 to 3 hops, and their PageRank means."""
        shape = self.num_nodes, by.projection.shape[1]
        zero = self.workspace.from_rows(
            "0-hops", shape, lambda nodes: by.project(self.feature_rows(nodes)), "features"
        )
        names = [name.replace(" ", "-") for name in HOPS[1:]]
        hops = self.workspace.from_columns(
            names, zero, Means(len(names)), self.neighbors, "propagation of features"
        )
        pagerank = self.smooth_by([SMOOTH], "projected features", shape, zero, means=True)[SMOOTH]
        return [zero, *hops, pagerank]

    def mean(self, matrix: Matrix) -> Tensor:
        """``(d,)`` mean of the rows."""
        totals = [self.rows_of(matrix, part).double().sum(0) for part in self.ranges()]
        return (torch.stack(totals).sum(0) / self.num_nodes).float()

    def smooth(self, values: NodeFunction, by: Filter, name: str) -> NodeFunction:
        """See :meth:`GraphTensors.smooth`."""
        fits, _, columns = values(self.rows(slice(0, 1))).shape

        def wide(nodes: slice) -> Tensor:
            return values(self.rows(nodes)).transpose(0, 1).flatten(1)

        shape = self.num_nodes, fits * columns
        smoothed = self.smooth_by([by], name, shape, wide, means=False, title="labels")[by]

        def rows(nodes: NodeTensors) -> Tensor:
            return self.rows_of(smoothed, nodes.nodes).view(-1, fits, columns).transpose(0, 1)

        return rows


def product_with(
    rows: Callable[[Nodes], Features], directions: Tensor
) -> Callable[[Nodes], Tensor]:
    """A function that returns features of some nodes, projected to directions."""
    return lambda nodes: times(rows(nodes), directions)
