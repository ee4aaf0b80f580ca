"""Linear algebra on graphs: sparse products, smoothing, spectra, similarity. No learning."""

from dcgst.numerics.normalize import normalize_adjacency
from dcgst.numerics.products import spmm
from dcgst.numerics.sparse import SparseMatrix

__all__ = ["SparseMatrix", "normalize_adjacency", "spmm"]
