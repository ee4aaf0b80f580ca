"""Features of a graph of any size, propagated over it in blocks of columns and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dcgst.features.columns import (
    MOST_COLUMNS,
    ColumnWeights,
    Features,
    leading_directions,
    times,
    to_features,
    unit_rows,
)
from dcgst.features.matrix import (
    ROWS,
    Matrix,
    Means,
    Neighbors,
    Nodes,
    Smoothing,
    Workspace,
    row_ranges,
)
from dcgst.features.smoothing import (
    FILTERS,
    HOP_DIMENSIONS,
    HOPS,
    NO_SMOOTHING,
    REDUCE_BY,
    SMOOTH,
    VIEW_DIMENSIONS,
    Basis,
    Filter,
    Propagation,
    ViewBases,
    Views,
    views_of,
)
from dcgst.graph import FeatureMatrix
from dcgst.graph.references import ByReference
from dcgst.memory import forget

SAMPLE_FOR_DIRECTIONS = 20_000
"""Rows of a large graph from which the directions of most variance of features are computed."""


@dataclass(frozen=True)
class Learned:
    """What is learned from the features of a graph, so that those of others mean the same.

    Attributes:
        propagation: how features by number of hops are computed.
        views: how views for EM are computed; None if no model reads them.
    """

    propagation: Propagation
    views: ViewBases | None = None


class GraphFeatures(ByReference):
    """The features of a graph, and what is computed from them once for all methods and runs.

    Propagated features are kept in memory if it suffices, else in files.

    Args:
        features: ``(n, d)``; they may be memory-mapped.
        neighbors: the edges; blocks of columns and rows are computed on their device.
        workspace: where matrices are kept; default in memory, on the device.
        columns_weighted: whether the columns of the features have weights already.
        learned: from another graph; default: learned from this graph.
    """

    def __init__(
        self,
        features: FeatureMatrix,
        neighbors: Neighbors,
        workspace: Workspace | None = None,
        *,
        columns_weighted: bool = False,
        learned: Learned | None = None,
    ) -> None:
        self._learned, self._columns_weighted = learned, columns_weighted
        self.features, self.neighbors = features, neighbors
        self.workspace = workspace or Workspace(device=neighbors.device)
        self._row_sums: dict[tuple[float, tuple[int, ...]], tuple[Tensor, ...]] = {}
        self._by_others: dict[str, list[Matrix]] = {}

    @property
    def num_nodes(self) -> int:
        return self.neighbors.num_nodes

    @property
    def device(self) -> torch.device:
        return self.neighbors.device

    def ranges(self) -> Iterator[slice]:
        """All nodes, in blocks."""
        return row_ranges(self.num_nodes)

    def rows(self, nodes: Nodes) -> FeatureMatrix:
        """Features of some nodes as they are in the graph."""
        rows: FeatureMatrix = self.features[nodes.numpy() if isinstance(nodes, Tensor) else nodes]
        if not sp.issparse(rows):
            rows = np.array(rows, dtype=np.float32)
        forget(self.features)
        return rows

    def feature_rows(self, nodes: Nodes) -> Features:
        """The same as tensors on the device."""
        return to_features(self.rows(nodes), self.device)

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
        return ColumnWeights.of(
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

    def directions(self, rows: Callable[[Nodes], Features], by: Filter = NO_SMOOTHING) -> Tensor:
        """``(d, k)`` directions of most variance, all if d is small.

        Args:
            rows: returns features of some nodes.
            by: the variance is that after this filter; on a large graph, that of some nodes without
                a filter, which is faster.
        """
        columns = self.features.shape[1]
        if columns <= MOST_COLUMNS:
            return torch.eye(columns, device=self.device)
        if self.num_nodes > ROWS:
            found = rows(self.some_nodes)
            return leading_directions(found, min(MOST_COLUMNS, len(self.some_nodes)))
        count = min(MOST_COLUMNS, self.num_nodes)
        return leading_directions(
            rows(slice(None)),
            count,
            lambda z: self.connected * self.center(self.means(z, by)),
            lambda z: self.transposed_means(self.connected * self.center(z), by),
        )

    def center(self, z: Tensor) -> Tensor:
        """``(n, k)`` minus the mean over connected nodes."""
        return z - (self.connected * z).sum(0) / self.connected.sum()

    def means(self, z: Tensor, by: Filter) -> Tensor:
        """``(n, k)`` smoothed; each row is a weighted mean over the nodes around a node."""
        if not by.hops:
            return z
        (smoothed,) = self.neighbors.smooth(z.clone(), by.teleport, [by.hops])
        return smoothed / self.row_sums(by.teleport, (by.hops,))[0]

    def transposed_means(self, z: Tensor, by: Filter) -> Tensor:
        """The transpose of :meth:`means`, applied to ``(n, k)``."""
        if not by.hops:
            return z
        scaled = z / self.row_sums(by.teleport, (by.hops,))[0]
        (smoothed,) = self.neighbors.smooth(scaled, by.teleport, [by.hops])
        return smoothed

    @cached_property
    def view_directions(self) -> list[Tensor]:
        """``(d, k)`` directions of the weighted and of the plain features."""
        if self._learned is not None and self._learned.views is not None:
            return list(self._learned.views.directions)
        versions = self.weighted_rows, self.plain_rows
        return [self.directions(rows, REDUCE_BY) for rows in versions]

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

    def views(self, nodes: Nodes, number: int) -> Views:
        """Views of some nodes, of the features smoothed by one filter."""
        bases = self.bases[number]
        scores = [
            basis.scores(self.rows_of(matrix, nodes))
            for basis, matrix in zip(bases, self.smoothed[number], strict=True)
        ]
        return views_of(bases, scores)

    @property
    def learned(self) -> Learned:
        """What other graphs need so that their features mean the same."""
        views = ViewBases(self.weights, self.view_directions, self.bases)
        return Learned(self.propagation, views)

    @cached_property
    def propagation(self) -> Propagation:
        """How features by number of hops are computed."""
        return self._propagated[0]

    def propagated(self, nodes: Nodes, by: Propagation | None = None) -> dict[str, Tensor]:
        """Features of some nodes by number of hops, ``(m, k)`` each.

        Args:
            nodes: the nodes.
            by: of another graph; default that of this graph.
        """
        if by is None or by.equals(self.propagation):
            by, matrices = self._propagated
        else:
            matrices = self._propagated_by_others(by)
        rows = [self.rows_of(matrix, nodes) for matrix in matrices]
        return by.normalize(rows, self.neighbors.degrees[nodes])

    def _propagated_by_others(self, by: Propagation) -> list[Matrix]:
        """Projected features as on another graph, computed once for each."""
        digest = by.digest()
        if digest not in self._by_others:
            self._by_others[digest] = self._propagate(by, f"{digest}-")
        return self._by_others[digest]

    @cached_property
    def _propagated(self) -> tuple[Propagation, list[Matrix]]:
        """How features by number of hops are computed, and the result, before centering."""
        if self._learned is not None:
            return self._learned.propagation, self._propagate(self._learned.propagation)
        directions = self.directions(self.weighted_rows)
        basis = self.basis(product_with(self.weighted_rows, directions), HOP_DIMENSIONS)
        missing = min(HOP_DIMENSIONS, self.features.shape[1]) - basis.right.shape[1]
        projection = torch.nn.functional.pad(directions @ basis.right, (0, missing))
        offset = torch.nn.functional.pad(basis.mean @ basis.right, (0, missing))
        size = self.neighbors.degrees.log1p()
        degree = torch.stack([size.mean(), size.std(correction=0).clamp_min(1e-12)])
        weights = self.weights
        nothing = torch.zeros(len(HOPS) + 1, len(offset), device=self.device)
        found = Propagation(weights.factor, weights.center, projection, offset, nothing, degree)
        matrices = self._propagate(found)
        means = torch.stack([self.mean(matrix) for matrix in matrices])
        return replace(found, means=means), matrices

    def _propagate(self, by: Propagation, prefix: str = "") -> list[Matrix]:
        """Projected features of 0 to 3 hops, and their PageRank means."""
        shape = self.num_nodes, by.projection.shape[1]
        names = [prefix + name.replace(" ", "-") for name in HOPS]
        zero = self.workspace.from_rows(
            names[0], shape, lambda nodes: by.project(self.feature_rows(nodes)), "features"
        )
        hops = self.workspace.from_columns(
            names[1:], zero, Means(len(HOPS) - 1), self.neighbors, "propagation of features"
        )
        name = prefix + "projected features"
        pagerank = self.smooth_by([SMOOTH], name, shape, zero, means=True)[SMOOTH]
        return [zero, *hops, pagerank]

    def mean(self, matrix: Matrix) -> Tensor:
        """``(d,)`` mean of the rows."""
        totals = [self.rows_of(matrix, part).double().sum(0) for part in self.ranges()]
        return (torch.stack(totals).sum(0) / self.num_nodes).float()


def product_with(
    rows: Callable[[Nodes], Features], directions: Tensor
) -> Callable[[Nodes], Tensor]:
    """A function that returns features of some nodes, projected to directions."""
    return lambda nodes: times(rows(nodes), directions)
