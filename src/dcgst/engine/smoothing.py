"""Features smoothed over the graph, seen through their leading singular vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from dcgst.engine.random import Streams, derive
from dcgst.engine.sparse import SparseMatrix, spmm


class SmoothedFeatures:
    r"""Leading singular vectors of :math:`Z_k`, :math:`Z_{k+1} = .9\,\hat A Z_k + .1\,X`, centred.

    The smoothed features are never formed: smoothing is a polynomial in the symmetric
    :math:`\hat A`, so products with them and their transpose are sparse products of few columns.

    Args:
        x: ``(n, d)`` features.
        operator: ``(n, n)`` normalised adjacency, symmetric.
        dimensions: the most singular vectors that will be asked for.
        seed: decides the random start of the block iteration.
    """

    def __init__(
        self, x: Tensor | SparseMatrix, operator: SparseMatrix, dimensions: int, seed: int = 0
    ) -> None:
        self.x, self.operator, self.seed = x, operator, seed
        self.dimensions = min(dimensions, *x.shape)
        self._decomposed: dict[int, tuple[Tensor, Tensor]] = {}

    def view(self, hops: int, dimensions: int, whitening: float) -> Tensor:
        """``(n, dimensions)``: :math:`U S^{1-w}`, from plain components (w = 0) to white ones."""
        if hops not in self._decomposed:
            self._decomposed[hops] = self._decompose(hops)
        left, values = self._decomposed[hops]
        return left[:, :dimensions] * values[:dimensions] ** (1 - whitening)

    def _decompose(self, hops: int, iterations: int = 6) -> tuple[Tensor, Tensor]:
        """Left singular vectors and singular values by block power iteration."""
        n, columns = self.x.shape
        width = min(self.dimensions + 16, n, columns)
        ones = torch.ones(n, 1, device=self.operator.values.device)
        mean = self._transposed(self._smooth(ones, hops)) / n  # (d, 1)

        def times(right: Tensor) -> Tensor:
            return self._smooth(self._product(right), hops) - mean.T @ right

        def transposed_times(left: Tensor) -> Tensor:
            return self._transposed(self._smooth(left, hops)) - mean @ left.sum(0, keepdim=True)

        start = Streams([derive(self.seed, 0)]).uniform(columns, width)[0] - 0.5
        basis = torch.linalg.qr(times(start.to(ones.device))).Q
        for _ in range(iterations):
            basis = torch.linalg.qr(times(transposed_times(basis))).Q
        inner, values, _ = torch.linalg.svd(transposed_times(basis).T, full_matrices=False)
        return (basis @ inner)[:, : self.dimensions], values[: self.dimensions]

    def _smooth(self, z: Tensor, hops: int) -> Tensor:
        start = z
        for _ in range(hops):
            z = 0.9 * spmm(self.operator, z) + 0.1 * start
        return z

    def _product(self, right: Tensor) -> Tensor:
        return spmm(self.x, right) if isinstance(self.x, SparseMatrix) else self.x @ right

    def _transposed(self, left: Tensor) -> Tensor:
        if isinstance(self.x, SparseMatrix):
            return spmm(self.x.transposed, left)
        return self.x.T @ left
