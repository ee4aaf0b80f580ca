"""Conversion of edges, features and labels to the form that :class:`Graph` requires."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.graph.checks import FeatureMatrix
from dcgst.graph.csr import checked_csr, csr_from_tensor


def clean_edges(
    edges: NDArray[Any], weights: ArrayLike | None, n: int
) -> tuple[sp.csr_array, list[str]]:
    """Build the symmetric adjacency without self-loops or duplicates.

    Returns:
        the ``(n, n)`` matrix, and notes on what was changed.
    """
    if edges.size == 0:
        return sp.csr_array((n, n), dtype=np.float32), []
    _check_edges(edges, n)
    values = _clean_weights(weights, edges.shape[1])

    loops = edges[0] == edges[1]
    keep = ~loops & (values > 0)
    row, col = (ends[keep].astype(np.int64) for ends in edges)
    values = values[keep]
    # Sorted by position, then weight: the last entry of each position has the largest weight.
    order = np.lexsort((values, row * n + col))
    row, col, values = row[order], col[order], values[order]
    position = row * n + col
    last = np.append(position[1:] != position[:-1], True) if position.size else np.zeros(0, bool)
    one_way = sp.csr_array((values[last], (row[last], col[last])), shape=(n, n))
    both_ways = one_way.maximum(one_way.T).tocsr()
    both_ways.sort_indices()

    counts = {
        "self-loops dropped": loops.sum(),
        "repeated edges merged": values.size - last.sum(),
        "directed edges made undirected": both_ways.nnz - one_way.nnz,
        "edges of weight 0 dropped": (~loops & ~keep).sum(),
    }
    notes = [f"{count} {what}" for what, count in counts.items() if count]
    return both_ways.astype(np.float32), notes


def _check_edges(edges: NDArray[Any], n: int) -> None:
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        remedy = "; transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InputError(
            f"edges must be (2, E) node positions, got {edges.dtype} {edges.shape}{remedy}"
        )
    outside = (edges < 0) | (edges >= n)
    if outside.any():
        at = int(np.argmax(outside.any(axis=0)))
        raise InputError(
            f"edge {at} connects nodes {int(edges[0, at])} and {int(edges[1, at])}, but the "
            f"features describe nodes 0 … {n - 1} only"
        )


def _clean_weights(weights: ArrayLike | None, count: int) -> NDArray[np.float32]:
    given = np.ones(count) if weights is None else np.asarray(weights).reshape(-1)
    values: NDArray[np.float32] = _to_float32(given)
    if values.shape != (count,):
        raise InputError(f"{count} edges but {values.size} edge weights")
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"edge {at} has weight {values[at]}; weights must be finite and not negative"
        )
    return values


def clean_features(features: ArrayLike | sp.sparray | sp.spmatrix) -> FeatureMatrix:
    """Convert features to float32: CSR without explicit zeros, or a contiguous array."""
    if sp.issparse(features):
        matrix = _to_float32(_check_sparse(features))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix
    try:
        dense = np.array(features)
    except ValueError as error:
        raise InputError(f"features must be rows of equal length: {error}") from error
    if dense.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers, got {dense.dtype}")
    return np.ascontiguousarray(_to_float32(dense))


def _check_sparse(features: sp.sparray | sp.spmatrix) -> sp.csr_array:
    if features.format == "csr":
        parts = (features.data, features.indices, features.indptr)
        return checked_csr(parts, features.shape, "features")
    return sp.csr_array(features)


def _to_float32(values: Any) -> Any:
    """Convert to float32; values that do not fit become infinite, which the graph refuses."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def clean_labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Convert whole numbers of any type to class codes, one per node."""
    codes = np.asarray(labels)
    if codes.ndim > 1 and codes.shape[1:] != (1,):
        raise InputError(f"labels must be one class code per node, got shape {codes.shape}")
    whole = codes.dtype.kind in "iub" or (
        codes.dtype.kind == "f" and (codes == codes.round()).all() and (abs(codes) < 2**53).all()
    )
    if not whole:
        raise InputError(
            f"labels must be integer class codes (-1 for unknown), got {codes.dtype}; "
            "numpy.unique(labels, return_inverse=True) converts names to codes"
        )
    return codes.astype(np.int64).reshape(-1)


def features_from_tensor(x: Tensor) -> FeatureMatrix:
    """Convert a tensor of any layout to an array, or to CSR if less than a tenth is nonzero."""
    if x.layout != torch.strided:
        return csr_from_tensor(x)
    features = x.numpy(force=True)
    few = features.size > 0 and np.count_nonzero(features) < features.size / 10
    return sp.csr_array(features) if few else features


def clean_mask(mask: Tensor, name: str) -> NDArray[np.bool_]:
    """Convert a mask of booleans, or of zeros and ones."""
    values = mask.numpy(force=True)
    if values.dtype != np.bool_ and not np.isin(values, (0, 1)).all():
        raise InputError(f"{name} must contain booleans, got {values.dtype}")
    return values.astype(bool)
