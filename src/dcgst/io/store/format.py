"""The files of a store, and how a graph is opened from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.files import write_text
from dcgst.graph import Graph
from dcgst.graph.trusted import trusted_graph
from dcgst.io.columns import Columns
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.input import Input, StoreReference
from dcgst.io.store.adjacency import INDICES, INDPTR, WEIGHTS

SUFFIX = ".store"
DESCRIPTION, IDS, LABELS = "store.json", "ids.npy", "labels.npy"
FEATURES = "features.bin"
SPARSE = ("features-values.bin", "features-columns.bin", "features-pointers.bin")
FILES = (DESCRIPTION, IDS, LABELS, FEATURES, *SPARSE, INDPTR, INDICES, WEIGHTS)
VERSION = 1


def is_store(path: Path) -> bool:
    """Whether a path is a store, or was meant to be one."""
    try:
        return (path / DESCRIPTION).is_file() or (path.suffix == SUFFIX and path.is_dir())
    except (OSError, ValueError):  # not a file name
        return False


def write_description(
    folder: Path,
    *,
    name: str,
    shape: tuple[int, int],
    num_entries: int,
    index: str,
    num_values: int | None,
    class_names: tuple[str, ...],
    columns: Columns,
    encoder: FeatureEncoder,
    weighted: bool,
    notes: tuple[str, ...],
    digest: str,
) -> None:
    """Write the description, which completes a store.

    Args:
        folder: the store.
        name: of the graph.
        shape: of the features.
        num_entries: of the adjacency matrix.
        index: type of its indices.
        num_values: of sparse features; None if they are dense.
        class_names: the classes.
        columns: role of each column.
        encoder: of the features.
        weighted: whether any edge weight differs from one.
        notes: for the user.
        digest: of :func:`digest_of`.
    """
    content = {
        "version": VERSION,
        "name": name,
        "shape": list(shape),
        "num_entries": num_entries,
        "index": index,
        "num_values": num_values,
        "weighted": weighted,
        "class_names": list(class_names),
        "columns": {key: value for key, value in asdict(columns).items() if value},
        "encoder": encoder.to_json(),
        "notes": list(notes),
        "digest": digest,
    }
    write_text(folder / DESCRIPTION, json.dumps(content, indent=1))


def open_store(folder: Path) -> Input:
    """Open a store; its arrays are memory-mapped and read when they are used.

    Raises:
        InputError: if it is not complete, or damaged.
    """
    path = folder / DESCRIPTION
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} is not complete; run the same `dcgst import` again, it continues"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}; import the tables again") from error
    if content.get("version") != VERSION:
        raise InputError(
            f"{folder} was written by another version of dcgst; import the tables again"
        )
    return Input(
        _graph(folder, content),
        encoder=FeatureEncoder.from_json(content["encoder"]),
        columns=Columns.from_json(content["columns"]),
        notes=tuple(content["notes"]),
        store=StoreReference(folder.resolve(), content["digest"]),
    )


def digest_of(folder: Path) -> str:
    """SHA-256 digest of the arrays of a store."""
    digest = hashlib.sha256()
    for name in FILES[1:]:
        if (folder / name).is_file():
            digest.update(name.encode())
            with open(folder / name, "rb") as file:
                while block := file.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()


def _graph(folder: Path, content: Mapping[str, Any]) -> Graph:
    n, columns = content["shape"]
    entries, values = content["num_entries"], content["num_values"]
    index = np.dtype(content["index"])
    parts = (
        _mapped(folder / WEIGHTS, np.float32, (entries,)),
        _mapped(folder / INDICES, index, (entries,)),
        _mapped(folder / INDPTR, index, (n + 1,)),
    )
    features: Any
    if values is None:
        features = _mapped(folder / FEATURES, np.float32, (n, columns))
    else:
        files = zip(SPARSE, (np.float32, np.int64, np.int64), (values, values, n + 1), strict=True)
        arrays = tuple(_mapped(folder / name, kind, (size,)) for name, kind, size in files)
        features = sp.csr_array(arrays, shape=(n, columns))
    return trusted_graph(
        adjacency=sp.csr_array(parts, shape=(n, n)),
        features=features,
        labels=_load(folder / LABELS, n),
        class_names=tuple(content["class_names"]),
        ids=_load(folder / IDS, n),
        name=content["name"],
        notes=tuple(content["notes"]),
        weighted=content["weighted"],
        columns_weighted=True,
    )


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    expected = int(np.prod(shape)) * np.dtype(kind).itemsize
    found = path.stat().st_size if path.is_file() else -1
    if found != expected:
        what = "is missing" if found < 0 else f"has {found:,} bytes instead of {expected:,}"
        raise InputError(f"{path} {what}; import the tables again")
    if expected == 0:
        return np.zeros(shape, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r", shape=shape)


def _load(path: Path, count: int) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}; import the tables again") from error
    if array.shape != (count,):
        raise InputError(f"{path} has {array.shape} values; import the tables again")
    return array
