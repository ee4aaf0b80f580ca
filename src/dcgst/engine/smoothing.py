"""Features smoothed over the graph, seen through their leading singular vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dcgst.engine.random import Streams, derive
from dcgst.engine.sparse import SparseMatrix, spmm


@dataclass(frozen=True)
class Filter:
    r"""How far to smooth: :math:`Z_{k+1} = (1-a)\,\hat A Z_k + a\,X`, so many hops."""

    teleport: float
    hops: int

    def __call__(self, operator: SparseMatrix, z: Tensor) -> Tensor:
        start = z
        for _ in range(self.hops):
            z = (1 - self.teleport) * spmm(operator, z) + self.teleport * start
        return z


class SmoothedFeatures:
    r"""Leading singular vectors of smoothed features, rows averaged, columns centred.

    Each row is divided by what smoothing makes of the constant one: it becomes a weighted mean of
    features, and centring leaves no trace of the degrees. The smoothed features are never formed:
    smoothing is a polynomial in the symmetric :math:`\hat A`, so products with them and their
    transpose are sparse products of few columns.

    Args:
        x: ``(n, d)`` features.
        operator: ``(n, n)`` normalised adjacency, symmetric.
        smooth: the filter.
        dimensions: the most singular vectors that will be asked for.
        seed: decides the random start of the block iteration.
        iterations: of the block iteration.
    """

    def __init__(
        self,
        x: Tensor | SparseMatrix,
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
        """``(n, dimensions)``: :math:`U S^{1-w}`, from plain components (w = 0) to white ones."""
        left, values = self._decomposed
        return left[:, :dimensions] * values[:dimensions] ** (1 - whitening)

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor]:
        """Left singular vectors and singular values by block power iteration."""
        n, columns = self.x.shape
        width = min(self.dimensions + 16, n, columns)
        ones = torch.ones(n, 1, device=self.operator.values.device)
        reach = self.smooth(self.operator, ones)  # (n, 1)

        def times(right: Tensor) -> Tensor:
            z = self.smooth(self.operator, self._product(right)) / reach
            return z - z.mean(0)

        def transposed_times(left: Tensor) -> Tensor:
            centred = left - left.mean(0)
            return self._transposed(self.smooth(self.operator, centred / reach))

        start = Streams([derive(self.seed, 0)]).uniform(columns, width)[0] - 0.5
        basis = torch.linalg.qr(times(start.to(ones.device))).Q
        for _ in range(self.iterations):
            basis = torch.linalg.qr(times(transposed_times(basis))).Q
        # Far smoothing leaves most singular values near zero, where an SVD may fail to converge on
        # a GPU; the small Gram matrix in double precision always has its eigenvectors.
        small = transposed_times(basis).double()
        squares, inner = torch.linalg.eigh(small.T @ small)
        values = squares.clamp_min(0).sqrt().flip(0)[: self.dimensions]
        leading = inner.flip(1)[:, : self.dimensions]
        return basis @ leading.to(basis.dtype), values.to(basis.dtype)

    def _product(self, right: Tensor) -> Tensor:
        return spmm(self.x, right) if isinstance(self.x, SparseMatrix) else self.x @ right

    def _transposed(self, left: Tensor) -> Tensor:
        if isinstance(self.x, SparseMatrix):
            return spmm(self.x.transposed, left)
        return self.x.T @ left
