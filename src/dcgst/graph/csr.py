"""Sparse matrices from untrusted arrays: SciPy and PyTorch read out of bounds if they are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
