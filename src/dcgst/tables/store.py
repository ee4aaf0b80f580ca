"""Stores: graphs in a folder of memory-mapped arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.files import write_text
from dcgst.graph import Graph
from dcgst.graph.graph import trusted_graph
from dcgst.tables.encoders import FeatureEncoder
from dcgst.tables.nodes import Columns, Input, StoreReference
from dcgst.train.progress import counted

SUFFIX = ".store"
DESCRIPTION, IDS, LABELS = "store.json", "ids.npy", "labels.npy"
INDPTR, INDICES, WEIGHTS = "indptr.bin", "indices.bin", "weights.bin"
FEATURES = "features.bin"
SPARSE = ("features-values.bin", "features-columns.bin", "features-pointers.bin")
ARRAYS = (IDS, LABELS, FEATURES, *SPARSE, INDPTR, INDICES, WEIGHTS)
VERIFIED = "verified.json"
"""Size, time and inode number of each file when it was last verified."""

FILES = (DESCRIPTION, VERIFIED, *ARRAYS)
VERSION = 1

MOST_DESCRIPTION = 1 << 28
"""Size in bytes of the longest description that is read."""

BLOCK = 1 << 22
"""Entries of an array that are verified at once."""


def is_store(path: Path) -> bool:
    """Whether a path is a store, or was meant to be one."""
    try:
        return (path / DESCRIPTION).is_file() or (path.suffix == SUFFIX and path.is_dir())
    except (OSError, ValueError):  # not a file name
        return False


def write_description(
    folder: Path,
    *,
    shape: tuple[int, int],
    columns: Columns,
    encoder: FeatureEncoder,
    digests: Mapping[str, str],
    **content: Any,
) -> None:
    """Write the description, which completes a store.

    Args:
        folder: the store.
        shape: of the features.
        columns: role of each column.
        encoder: of the features.
        digests: of :func:`digests_of`.
        content: further entries: ``name`` of the graph, ``num_entries`` of the adjacency matrix and
            the type of their ``index``, ``num_values`` of sparse features (None if they are
            dense), ``class_names``, whether any edge weight differs from one (``weighted``), and
            ``notes`` for the user.
    """
    description = {
        "version": VERSION,
        "shape": list(shape),
        **content,
        "columns": {key: value for key, value in asdict(columns).items() if value},
        "encoder": encoder.to_json(),
        "files": dict(digests),
        "digest": _digest(digests),
    }
    description["seal"] = _digest(description)
    write_text(folder / DESCRIPTION, json.dumps(description, indent=1))
    _remember(folder, digests, _state(folder, digests))  # they were computed just now


def open_store(folder: Path, *, again: bool = False) -> Input:
    """Open a store; its arrays are memory-mapped and read when they are used.

    The first time, and after a file has changed, all files are read and verified.

    Args:
        folder: the store.
        again: verify all files even if none has changed.

    Raises:
        InputError: if it is not complete, or damaged.
    """
    content = _description(folder)
    try:
        digests = {str(name): str(digest) for name, digest in content["files"].items()}
        known = not again and _is_verified(folder, digests)
        if not known:
            state = _verify_digests(folder, digests)
        graph = _graph(folder, content)
        found = Input(
            graph,
            encoder=FeatureEncoder.from_json(content["encoder"]),
            columns=Columns.from_json(content["columns"]),
            notes=tuple(content["notes"]),
            store=StoreReference(folder.resolve(), str(content["digest"])),
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(folder / DESCRIPTION, f"{type(error).__name__}: {error}") from error
    if not known:
        _verify_arrays(folder, graph, set(digests))
        _remember(folder, digests, state)
    return found


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is damaged ({why}); import the tables again")


def _description(folder: Path) -> dict[str, Any]:
    """The description of a store, unchanged since the import."""
    path = folder / DESCRIPTION
    if not path.exists():
        raise InputError(
            f"{folder} is not complete; run the same `dcgst import` again, it continues"
        )
    _check_regular(path)
    if path.stat().st_size > MOST_DESCRIPTION:
        raise _damaged(path, "it is too large")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}; import the tables again") from error
    if not isinstance(content, dict):
        raise _damaged(path, "it is not a JSON object")
    if content.get("version") != VERSION:
        raise InputError(
            f"{folder} was written by another version of dcgst; import the tables again"
        )
    if content.pop("seal", None) != _digest(content):
        raise _damaged(path, "it was changed")
    texts = [content.get("name"), *_list(content.get("notes")), *_list(content.get("class_names"))]
    if not all(isinstance(text, str) for text in texts):
        raise _damaged(path, "a text is missing")
    if not isinstance(content.get("weighted"), bool):
        raise _damaged(path, "weighted must be true or false")
    return content


def _list(value: Any) -> list[Any]:
    """The items of a list; [None] if it is none."""
    return value if isinstance(value, list) else [None]


def _check_regular(path: Path) -> None:
    """Raise unless a path is a file: reading a pipe or a device could take forever."""
    if not path.is_file():
        what = "is not a regular file" if path.exists() else "is missing"
        raise InputError(f"{path} {what}; import the tables again")


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 digests of the arrays of a store, by file."""
    return {name: _digest_of_file(folder / name) for name in ARRAYS if (folder / name).is_file()}


