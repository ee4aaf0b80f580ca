"""Features of nodes smoothed over the edges: filters, and how features by hops are projected."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from dcgst.features.columns import ColumnWeights, Features, times, unit_rows
from dcgst.features.linalg import eigh
from dcgst.features.sparse import SparseMatrix, spmm


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


FILTERS = (Filter(0.05, 40), Filter(0.1, 10), Filter(0.1, 4))
SHAPES = ((16, 0.6), (64, 0.3), (128, 0.5))
"""Views of smoothed features: number of dimensions and whitening."""

Views = list[Tensor]
"""``(n, d)`` rows of unit length, all smoothed by the same filter."""

VIEW_DIMENSIONS = max(dimensions for dimensions, _ in SHAPES)


@dataclass(frozen=True)
class ViewBases:
    """How views are computed, learned on one graph and applicable to others.

    There are two versions of the features: with weighted columns, and plain.

    Attributes:
        weights: of the columns.
        directions: ``(d, k)`` of both versions, to which the features are reduced first.
        bases: of the smoothed features: for each filter, those of both versions.
    """

    weights: ColumnWeights
    directions: Sequence[Tensor]
    bases: Sequence[Sequence[Basis]]


class OneFilterAtATime(Sequence[Views]):
    """Views of many nodes: those of the filter that was asked for last are kept.

    Args:
        compute: returns the views of a filter, by its number.
    """

    def __init__(self, compute: Callable[[int], Views]) -> None:
        self.compute, self.number = compute, -1
        self.last: Views = []

    def __len__(self) -> int:
        return len(FILTERS)

    def __getitem__(self, number: int) -> Views:  # type: ignore[override]
        if not 0 <= number < len(self):
            raise IndexError(number)
        if number != self.number:
            self.last = []  # frees its memory first
            self.number, self.last = number, self.compute(number)
        return self.last


def views_of(bases: Sequence[Basis], scores: Sequence[Tensor]) -> Views:
    """Views of features smoothed by one filter, in all shapes.

    Args:
        bases: of the weighted and of the plain features.
        scores: ``(m, k)`` of both.
    """
    return [
        F.normalize(basis.view(own, *shape), dim=-1)
        for basis, own in zip(bases, scores, strict=True)
        for shape in SHAPES
    ]


HOPS = ("0 hops", "1 hop", "2 hops", "3 hops")
PAGERANK = "PageRank"
DEGREE = "degree"
HOP_DIMENSIONS = 64
SMOOTH = Filter(0.1, 15)
NO_SMOOTHING = Filter(0.0, 0)


@dataclass(frozen=True)
class Propagation:
    """Blocks of node features by number of hops, learned on one graph and applicable to others.

    The blocks are the features themselves, their means over the neighbors after 1, 2 and 3 steps of
    a random walk without self-loops, their personalized PageRank mean, and the degree. Kept apart,
    they allow a model to learn which of them separate the classes; a sum over hops, as in a GCN,
    assumes that neighbors are alike.

    Attributes:
        factor: ``(d,)`` of :class:`ColumnWeights`.
        center: ``(d,)`` of :class:`ColumnWeights`.
        projection: ``(d, k)`` to at most 64 dimensions.
        offset: ``(k,)`` mean of the projected features.
        means: ``(5, k)`` means of the blocks.
        degree: ``(2,)`` mean and standard deviation of the logarithm of degrees.
    """

    factor: Tensor
    center: Tensor
    projection: Tensor
    offset: Tensor
    means: Tensor
    degree: Tensor

    @classmethod
    def empty(cls, num_features: int) -> Propagation:
        """All tensors in their shapes, to be replaced by those of another."""
        k = min(HOP_DIMENSIONS, num_features)
        return cls(
            factor=torch.ones(num_features),
            center=torch.zeros(num_features),
            projection=torch.zeros(num_features, k),
            offset=torch.zeros(k),
            means=torch.zeros(len(HOPS) + 1, k),
            degree=torch.tensor([0.0, 1.0]),
        )

    def equals(self, other: Propagation) -> bool:
        """Whether another graph's blocks would be computed in the same way."""
        return all(
            torch.equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def digest(self) -> str:
        """A short text that differs if blocks are computed in another way."""
        found = hashlib.sha256()
        for field in fields(self):
            found.update(getattr(self, field.name).numpy(force=True).tobytes())
        return found.hexdigest()[:16]

    def project(self, x: Features) -> Tensor:
        """``(m, k)`` weighted and projected rows of features."""
        weighted = unit_rows(ColumnWeights(self.factor, self.center)(x))
        return times(weighted, self.projection) - self.offset

    def normalize(self, propagated: Sequence[Tensor], degrees: Tensor) -> dict[str, Tensor]:
        """Blocks by name: ``(m, k)`` rows of length one after centering, and the degree.

        Args:
            propagated: of 0 to 3 hops, and the PageRank means, ``(m, k)`` each.
            degrees: ``(m, 1)``.
        """
        blocks = {
            name: F.normalize(block - mean, dim=-1)
            for name, block, mean in zip((*HOPS, PAGERANK), propagated, self.means, strict=True)
        }
        mean, std = self.degree
        return {**blocks, DEGREE: (degrees.log1p() - mean) / std}
