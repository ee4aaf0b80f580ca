"""Normalization of adjacency matrices and feature rows, and exact scaling."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.features.sparse import SparseMatrix
from dcgst.graph import FeatureMatrix


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


def normalize_adjacency(adjacency: SparseMatrix) -> SparseMatrix:
    """``D^-1/2 (A + I) D^-1/2``, differentiable in the values."""
    looped = adjacency.with_loops()
    pattern = looped.pattern
    scale = pattern.row_sums(looped.values).rsqrt()
    ends = scale[..., pattern.rows] * scale[..., pattern.indices]
    return looped.with_values(looped.values * ends)


def normalize_scipy(adjacency: sp.csr_array, loops: bool = False) -> sp.csr_array:
    """``D^-1/2 A D^-1/2`` of a SciPy matrix, in its precision; with ``loops``, of A + I.

    Rows of isolated nodes stay zero.
    """
    matrix = adjacency + sp.eye_array(adjacency.shape[0], format="csr") if loops else adjacency
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))


def random_walk(adjacency: sp.csr_array) -> sp.csr_array:
    """``A D^-1``: column j holds the transition probabilities of a random walk from node j."""
    degree = np.asarray(adjacency.sum(axis=0)).reshape(-1)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(adjacency @ sp.diags_array(inverse))


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