def _digest_of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
    return digest.hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _state(folder: Path, names: Iterable[str]) -> dict[str, list[int]]:
    """What changes if one of the files is written or replaced."""
    found = {name: (folder / name).stat() for name in names}
    return {name: [own.st_size, own.st_mtime_ns, own.st_ino] for name, own in found.items()}


def _remember(folder: Path, digests: Mapping[str, str], state: Mapping[str, list[int]]) -> None:
    """Store that all files were verified; without effect if the folder cannot be written to.

    Args:
        folder: the store.
        digests: of its files.
        state: of :func:`_state`, before they were read.
    """
    content = {"digest": _digest(digests), "files": dict(state)}
    with suppress(OSError, InputError):
        write_text(folder / VERIFIED, json.dumps(content))


def _is_verified(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether all files are those that were verified."""
    path = folder / VERIFIED
    try:
        if not path.is_file() or path.stat().st_size > MOST_DESCRIPTION:
            return False
        content = json.loads(path.read_text(encoding="utf-8"))
        return bool(content == {"digest": _digest(digests), "files": _state(folder, digests)})
    except (OSError, ValueError, RecursionError):
        return False


def _verify_digests(folder: Path, digests: Mapping[str, str]) -> dict[str, list[int]]:
    """Raise if a file is not the one that was imported; returns their state before."""
    for name in digests:
        if name not in ARRAYS:
            raise _damaged(folder / DESCRIPTION, f"it lists a file {name!r}")
        _check_regular(folder / name)
    state = _state(folder, digests)
    for name in counted("verifying the store", list(digests)):
        if _digest_of_file(folder / name) != digests[name]:
            raise _damaged(folder / name, "it was changed")
    return state


def _verify_arrays(folder: Path, graph: Graph, files: set[str]) -> None:
    """Raise if arrays have other values than they may have.

    Compiled code reads out of bounds if an index is wrong.
    """
    features, adjacency = graph.features, graph.adjacency
    found: dict[str, str | None] = {
        IDS: None if graph.ids.dtype.kind == "U" else f"it contains {graph.ids.dtype}",
        LABELS: _out_of_range(graph.labels, -1, graph.num_classes),
        INDPTR: _not_pointers(adjacency.indptr, adjacency.nnz),
        INDICES: _out_of_range(adjacency.indices, 0, graph.num_nodes),
        WEIGHTS: _not_finite(adjacency.data),
    }
    if isinstance(features, np.ndarray):
        found[FEATURES] = _not_finite(features.reshape(-1))
    else:
        values, positions, pointers = SPARSE
        found[values] = _not_finite(features.data)
        found[positions] = _out_of_range(features.indices, 0, features.shape[1])
        found[pointers] = _not_pointers(features.indptr, features.nnz)
    if files != set(found):
        raise _damaged(folder / DESCRIPTION, "it lists other files than a store has")
    for name, wrong in found.items():
        if wrong:
            raise _damaged(folder / name, wrong)


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of an array, each with the last entry of the part before."""
    for start in range(0, len(array), BLOCK):
        yield np.asarray(array[max(0, start - 1) : start + BLOCK])


def _not_finite(array: NDArray[Any]) -> str | None:
    finite = all(np.isfinite(block).all() for block in _blocks(array))
    return None if finite else "a value is not finite"


def _out_of_range(array: NDArray[Any], low: int, high: int) -> str | None:
    for block in _blocks(array):
        if block.size and not (low <= block.min() and block.max() < high):
            return f"a value is not from {low} to {high - 1}"
    return None


def _not_pointers(array: NDArray[Any], count: int) -> str | None:
    if array[0] != 0 or array[-1] != count:
        return f"pointers are not from 0 to {count}"
    rising = all((np.diff(block) >= 0).all() for block in _blocks(array))
    return None if rising else "pointers decrease"


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
    _check_regular(path)
    expected = math.prod(shape) * np.dtype(kind).itemsize
    found = path.stat().st_size
    if found != expected:
        raise InputError(
            f"{path} has {found:,} bytes instead of {expected:,}; import the tables again"
        )
    if expected == 0:
        return np.zeros(shape, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r", shape=shape)


def _load(path: Path, count: int) -> NDArray[Any]:
    _check_regular(path)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    except MemoryError:
        raise
    except Exception as error:  # whatever the parser of the header raises
        raise InputError(f"{path} cannot be read: {error}; import the tables again") from error
    if array.shape != (count,):
        raise InputError(f"{path} has {array.shape} values; import the tables again")
    return array
