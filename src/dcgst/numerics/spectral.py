"""Features computed from the graph alone: its leading eigenvectors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from dcgst.engine.random import Streams, derive
from dcgst.numerics.linalg import eigh, orthonormalize
from dcgst.numerics.normalize import normalize_scipy
from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import SparseMatrix


def spectral_features(
    adjacency: sp.csr_array, dimensions: int, *, iterations: int = 12, seed: int = 0
) -> NDArray[np.float32]:
    """``(n, dimensions)`` leading eigenvectors of the normalized adjacency, rows of unit length.

    Computed by block power iteration with 16 extra vectors and a final Rayleigh–Ritz step, on
    ``(Â + I) / 2`` so that negative eigenvalues are never leading. Isolated nodes have zeros.
    """
    n = adjacency.shape[0]
    dimensions = min(dimensions, n)
    width = min(n, dimensions + 16)
    matrix = SparseMatrix.from_scipy(normalize_scipy(adjacency))
    basis = Streams([derive(seed, 0)]).uniform(n, width)[0] - 0.5
    for _ in range(iterations):
        basis = orthonormalize((spmm(matrix, basis) + basis) / 2)
    small = basis.T @ spmm(matrix, basis)
    values, vectors = eigh((small + small.T) / 2)
    leading = (basis @ vectors.flip(1)[:, :dimensions]) * values.flip(0)[:dimensions].clamp_min(0)
    leading[torch.from_numpy(np.diff(adjacency.indptr) == 0)] = 0
    norms = leading.norm(dim=1, keepdim=True)
    features: NDArray[np.float32] = (leading / norms.clamp_min(1e-12)).numpy()
    return features
