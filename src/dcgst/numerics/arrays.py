"""Arrays with a row per node that may be in files, processed in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import WriteError
from dcgst.memory import forget

ROWS = 1 << 16
"""Rows that are computed at a time."""


def row_ranges(count: int) -> Iterator[slice]:
    """All rows, :data:`ROWS` at a time."""
    for start in range(0, count, ROWS):
        yield slice(start, min(count, start + ROWS))


def mean_rows(matrix: NDArray[np.float32], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``(d,)`` mean of some rows of ``(n, d)``, computed in blocks."""
    total = np.zeros(matrix.shape[1])
    for part in row_ranges(len(matrix)):
        total += matrix[part][rows[part]].sum(axis=0, dtype=np.float64)
    forget(matrix)
    mean: NDArray[np.float64] = total / rows.sum()
    return mean


def new_file(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """An array of float32 in a new file, whose space on the disk is reserved.

    Raises:
        WriteError: if the disk is full; writing to the array later would end the process.
    """
    try:
        with open(path, "wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, max(1, int(np.prod(shape)) * 4))
    except OSError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror or error}") from error
    return np.memmap(path, np.float32, "r+" if path.stat().st_size else "w+", shape=shape)


def empty_like(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """An array of the same shape, in a file that has no name any more if ``array`` is in a file."""
    if not isinstance(array, np.memmap):
        return np.empty_like(array)
    folder = Path(array.filename).parent if array.filename else Path(tempfile.gettempdir())
    return empty(array.shape, folder)


def empty(shape: tuple[int, ...], folder: Path | None) -> NDArray[np.float32]:
    """A new array, in memory or, with a folder, in a file that has no name any more.

    If the folder does not exist any more, the file is in the folder for temporary files.
    """
    if folder is None:
        return np.empty(shape, dtype=np.float32)
    handle, name = tempfile.mkstemp(dir=folder if folder.exists() else None)
    os.close(handle)
    found = new_file(Path(name), shape)
    with contextlib.suppress(OSError):  # on Windows, it stays until the folder is removed
        Path(name).unlink()
    return found
