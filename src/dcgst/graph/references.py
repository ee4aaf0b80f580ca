"""Arrays in files, passed to other processes by their paths instead of their content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class FileArray:
    """An array in a file.

    Attributes:
        path: the file.
        dtype: type of the numbers.
        offset: bytes before the first number.
        shape: of the array.
    """

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]

    def open(self) -> NDArray[Any]:
        """Map the file into memory."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


@dataclass(frozen=True)
class FileMatrix:
    """A sparse matrix in files: its parts and its shape."""

    parts: tuple[FileArray, ...]
    shape: tuple[int, int]

    def open(self) -> sp.csr_array:
        """Map the files into memory."""
        return sp.csr_array(tuple(part.open() for part in self.parts), shape=self.shape)


class ByReference:
    """Objects whose memory-mapped arrays are passed to other processes by their paths."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: to_reference(value) for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: from_reference(value) for name, value in state.items()})


def to_reference(value: Any) -> Any:
    """A memory-mapped array or sparse matrix as a reference; anything else as it is."""
    if sp.issparse(value):
        parts = [to_reference(part) for part in (value.data, value.indices, value.indptr)]
        if all(isinstance(part, FileArray) for part in parts):
            return FileMatrix(tuple(parts), value.shape)
        return value
    mapped = value
    while isinstance(getattr(mapped, "base", None), np.ndarray):
        mapped = mapped.base  # that of a slice is the whole array
    if not isinstance(mapped, np.memmap):
        return value
    named = mapped.filename is not None and Path(mapped.filename).exists()
    if not named or not value.flags.c_contiguous:
        return np.array(value)
    inside = value.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
    offset = int(mapped.offset + inside)
    return FileArray(str(mapped.filename), value.dtype.str, offset, value.shape)


def from_reference(value: Any) -> Any:
    """What :func:`to_reference` was given."""
    return value.open() if isinstance(value, FileArray | FileMatrix) else value
