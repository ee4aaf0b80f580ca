"""Read graphs from ``.npz`` files of plain arrays."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.io.files import open_file

DENSE_KEYS = ("edge_index", "y", "x")
SPARSE_KEYS = ("edge_index", "y", "x_data", "x_indices", "x_indptr", "x_shape")

READ_ERRORS = (
    EOFError,
    IndexError,
    OSError,
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
    with _open_npz(path) as archive:
        arrays = _select(path, archive, DENSE_KEYS if "x" in archive else SPARSE_KEYS)
    try:
        features = arrays["x"] if "x" in arrays else _csr_features(arrays)
        return Graph.from_edges(arrays["edge_index"], features, arrays["y"], name=name)
    except InputError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(f"the arrays of {path} are not a graph: {error}") from error


def read_npz_arrays(path: Path, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an npz file. Pickled objects are never loaded.

    Raises:
        InputError: if the file is not an npz file of plain arrays, or an array is missing.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "arrays.npz")
        >>> np.savez(path, a=np.arange(3), b=np.zeros(2))
        >>> read_npz_arrays(path, ["a"])
        {'a': array([0, 1, 2])}
    """
    with _open_npz(path) as archive:
        return _select(path, archive, keys)


@contextmanager
def _open_npz(path: Path) -> Iterator[Any]:
    with open_file(path) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{path} is not an npz file; write one with numpy.savez")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except InputError:
            raise
        except READ_ERRORS as error:
            raise InputError(f"{path} is not an npz file of plain arrays: {error}") from error


def _select(path: Path, archive: Any, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    missing = [key for key in keys if key not in archive]
    if missing:
        raise InputError(
            f"{path} does not have the arrays {', '.join(missing)}; it has {', '.join(archive)}"
        )
    return {key: archive[key] for key in keys}


def _csr_features(arrays: Mapping[str, NDArray[Any]]) -> sp.csr_array:
    parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
    return sp.csr_array(parts, shape=tuple(arrays["x_shape"]))
