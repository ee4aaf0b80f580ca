"""Read graphs from ``.npz`` files of plain arrays."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.graph.csr import checked_csr
from dcgst.io.files import open_file
from dcgst.memory import check_memory

DENSE_KEYS = ("edge_index", "y", "x")
SPARSE_KEYS = ("edge_index", "y", "x_data", "x_indices", "x_indptr", "x_shape")

Keys = Sequence[str] | Callable[[Sequence[str]], Sequence[str]]

READ_ERRORS = (
    EOFError,
    IndexError,
    NotImplementedError,
    OSError,
    OverflowError,
    SyntaxError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that reading a damaged file can raise."""


def read_npz_graph(path: Path, name: str) -> Graph:
    """Read a graph from an npz file. Pickled objects are never loaded.

    Args:
        path: file with the arrays ``edge_index`` of shape ``(2, E)``, ``y`` of class codes (-1 for
            unknown), and the features: dense as ``x``, or in CSR format as ``x_data``,
            ``x_indices``, ``x_indptr`` and ``x_shape``.
        name: name of the graph.

    Raises:
        InputError: if the file is not an npz file, or its arrays are not a graph.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "pair.npz")
        >>> np.savez(path, edge_index=np.array([[0], [1]]), x=np.eye(2), y=np.array([0, -1]))
        >>> read_npz_graph(path, "pair")
        Graph('pair': 2 nodes, 1 edges, 2 features, 1 classes, 1 labels)
    """
    arrays = read_npz_arrays(path, lambda names: DENSE_KEYS if "x" in names else SPARSE_KEYS)
    try:
        features = arrays["x"] if "x" in arrays else _csr_features(arrays)
        return Graph.from_edges(arrays["edge_index"], features, arrays["y"], name=name)
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(f"the arrays of {path} are not a graph: {error}") from error


def read_npz_arrays(path: Path, keys: Keys | None = None) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an npz file, or all. Pickled objects are never loaded.

    Args:
        path: the file.
        keys: names of the arrays, or a function that selects them from the names of all.

    Raises:
        InputError: if the file is not an npz file of plain arrays, if it does not fit into memory,
            or if an array is missing.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "arrays.npz")
        >>> np.savez(path, a=np.arange(3), b=np.zeros(2))
        >>> read_npz_arrays(path, ["a"])
        {'a': array([0, 1, 2])}
    """
    with open_file(path) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{path} is not an npz file; write one with numpy.savez")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                wanted = names if keys is None else keys(names) if callable(keys) else keys
                _check_sizes(path, archive, wanted)
            file.seek(0)
            with np.load(file, allow_pickle=False) as loaded:
                return {key: loaded[key] for key in wanted}
        except InputError:
            raise
        except READ_ERRORS as error:
            raise InputError(f"{path} is not an npz file of plain arrays: {error}") from error


def _check_sizes(path: Path, archive: zipfile.ZipFile, wanted: Sequence[str]) -> None:
    """Raise before anything is loaded if an array claims another size than its data has."""
    found = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(
            f"{path} does not have the arrays {', '.join(missing)}; it has {', '.join(found)}"
        )
    total = sum(found[name].file_size for name in wanted)
    check_memory(2 * total, f"{path} needs", "use a machine with more memory")
    for member in (found[name] for name in wanted):
        with archive.open(member) as data:
            version = npy.read_magic(data)
            read_header = (
                npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            )
            shape, _, dtype = read_header(data)
            if dtype.hasobject:
                raise ValueError("it contains Python objects, which are never loaded")
            if dtype.itemsize == 0 or dtype.kind not in "biufUM":
                raise ValueError(f"array {member.filename} has the type {dtype}")
            size = math.prod(shape) * dtype.itemsize
            if data.tell() + size != member.file_size:
                raise InputError(
                    f"{path} is damaged: array {member.filename.removesuffix('.npy')} of shape "
                    f"{shape} needs {size:,} bytes, but has {member.file_size - data.tell():,}"
                )


def _csr_features(arrays: Mapping[str, NDArray[Any]]) -> sp.csr_array:
    parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
    return checked_csr(parts, arrays["x_shape"], "x")
