"""Views for EM: features smoothed by several filters and reduced to several dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from dcgst.numerics.columns import ColumnWeights, times
from dcgst.numerics.normalize import Features, unit_rows
from dcgst.numerics.smoothing import REDUCE_BY, Basis, Filter, Smoother
from dcgst.numerics.sparse import SparseMatrix

FILTERS = (Filter(0.05, 40), Filter(0.1, 10), Filter(0.1, 4))
SHAPES = ((16, 0.6), (64, 0.3), (128, 0.5))
"""Views of smoothed features: number of dimensions and whitening."""

Views = list[Tensor]
"""``(n, d)`` rows of unit length, all smoothed by the same filter."""

DIMENSIONS = max(dimensions for dimensions, _ in SHAPES)


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

    def __call__(self, x: Features, operator: SparseMatrix) -> Sequence[Views]:
        """For each filter, views of both versions in all shapes.

        Args:
            x: ``(n, d)`` features.
            operator: ``(n, n)`` normalized adjacency, symmetric.
        """
        smoother = Smoother(operator)
        reduced = [
            times(version, own)
            for version, own in zip(_versions(x, self.weights), self.directions, strict=True)
        ]

        def views_by(number: int) -> Views:
            bases, by = self.bases[number], FILTERS[number]
            smoothed = (smoother.means(z, by) for z in reduced)
            return views_of(bases, [b.scores(z) for b, z in zip(bases, smoothed, strict=True)])

        return OneFilterAtATime(views_by)


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


def learn_views(
    x: Features, operator: SparseMatrix, columns_weighted: bool = False
) -> tuple[ViewBases, list[Views]]:
    """Learn how to compute views, and the views of the same graph.

    Args:
        x: ``(n, d)`` features.
        operator: ``(n, n)`` normalized adjacency, symmetric.
        columns_weighted: whether the columns have weights already.
    """
    smoother, weights = Smoother(operator), ColumnWeights.of(x, columns_weighted)
    versions = _versions(x, weights)
    directions = [smoother.directions(version, REDUCE_BY) for version in versions]
    reduced = [times(version, own) for version, own in zip(versions, directions, strict=True)]
    learned: list[list[Basis]] = []
    views: list[Views] = []
    for by in FILTERS:
        smoothed = [smoother.means(z, by) for z in reduced]
        bases = [Basis.fit([(z, smoother.connected)], DIMENSIONS) for z in smoothed]
        scores = [basis.scores(z) for basis, z in zip(bases, smoothed, strict=True)]
        learned.append(bases)
        views.append(views_of(bases, scores))
    return ViewBases(weights, directions, learned), views


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


def _versions(x: Features, weights: ColumnWeights) -> list[Features]:
    """Weighted and plain features, rows of length one."""
    return [unit_rows(weights(x)), unit_rows(x)]
