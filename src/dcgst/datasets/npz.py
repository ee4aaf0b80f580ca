"""Graphs kept as plain arrays in one ``.npz`` file."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.datasets.files import Source, find, locate
from dcgst.errors import InputError
from dcgst.graph import Graph

SOURCE = Source(
    "npz",
    origin="https://github.com/EdisonLeeeee/GraphData and "
    "https://github.com/yandex-research/heterophilous-graphs",
    remedy="convert the original (https://github.com/EdisonLeeeee/GraphData, or "
    "https://github.com/yandex-research/heterophilous-graphs for actor and chameleon_filtered) to "
    "an npz with the arrays edge_index, y, x_data, x_indices, x_indptr, x_shape (features as CSR)",
)
DAMAGE = (
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file may raise."""

KEYS = ("edge_index", "y", "x_data", "x_indices", "x_indptr", "x_shape")


def present(name: str) -> bool:
    return find(SOURCE, f"{name}.npz") is not None


def load(name: str) -> Graph:
    return read(locate(SOURCE, f"{name}.npz"), name)


def read(path: Path, name: str) -> Graph:
    """Read one file; never unpickles."""
    arrays = read_arrays(path, KEYS)
    parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
    features = sp.csr_array(parts, shape=tuple(arrays["x_shape"]))
    return Graph.from_edges(arrays["edge_index"], features, arrays["y"], name=name)


def read_arrays(path: Path, keys: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The named arrays of an npz file."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive.files]
            if missing:
                raise InputError(f"{path} lacks the arrays {', '.join(missing)}")
            return {key: archive[key] for key in keys}
    except DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not an npz file of plain arrays: {error}") from error
