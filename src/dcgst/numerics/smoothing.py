"""Features smoothed over the graph, and their directions of most variance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dcgst.numerics.columns import MOST_COLUMNS, leading_directions, times
from dcgst.numerics.linalg import eigh
from dcgst.numerics.normalize import Features
from dcgst.numerics.products import spmm
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
        product = spmm(operator, z)
        if product.requires_grad:
            return (1 - self.teleport) * product + self.teleport * x
        return product.mul_(1 - self.teleport).add_(x, alpha=self.teleport)


REDUCE_BY = Filter(0.1, 2)
"""Wide features are reduced to the directions of most variance after this filter: what varies
between neighbors is lost by smoothing anyway."""

SMALLEST_VALUE = 1e-5
"""Components whose singular value is less than this part of the largest are zero."""


class Smoother:
    """Smoothing of features over a graph, with averaged rows and centered columns.

    Each row is divided by the smoothed constant one, so that it is a weighted mean of features and
    does not depend on the degrees.

    Args:
        operator: ``(n, n)`` normalized adjacency, symmetric.
    """

    def __init__(self, operator: SparseMatrix) -> None:
        self.operator = operator
        self.row_sums: dict[Filter, Tensor] = {}

    def means(self, z: Tensor, by: Filter) -> Tensor:
        """``(n, k)`` weighted means over the nodes around each node."""
        return by(self.operator, z) / self.sums(by)

    def smooth(self, z: Tensor, by: Filter) -> Tensor:
        """``(n, k)`` smoothed and centered."""
        return self.center(self.means(z, by))

    def transposed(self, z: Tensor, by: Filter) -> Tensor:
        """The transpose of :meth:`smooth`, applied to ``(n, k)`` with connected rows only."""
        return by(self.operator, self.center(z) * self.connected / self.sums(by))

    def center(self, z: Tensor) -> Tensor:
        return z - (self.connected * z).sum(0) / self.connected.sum()

    def sums(self, by: Filter) -> Tensor:
        """``(n, 1)`` the smoothed constant one."""
        if by not in self.row_sums:
            ones = torch.ones(self.operator.shape[0], 1, device=self.operator.values.device)
            self.row_sums[by] = by(self.operator, ones)
        return self.row_sums[by]

    @cached_property
    def connected(self) -> Tensor:
        """``(n, 1)`` one for nodes with neighbors; for all nodes if none has.

        The others do not influence the components: without features in common, each would be a
        component of its own.
        """
        pattern = self.operator.pattern
        between = pattern.rows[pattern.rows != pattern.indices]
        found = torch.bincount(between, minlength=self.operator.shape[0]) > 0
        found = found if bool(found.any()) else ~found
        return found[:, None].to(self.operator.values.dtype)

    def directions(self, x: Features, by: Filter) -> Tensor:
        """``(d, k)`` directions of most variance after smoothing, all if d is small."""
        n, columns = x.shape
        if columns <= MOST_COLUMNS:
            return torch.eye(columns, device=self.operator.values.device)
        return leading_directions(
            x,
            min(MOST_COLUMNS, n),
            lambda z: self.connected * self.smooth(z, by),
            lambda z: self.transposed(z, by),
        )

    def reduce(self, x: Features, by: Filter = REDUCE_BY) -> Tensor:
        """``(n, k)`` dense features with at most :data:`MOST_COLUMNS` columns."""
        return times(x, self.directions(x, by))


@dataclass(frozen=True)
class Basis:
    """Directions of most variance of features.

    Attributes:
        mean: ``(d,)``.
        values: ``(k,)`` singular values of the centered features, in descending order.
        right: ``(d, k)`` right singular vectors.
    """

    mean: Tensor
    values: Tensor
    right: Tensor

    @classmethod
    def fit(cls, rows: Iterable[tuple[Tensor, Tensor]], dimensions: int) -> Basis:
        """Learn the directions of ``(m, d)`` rows, as far as connected nodes determine them.

        They are the eigenvectors of the small Gram matrix in double precision, which always exist;
        an SVD of features that are nearly constant after strong smoothing may not converge on a
        GPU.

        Args:
            rows: features, and ``(m, 1)`` one for connected nodes, else zero; in several parts.
            dimensions: maximum number of directions.
        """
        nodes, count, total, gram = 0, *(torch.zeros(1, dtype=torch.double) for _ in range(3))
        for z, connected in rows:
            kept = (z * connected).double()
            nodes += len(z)
            count = count.to(z.device) + connected.double().sum()
            total = total.to(z.device) + kept.sum(0)
            gram = gram.to(z.device) + kept.T @ kept
        mean = total / count
        squares, vectors = eigh(gram - count * torch.outer(mean, mean))
        most = min(dimensions, nodes, len(mean))
        values = squares.clamp_min(0).sqrt().flip(0)[:most]
        right = vectors.flip(1)[:, :most]
        return cls(mean.to(z.dtype), values.to(z.dtype), right.to(z.dtype))

    def scores(self, z: Tensor) -> Tensor:
        """``(m, k)`` rows of the left singular vectors for ``(m, d)`` features."""
        kept = self.values > SMALLEST_VALUE * self.values[:1]
        factor = 1 / torch.where(kept, self.values, torch.inf)
        return (z - self.mean) @ self.right * factor

    def view(self, scores: Tensor, dimensions: int, whitening: float) -> Tensor:
        """``(m, dimensions)``: :math:`U S^{1-w}`; w is 0 for plain and 1 for white components."""
        return scores[:, :dimensions] * self.values[:dimensions] ** (1 - whitening)
