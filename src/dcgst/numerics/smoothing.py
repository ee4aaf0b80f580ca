"""Features smoothed over the graph, and their leading singular vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.engine.random import Streams, derive
from dcgst.graph import Graph
from dcgst.numerics.linalg import eigh, orthonormalize
from dcgst.numerics.normalize import (
    Features,
    normalize_adjacency,
    scale_to_one,
    to_features,
    unit_rows,
)
from dcgst.numerics.products import spmm
from dcgst.numerics.scale import inverse_power_of_two
from dcgst.numerics.sparse import SparseMatrix


@dataclass(frozen=True)
class Filter:
    r"""Personalized PageRank smoothing, :math:`Z_{k+1} = (1-a)\,\hat A Z_k + a\,X`.

    Attributes:
        teleport: a.
        hops: number of steps.
    """

    teleport: float
    hops: int

    def __call__(self, operator: SparseMatrix, x: Tensor) -> Tensor:
        z = x
        for _ in range(self.hops):
            z = self.step(operator, z, x)
        return z

    def step(self, operator: SparseMatrix, z: Tensor, x: Tensor) -> Tensor:
        """One step; the operator may hold some rows only if ``x`` holds the same rows."""
        return (1 - self.teleport) * spmm(operator, z) + self.teleport * x


class SmoothedFeatures:
    r"""Leading singular vectors of smoothed features, with averaged rows and centered columns.

    Each row is divided by the smoothed constant one, so that it is a weighted mean of features and
    does not depend on the degrees. The smoothed features are never formed: smoothing is a
    polynomial in the symmetric :math:`\hat A`, so products with them and with their transpose are
    sparse products with few columns.

    Args:
        x: ``(n, d)`` features.
        operator: ``(n, n)`` normalized adjacency, symmetric.
        smooth: the filter.
        dimensions: maximum number of singular vectors.
        seed: seed of the block iteration's start.
        iterations: number of block iterations.
    """

    def __init__(
        self,
        x: Features,
        operator: SparseMatrix,
        smooth: Filter,
        dimensions: int,
        *,
        seed: int = 0,
        iterations: int = 4,
    ) -> None:
        self.x, self.operator, self.smooth, self.seed = x, operator, smooth, seed
        self.dimensions = min(dimensions, *x.shape)
        self.iterations = iterations

    def view(self, dimensions: int, whitening: float) -> Tensor:
        """``(n, dimensions)``: :math:`U S^{1-w}`; w is 0 for plain and 1 for white components."""
        left, values, _ = self._decomposed
        return left[:, :dimensions] * values[:dimensions] ** (1 - whitening)

    def projection(self) -> Tensor:
        """``(d, dimensions)``: features times this, smoothed and centered, are the plain view."""
        _, values, right = self._decomposed
        return right * values

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Left singular vectors, singular values, and right vectors divided by the values.

        Block power iteration.
        """
        n, columns = self.x.shape
        width = min(self.dimensions + 16, n, columns)
        ones = torch.ones(n, 1, device=self.operator.values.device)
        row_sums = self.smooth(self.operator, ones)  # (n, 1)
        kept = self._connected[:, None].to(ones.dtype)

        def smoothed(right: Tensor) -> Tensor:
            z = self.smooth(self.operator, self._product(right)) / row_sums
            return z - (kept * z).sum(0) / kept.sum()

        def times(right: Tensor) -> Tensor:
            return kept * smoothed(right)

        def transposed_times(left: Tensor) -> Tensor:
            centered = kept * (left - (kept * left).sum(0) / kept.sum())
            return self._transposed_product(self.smooth(self.operator, centered / row_sums))

        start = Streams([derive(self.seed, 0)]).uniform(columns, width)[0] - 0.5
        basis = orthonormalize(times(start.to(ones.device)))
        for _ in range(self.iterations):
            basis = orthonormalize(times(transposed_times(basis)))
        # Strong smoothing leaves most singular values near zero, where an SVD on a GPU may not
        # converge. The eigenvectors of the small Gram matrix in double precision always exist.
        small = transposed_times(basis).double()
        squares, inner = eigh(small.T @ small)
        values = squares.clamp_min(0).sqrt().flip(0)[: self.dimensions].to(basis.dtype)
        leading = inner.flip(1)[:, : self.dimensions].to(basis.dtype)
        left = basis @ leading
        right = small.to(basis.dtype) @ leading / values.square().clamp_min(1e-12)
        if not bool(self._connected.all()):
            left = torch.where(self._connected[:, None], left, smoothed(right))
        return left, values, right

    @property
    def _connected(self) -> Tensor:
        """``(n,)`` bool, nodes with neighbors; all nodes if none has.

        The others do not influence the singular vectors: without features in common, each would be
        a singular vector of its own.
        """
        diagonal = self.operator.pattern.rows == self.operator.pattern.indices
        n = self.x.shape[0]
        neighbors = torch.bincount(self.operator.pattern.rows[~diagonal], minlength=n)
        connected = neighbors > 0
        return connected if bool(connected.any()) else ~connected

    def _product(self, right: Tensor) -> Tensor:
        return spmm(self.x, right) if isinstance(self.x, SparseMatrix) else self.x @ right

    def _transposed_product(self, left: Tensor) -> Tensor:
        if isinstance(self.x, SparseMatrix):
            return spmm(self.x.transposed, left)
        return self.x.T @ left


