"""Rows and columns of features: scaling, weights, reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.features.linalg import orthonormalize
from dcgst.features.sparse import SparseMatrix, spmm
from dcgst.graph import FeatureMatrix
from dcgst.train.random import Streams, derive


def inverse_power_of_two(magnitudes: Tensor) -> Tensor:
    """The powers of two that scale positive magnitudes to [0.5, 1); one for zero.

    Example:
        >>> inverse_power_of_two(torch.tensor([0.0, 1.0, 6.0, 1e-30])) * 1e-30
        tensor([1.0000e-30, 5.0000e-31, 1.2500e-31, 6.3383e-01])
    """
    exponent = torch.frexp(magnitudes).exponent.clamp(-125, 125)
    return torch.ldexp(torch.ones_like(magnitudes), -exponent)


def inverse_power_of_two_array(magnitudes: NDArray[np.float32]) -> NDArray[np.float32]:
    """:func:`inverse_power_of_two` for arrays.

    Example:
        >>> inverse_power_of_two_array(np.array([0, 6], dtype=np.float32))
        array([1.   , 0.125], dtype=float32)
    """
    _, exponent = np.frexp(magnitudes)
    scale: NDArray[np.float32] = np.ldexp(np.float32(1), -np.clip(exponent, -125, 125))
    return scale


Features = Tensor | SparseMatrix
"""``(n, d)`` node features shared by all replicas, dense or sparse."""


def scale_rows(features: FeatureMatrix, norm: str) -> FeatureMatrix:
    """Scale feature rows: ``l2`` to length one, ``row`` to absolute sum one, ``none`` not at all.

    Rows of zeros stay zero. (``sklearn.preprocessing.normalize`` rounds differently in float32,
    which would change every stored result.)

    Example:
        >>> scale_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32), "l2")
        array([[0.6, 0.8],
               [0. , 0. ]], dtype=float32)
    """
    if norm == "none":
        return features
    order = 1 if norm == "row" else 2
    if sp.issparse(features):
        largest = abs(features).max(axis=1).toarray().reshape(-1)
        features = sp.csr_array(sp.diags_array(inverse_power_of_two_array(largest)) @ features)
        lengths = sp.linalg.norm(features, ord=order, axis=1)
        inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return sp.csr_array(sp.diags_array(inverse) @ features).astype(np.float32)
    features = features * inverse_power_of_two_array(np.abs(features).max(axis=1, keepdims=True))
    lengths = np.linalg.norm(features, ord=order, axis=1, keepdims=True)
    return features / np.maximum(lengths, np.finfo(np.float32).tiny)


def unit_rows(x: Features) -> Features:
    """Scale the rows of a tensor or sparse matrix to length one; rows of zeros stay zero."""
    if not isinstance(x, SparseMatrix):
        return F.normalize(x * inverse_power_of_two(x.abs().amax(-1, keepdim=True)), dim=-1)
    rows = x.pattern.rows
    largest = x.values.new_zeros(x.shape[0]).scatter_reduce(0, rows, x.values.abs(), "amax")
    x = x.with_values(x.values * inverse_power_of_two(largest)[rows])
    lengths = x.pattern.row_sums(x.values**2).sqrt().clamp_min(torch.finfo(x.values.dtype).tiny)
    return x.with_values(x.values / lengths[x.pattern.rows])


def largest_magnitude(x: Features) -> Tensor:
    """The largest absolute value, a scalar; zero if there are no values."""
    values = x.values if isinstance(x, SparseMatrix) else x
    return values.abs().amax() if values.numel() else torch.zeros(())


def scale_features(x: Features, factor: Tensor) -> Features:
    """Multiply all features by one number."""
    if isinstance(x, SparseMatrix):
        return x.with_values(x.values * factor)
    return x * factor


def to_features(matrix: FeatureMatrix, device: torch.device | str = "cpu") -> Features:
    """Convert a feature matrix to tensors; CSR stays sparse if at most a fifth is nonzero."""
    if not sp.issparse(matrix):
        return torch.tensor(matrix, device=device)
    if matrix.nnz > matrix.shape[0] * matrix.shape[1] / 5:
        return torch.tensor(matrix.toarray(), device=device)
    return SparseMatrix.from_scipy(matrix, device)


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
