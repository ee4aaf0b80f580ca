"""Linear algebra on graphs: sparse products, smoothing, spectra, similarity. No learning."""

from dcgst.features.normalize import normalize_adjacency
from dcgst.features.sparse import SparseMatrix, spmm

__all__ = ["SparseMatrix", "normalize_adjacency", "spmm"]
