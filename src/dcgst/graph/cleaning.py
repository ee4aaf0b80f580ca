"""Checks of the parts of a graph, and conversion to the form that it requires."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dcgst.errors import InputError

MAX_ROWS = 2**31 - 1
MAX_COLUMNS = 10_000_000
"""Largest number of feature columns."""


def checked_csr(
    parts: Sequence[ArrayLike], shape: ArrayLike, name: str, max_columns: int = MAX_COLUMNS
) -> sp.csr_array:
    """Create a CSR matrix after checking every index.

    Args:
        parts: ``data`` ``(nnz,)``, the values; ``indices`` ``(nnz,)``, the column of each; and
            ``indptr`` ``(rows + 1,)``, where each row starts.
        shape: number of rows and columns.
        name: name of the matrix in messages.
        max_columns: largest number of columns.

    Raises:
        InputError: if the arrays are not a CSR matrix.

    Example:
        >>> checked_csr(([1.0], [2], [0, 1]), (1, 3), "features").toarray()
        array([[0., 0., 1.]])
        >>> checked_csr(([1.0], [3], [0, 1]), (1, 3), "features")
        Traceback (most recent call last):
        ...
        dcgst.errors.InputError: features: entry 0 is in column 3 of a matrix with 3 columns
    """
    rows, columns = checked_shape(shape, name, max_columns)
    values, where, starts = (np.asarray(part) for part in parts)
    for part, array in (("indices", where), ("indptr", starts)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(
                f"{name}: {part} must be one row of integers, got {array.dtype} {array.shape}"
            )
    _check_values(values, len(where), name)
    if len(starts) != rows + 1:
        raise InputError(f"{name}: {rows} rows need {rows + 1} values in indptr, got {len(starts)}")
    starts = starts.astype(np.int64)
    if starts[0] != 0 or starts[-1] != len(where) or (np.diff(starts) < 0).any():
        raise InputError(
            f"{name}: indptr must increase from 0 to {len(where)}, the number of entries"
        )
    _check_range(where, columns, name, "column")
    return sp.csr_array((values, where, starts), shape=(rows, columns))


def csr_from_tensor(x: Tensor, name: str = "features") -> sp.csr_array:
    """Convert a sparse tensor of layout COO, CSR or CSC, after checking every index."""
    shape = tuple(x.shape)
    if x.layout == torch.sparse_coo:
        return _csr_from_coo(_array(x._indices()), _array(x._values()), shape, name)
    if x.layout == torch.sparse_csr:
        parts = (x.values(), x.col_indices(), x.crow_indices())
        return checked_csr([_array(part) for part in parts], shape, name)
    if x.layout == torch.sparse_csc:
        parts = (x.values(), x.row_indices(), x.ccol_indices())
        transposed = checked_csr([_array(part) for part in parts], shape[::-1], name)
        return sp.csr_array(transposed.T)
    raise InputError(f"{name}: tensors of layout {x.layout} are not supported; use a dense tensor")


def checked_shape(shape: ArrayLike, name: str, max_columns: int = MAX_COLUMNS) -> tuple[int, int]:
    """Number of rows and columns; raises if they are not plausible."""
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu":
        raise InputError(f"{name}: the shape must be two integers, got {sizes.tolist()}"[:200])
    rows, columns = (int(size) for size in sizes)
    if not (0 <= rows <= MAX_ROWS and 0 < columns <= max_columns):
        raise InputError(
            f"{name}: {rows:,} rows of {columns:,} columns; allowed are up to {MAX_ROWS:,} rows of "
            f"1 to {max_columns:,} columns"
        )
    return rows, columns


def _csr_from_coo(
    indices: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...], name: str
) -> sp.csr_array:
    rows, columns = checked_shape(shape, name)
    if indices.ndim != 2 or indices.shape[0] != 2:
        raise InputError(f"{name}: indices must be (2, entries), got {indices.shape}")
    _check_values(values, indices.shape[1], name)
    _check_range(indices[0], rows, name, "row")
    _check_range(indices[1], columns, name, "column")
    return sp.csr_array(sp.coo_array((values, tuple(indices)), shape=(rows, columns)))


def _check_values(values: NDArray[Any], count: int, name: str) -> None:
    if values.shape != (count,) or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: {count} entries need as many numbers, got {values.dtype} {values.shape}"
        )


def _check_range(indices: NDArray[Any], size: int, name: str, what: str) -> None:
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"{name}: entry {at} is in {what} {int(indices[at])} of a matrix with {size} {what}s"
        )


def _array(x: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = x.numpy(force=True)
    return array


def find_ids(
    ids: NDArray[Any], order: NDArray[np.int64], wanted: Sequence[str]
) -> NDArray[np.int64]:
    """Positions of ids that are written as text; -1 where there is no such id.

    Args:
        ids: ``(n,)`` unique strings or integers.
        order: ``(n,)`` positions in ascending order of the ids.
        wanted: the ids to find.

    Example:
        >>> find_ids(np.array([7, 5]), np.array([1, 0]), ["5", "05", "x", "7"]).tolist()
        [1, -1, -1, 0]
    """
    if not len(wanted):
        return np.zeros(0, dtype=np.int64)
    keys: NDArray[Any]
    if ids.dtype.kind in "iu":
        keys = _to_integers(wanted, ids.dtype)
    else:
        ids = ids.astype(str) if ids.dtype == object else ids
        keys = np.array(wanted, dtype=str).astype(ids.dtype)  # longer texts are cut off
    places = order[np.searchsorted(ids, keys, sorter=order).clip(max=len(ids) - 1)]
    same = [str(found) == text for found, text in zip(ids[places].tolist(), wanted, strict=True)]
    return np.where(same, places, -1)


def _to_integers(texts: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Integers; other texts become the smallest integer."""
    bounds = np.iinfo(dtype)
    values = (int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else bounds.min for text in texts)
    return np.array([v if bounds.min <= v <= bounds.max else bounds.min for v in values], dtype)


