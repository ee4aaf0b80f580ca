"""Linear algebra on graphs: sparse products, smoothing, spectra, similarity. No learning."""

from dcgst.features.sparse import SparseMatrix, normalize_adjacency, spmm

__all__ = ["SparseMatrix", "normalize_adjacency", "spmm"]
