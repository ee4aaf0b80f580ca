"""Features from the graph alone: its leading eigenvectors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from dcgst.engine.random import Streams, derive
from dcgst.engine.sparse import SparseMatrix, spmm


def spectral_features(
    adjacency: sp.csr_array, dimensions: int, *, iterations: int = 12, seed: int = 0
) -> NDArray[np.float32]:
    """``(n, dimensions)`` leading eigenvectors of the normalised adjacency, rows of unit length.

    By block power iteration with a few spare vectors and one Rayleigh–Ritz step at the end, on
    ``(Â + I) / 2`` so that negative eigenvalues never lead. Isolated nodes get zeros.
    """
    n = adjacency.shape[0]
    dimensions = min(dimensions, n)
    width = min(n, dimensions + 16)
    matrix = SparseMatrix.from_scipy(normalise(adjacency))
    basis = Streams([derive(seed, 0)]).uniform(n, width)[0] - 0.5
    for _ in range(iterations):
        basis = torch.linalg.qr((spmm(matrix, basis) + basis) / 2).Q
    small = basis.T @ spmm(matrix, basis)
    values, vectors = torch.linalg.eigh((small + small.T) / 2)
    leading = (basis @ vectors.flip(1)[:, :dimensions]) * values.flip(0)[:dimensions].clamp_min(0)
    leading[torch.from_numpy(np.diff(adjacency.indptr) == 0)] = 0
    norms = leading.norm(dim=1, keepdim=True)
    features: NDArray[np.float32] = (leading / norms.clamp_min(1e-12)).numpy()
    return features


def normalise(adjacency: sp.csr_array, loops: bool = False) -> sp.csr_array:
    """``D^-1/2 A D^-1/2``, with ``loops`` of A + I; rows of isolated nodes stay zero."""
    matrix = adjacency + sp.eye_array(adjacency.shape[0], format="csr") if loops else adjacency
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix @ sp.diags_array(scale))