FeatureMatrix: TypeAlias = Any
"""``(n, d)`` float32: an array or a ``csr_array`` (SciPy has no type annotations)."""

MAX_MAGNITUDE = 1e30
"""Largest absolute value of a feature; float32 overflows at about 3e38."""

UNKNOWN = -1
"""The label of a node whose class is not known."""


def check_adjacency(adjacency: sp.csr_array) -> None:
    """Raise unless the matrix is square, symmetric and canonical CSR without self-loops."""
    if not isinstance(adjacency, sp.csr_array) or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError("adjacency must be a square csr_array; use Graph.from_scipy or from_edges")
    parts = (adjacency.data, adjacency.indices, adjacency.indptr)
    checked_csr(parts, adjacency.shape, "adjacency", MAX_ROWS)
    if not np.isfinite(adjacency.data).all() or (adjacency.data <= 0).any():
        raise InputError("adjacency weights must be positive and finite")
    if not adjacency.has_canonical_format:
        raise InputError(
            "adjacency must list each entry once, columns sorted; use Graph.from_scipy"
        )
    if adjacency.diagonal().any():
        raise InputError("adjacency must not contain self-loops; Graph.from_scipy drops them")
    if abs(adjacency - adjacency.T).nnz:
        raise InputError("adjacency must be symmetric; Graph.from_scipy makes it so")


def check_features(features: FeatureMatrix, n: int) -> None:
    """Raise unless the features are ``n`` finite float32 rows."""
    if features.ndim != 2 or features.shape[0] != n or features.shape[1] == 0:
        raise InputError(f"features must be {n} rows of at least one column, got {features.shape}")
    if features.dtype != np.float32:
        raise InputError(f"features must be float32, got {features.dtype}")
    sparse = sp.issparse(features)
    wrong = ~(np.abs(features.data if sparse else features) <= MAX_MAGNITUDE)  # also NaN
    if not wrong.any():
        return
    if sparse:
        coo = features.tocoo()
        row, col = int(coo.row[wrong][0]), int(coo.col[wrong][0])
    else:
        row, col = (int(i) for i in np.argwhere(wrong)[0])
    raise InputError(
        f"{int(wrong.sum())} feature values are NaN, infinite or beyond {MAX_MAGNITUDE:g}, the "
        f"first at node {row}, column {col}; fill or drop them first"
    )


def check_codes(codes: NDArray[np.int64]) -> None:
    """Raise if a class code is too large for the number of nodes: it is then an id, not a code."""
    most = max(1000, len(codes))
    if codes.size and codes.max() >= most:
        at = int(codes.argmax())
        raise InputError(
            f"node {at} has class code {int(codes[at])}; codes must be smaller than {most:,}, and "
            "numpy.unique(labels, return_inverse=True) numbers classes from 0"
        )


def check_class_names(names: Sequence[Any]) -> None:
    """Raise unless the class names are different texts."""
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"class names must be texts, got {name!r}")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise InputError(f"two classes are named {repeated!r}; class names must differ")


def check_labels(labels: NDArray[np.int64], n: int, num_classes: int) -> None:
    """Raise unless there is one label per node, from -1 to ``num_classes`` - 1."""
    if labels.shape != (n,):
        raise InputError(f"{n} nodes but labels of shape {labels.shape}")
    wrong = (labels < UNKNOWN) | (labels >= num_classes)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"node {at} has label {int(labels[at])}; allowed are 0 … {num_classes - 1}, and -1 for "
            "unknown"
        )


