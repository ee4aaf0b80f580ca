"""Weights of feature columns, and their reduction to fewer columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.features.linalg import orthonormalize
from dcgst.features.normalize import Features, inverse_power_of_two
from dcgst.features.sparse import SparseMatrix, spmm
from dcgst.train.random import Streams, derive

MOST_COLUMNS = 256
"""Features with more columns are reduced before they are smoothed."""


def weight_columns(x: Features, weighted: bool = False) -> Features:
    """Weight columns by information; see :meth:`ColumnWeights.of`."""
    return ColumnWeights.of(lambda: [x], weighted)(x)


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
    def of(cls, parts: Callable[[], Iterable[Features]], weighted: bool = False) -> ColumnWeights:
        """Inverse document frequency for sparse features, the standard score for dense.

        Args:
            parts: returns features in parts of their rows; it is called up to three times.
            weighted: whether the columns have weights already, which are kept; dense columns are
                only centered.
        """
        if weighted:
            return cls.keeping(parts)
        first = next(iter(parts()))
        if isinstance(first, SparseMatrix):
            nodes, having = 0, first.pattern.indices.new_zeros(first.shape[1])
            for part in parts():
                assert isinstance(part, SparseMatrix)
                nodes += part.shape[0]
                having += torch.bincount(part.pattern.indices, minlength=len(having))
            idf = ((1 + nodes) / (1 + having)).log() + 1
            return cls(idf, torch.zeros_like(idf))
        largest = torch.stack([abs(part).amax(0) for part in _dense(parts())]).amax(0)
        scale = inverse_power_of_two(largest)
        count, total = 0, scale.new_zeros(2, len(scale), dtype=torch.double)
        for part in _dense(parts()):
            scaled = (part * scale).double()
            count += len(scaled)
            total += torch.stack([scaled.sum(0), scaled.square().sum(0)])
        mean, square = total / count
        variance = square - mean.square()
        # A constant column has a variance of zero, up to rounding.
        varies = variance > 1e-13 * mean.square()
        factor = scale / torch.where(varies, variance, 1.0).sqrt().float()
        return cls(factor, (mean / scale).float() * factor)

    @classmethod
    def keeping(cls, parts: Callable[[], Iterable[Features]]) -> ColumnWeights:
        """Factors of one; dense columns are centered."""
        count, total = 0, torch.zeros((), dtype=torch.double)
        for part in parts():
            if isinstance(part, SparseMatrix):
                factor = part.values.new_ones(part.shape[1])
                return cls(factor, torch.zeros_like(factor))
            count += len(part)
            total = total.to(part.device) + part.double().sum(0)
        return cls(torch.ones_like(total).float(), (total / count).float())

    def __call__(self, x: Features) -> Features:
        if isinstance(x, SparseMatrix):
            return x.with_values(x.values * self.factor[x.pattern.indices])
        return x * self.factor - self.center


def _dense(parts: Iterable[Features]) -> Iterator[Tensor]:
    for part in parts:
        assert isinstance(part, Tensor)
        yield part


def leading_directions(
    x: Features,
    count: int,
    smooth: Callable[[Tensor], Tensor] = lambda z: z,
    smooth_transposed: Callable[[Tensor], Tensor] = lambda z: z,
    iterations: int = 2,
) -> Tensor:
    """``(d, count)`` orthonormal directions that span most of the variance of smoothed features.

    They are found by block power iteration. The smoothed features are never formed.

    Args:
        x: ``(n, d)`` features.
        count: number of directions, at most n and d.
        smooth: a linear map of the nodes, applied to ``(n, k)``.
        smooth_transposed: its transpose.
        iterations: of the block iteration.
    """
    columns = x.shape[1]
    device = x.values.device if isinstance(x, SparseMatrix) else x.device
    start = Streams([derive(0, 0)]).uniform(columns, count)[0] - 0.5
    directions = start.to(device)
    for _ in range(iterations):
        basis = orthonormalize(smooth(times(x, directions)))
        directions = orthonormalize(transposed_times(x, smooth_transposed(basis)))
    return directions


def times(x: Features, right: Tensor) -> Tensor:
    """``(n, k)`` product of features and a matrix ``(d, k)``."""
    return spmm(x, right) if isinstance(x, SparseMatrix) else x @ right


def transposed_times(x: Features, left: Tensor) -> Tensor:
    """``(d, k)`` product of the transposed features and a matrix ``(n, k)``."""
    return spmm(x.transposed, left) if isinstance(x, SparseMatrix) else x.T @ left