def smoothed_components(
    graph: Graph, hops: int, dimensions: int = 32, whitening: float = 0.0
) -> Tensor:
    """``(n, d)`` leading components of a graph's features after ``hops`` steps of smoothing.

    The features are scaled so that the largest magnitude is between 1/2 and 1.

    Args:
        graph: the graph.
        hops: 0 for the features themselves.
        dimensions: maximum number of components.
        whitening: 0 for plain components, 1 for components of equal variance.
    """
    operator = normalize_adjacency(SparseMatrix.from_scipy(graph.adjacency))
    x = scale_to_one(to_features(graph.features))
    return SmoothedFeatures(x, operator, Filter(0.1, hops), dimensions).view(dimensions, whitening)


FILTERS = (Filter(0.05, 40), Filter(0.1, 10), Filter(0.1, 4))
SHAPES = ((16, 0.6), (64, 0.3), (128, 0.5))
"""Views of smoothed features: number of dimensions and whitening."""

Views = list[Tensor]
"""``(n, d)`` rows of unit length, all smoothed by the same filter."""


def views_of(x: Features, operator: SparseMatrix) -> list[Views]:
    """For each filter, views of the weighted and of the plain features, in all shapes."""
    most = max(dimensions for dimensions, _ in SHAPES)
    views: list[Views] = []
    for smooth in FILTERS:
        of_filter: Views = []
        for scaled in (unit_rows(weight_columns(x)), unit_rows(x)):
            smoothed = SmoothedFeatures(scaled, operator, smooth, most)
            of_filter += [F.normalize(smoothed.view(*shape), dim=-1) for shape in SHAPES]
        views.append(of_filter)
    return views


def weight_columns(x: Features) -> Features:
    """Weight columns by information: tf-idf for sparse features, unit variance for dense."""
    return ColumnWeights.of(x)(x)


@dataclass(frozen=True)
class ColumnWeights:
    """A linear map of each column.

    Attributes:
        factor: ``(d,)`` that each column is multiplied by.
        center: ``(d,)`` subtracted from dense columns afterwards.
    """

    factor: Tensor
    center: Tensor

    @classmethod
    def of(cls, x: Features) -> ColumnWeights:
        """Inverse document frequency for sparse features, the standard score for dense."""
        if isinstance(x, SparseMatrix):
            nodes, columns = x.shape
            having = torch.bincount(x.pattern.indices, minlength=columns)
            idf = ((1 + nodes) / (1 + having)).log() + 1
            return cls(idf, torch.zeros_like(idf))
        scale = inverse_power_of_two(x.abs().amax(0))
        std = (x * scale).std(0, correction=0)
        factor = scale / torch.where(std > 0, std, 1.0)
        return cls(factor, (x * factor).mean(0))

    def __call__(self, x: Features) -> Features:
        if isinstance(x, SparseMatrix):
            return x.with_values(x.values * self.factor[x.pattern.indices])
        return x * self.factor - self.center