def check_masks(masks: Mapping[str, NDArray[np.bool_]], n: int) -> None:
    """Raise unless each mask has one bool per node."""
    for name, mask in masks.items():
        if mask.shape != (n,) or mask.dtype != np.bool_:
            raise InputError(f"mask {name!r} must be {n} booleans, got {mask.dtype} {mask.shape}")


def check_ids(ids: NDArray[Any], n: int) -> None:
    """Raise unless there is one id per node, unique when written as text."""
    if ids.shape != (n,) or ids.dtype.kind not in "iuUO":
        raise InputError(f"ids must be {n} strings or integers, got {ids.dtype} {ids.shape}")
    first: dict[str, int] = {}
    for node, name in enumerate(ids.tolist()):
        if first.setdefault(str(name), node) != node:
            raise InputError(
                f"id {str(name)!r} occurs more than once, at nodes {first[str(name)]} and {node}"
            )


def make_read_only(*arrays: Any) -> None:
    """Make arrays and the parts of sparse matrices read-only."""
    for array in arrays:
        parts = (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,)
        for part in parts:
            part.flags.writeable = False


@dataclass
class EdgeCounts:
    """What was changed in a list of edges."""

    loops: int = 0
    repeated: int = 0
    one_way: int = 0
    zero_weights: int = 0

    def notes(self) -> list[str]:
        """Notes for the user."""
        texts = {
            "self-loops dropped": self.loops,
            "repeated edges merged": self.repeated,
            "directed edges made undirected": self.one_way,
            "edges of weight 0 dropped": self.zero_weights,
        }
        return [f"{count} {what}" for what, count in texts.items() if count]


Weights: TypeAlias = NDArray[np.float32] | None


def edge_keys(
    ends: tuple[NDArray[Any], NDArray[Any]], weights: Weights, n: int, counts: EdgeCounts
) -> tuple[NDArray[np.int64], Weights]:
    """Both directions of each edge as numbers to sort by; self-loops and zero weights are dropped.

    A key is twice the position of an entry in the ``(n, n)`` matrix, plus one for the direction
    that the list of edges does not have.
    """
    source, target = (end.astype(np.int64) for end in ends)
    kept = source != target
    counts.loops += int((~kept).sum())
    if weights is not None:
        zero = kept & (weights == 0)
        counts.zero_weights += int(zero.sum())
        kept &= ~zero
        weights = np.tile(weights[kept], 2)
    source, target = source[kept], target[kept]
    keys = np.concatenate([source * n + target, target * n + source]) * 2
    keys[source.size :] += 1
    return keys, weights


def merge_edges(
    keys: NDArray[np.int64], weights: Weights, counts: EdgeCounts
) -> tuple[NDArray[np.int64], Weights]:
    """Positions of the entries, each once and in order, and the largest weight of each.

    Args:
        keys: see :func:`edge_keys`.
        weights: of the keys; None if all are one.
        counts: repeated edges and those in one direction are added.
    """
    if weights is None:
        keys = np.sort(keys)
    else:
        order = np.lexsort((weights, keys >> 1))
        keys, weights = keys[order], weights[order]
    positions = keys >> 1
    if not positions.size:
        return positions, weights
    last = np.append(positions[1:] != positions[:-1], True)
    group = np.cumsum(np.concatenate([[False], last[:-1]]))
    forward = np.bincount(group, weights=1 - (keys & 1)).astype(np.int64)
    counts.repeated += int(np.maximum(forward - 1, 0).sum())
    counts.one_way += int((forward == 0).sum())
    return positions[last], None if weights is None else weights[last]


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
    values = None if weights is None else _clean_weights(weights, edges.shape[1])
    counts = EdgeCounts()
    keys, values = edge_keys((edges[0], edges[1]), values, n, counts)
    positions, values = merge_edges(keys, values, counts)
    rows, columns = np.divmod(positions, n)
    pointers = np.searchsorted(rows, np.arange(n + 1))
    if values is None:
        values = np.ones(positions.size, dtype=np.float32)
    index = np.int32 if max(n, positions.size) < 2**31 else np.int64
    parts = (values, columns.astype(index), pointers.astype(index))
    return sp.csr_array(parts, shape=(n, n)), counts.notes()


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


def _clean_weights(weights: ArrayLike, count: int) -> NDArray[np.float32]:
    values: NDArray[np.float32] = _to_float32(np.asarray(weights).reshape(-1))
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
    """Convert to float32; values that do not fit become infinite, which the graph refuses.

    Denormal numbers become zero: they have few digits, and their inverses are infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.astype(np.float32)
    numbers = found.data if sp.issparse(found) else found
    denormal = abs(numbers) < np.finfo(np.float32).tiny
    numbers[denormal] = 0
    return found


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
