"""Validation of the parts of a :class:`Graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph.csr import MAX_ROWS, checked_csr

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
