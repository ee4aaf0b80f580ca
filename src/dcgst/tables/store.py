"""Stores: graphs in a folder of memory-mapped arrays."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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

KEY = np.int64
WEIGHT = np.float32
INDPTR, INDICES, WEIGHTS = "indptr.bin", "indices.bin", "weights.bin"

SORTING = 10
"""Memory of sorting a bucket as a multiple of its size."""


@dataclass
class Counts:
    """What happened to the edges of a table."""

    loops: int = 0
    zero_weights: int = 0
    repeated: int = 0
    one_way: int = 0
    entries: int = 0
    index: str = "int32"

    def notes(self) -> list[str]:
        """Notes for the user, as for a graph in memory."""
        texts = {
            "self-loops dropped": self.loops,
            "repeated edges merged": self.repeated,
            "directed edges made undirected": self.one_way,
            "edges of weight 0 dropped": self.zero_weights,
        }
        return [f"{count} {what}" for what, count in texts.items() if count]


class AdjacencyBuilder:
    """Collects edges in buckets by source, sorts one bucket at a time, and writes CSR arrays.

    Args:
        folder: for the result.
        work: folder for the buckets.
        num_nodes: n.
        num_edges: about how many edges will be added.
        weighted: whether edges have weights.
        memory: bytes that sorting a bucket may use.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        num_nodes: int,
        num_edges: int,
        *,
        weighted: bool,
        memory: int,
    ) -> None:
        self.folder, self.num_nodes, self.weighted = folder, num_nodes, weighted
        size = 2 * num_edges * (KEY().itemsize + (WEIGHT().itemsize if weighted else 0))
        count = max(1, min(1000, num_nodes, -(-SORTING * size // max(1, memory))))
        self.width = -(-num_nodes // count)
        self.counts = Counts()
        for path in (folder, work):
            path.mkdir(parents=True, exist_ok=True)
        self.keys = [work / f"bucket-{number:04d}.keys" for number in range(count)]
        self.values = [path.with_suffix(".weights") for path in self.keys]
        for path in (*self.keys, *self.values):
            path.unlink(missing_ok=True)

    def add(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Add edges; self-loops and edges of weight zero are counted and dropped."""
        kept = source != target
        self.counts.loops += int((~kept).sum())
        if weights is not None:
            zero = kept & (weights == 0)
            self.counts.zero_weights += int(zero.sum())
            kept &= ~zero
            weights = np.tile(weights[kept], 2)
        source, target = source[kept], target[kept]
        rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
        backward = np.repeat(np.array([0, 1], dtype=KEY), source.size)
        bucket = rows // self.width
        keys = ((rows - bucket * self.width) * self.num_nodes + columns) * 2 + backward
        order = np.argsort(bucket.astype(np.int16), kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(len(self.keys) + 1))
        keys = keys[order]
        if weights is not None:
            weights = weights[order]
        for number, (start, stop) in enumerate(itertools.pairwise(ends)):
            if start < stop:
                _append(self.keys[number], keys[start:stop])
                if weights is not None:
                    _append(self.values[number], weights[start:stop])

    def finish(self, progress: Callable[[float], object] = lambda _: None) -> Counts:
        """Sort the buckets, write the arrays, and remove the buckets.

        Args:
            progress: called with the share of the buckets that are done.
        """
        small = max(self.num_nodes, 2 * sum(_size(path) for path in self.keys) // 16) < 2**31
        index = np.int32 if small else np.int64
        degrees = np.zeros(self.num_nodes, dtype=np.int64)
        with (
            (self.folder / INDICES).open("wb") as indices,
            (self.folder / WEIGHTS).open("wb") as values,
        ):
            for number in range(len(self.keys)):
                positions, weights = self._sort(number)
                rows, columns = np.divmod(positions, self.num_nodes)
                start = number * self.width
                own = degrees[start : start + self.width]
                own += np.bincount(rows, minlength=own.size)[: own.size]
                columns.astype(index).tofile(indices)
                ones = np.ones(columns.size, dtype=WEIGHT)
                (ones if weights is None else weights).tofile(values)
                progress((number + 1) / len(self.keys))
        np.concatenate([[0], degrees.cumsum()]).astype(index).tofile(self.folder / INDPTR)
        self.counts.entries = int(degrees.sum())
        self.counts.index = np.dtype(index).name
        for path in (*self.keys, *self.values):
            path.unlink(missing_ok=True)
        return self.counts

    def _sort(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """Positions of a bucket, each once and in order, and their largest weights."""
        if not self.keys[number].exists():
            nothing = np.zeros(0, dtype=WEIGHT) if self.weighted else None
            return np.zeros(0, dtype=KEY), nothing
        keys = np.fromfile(self.keys[number], dtype=KEY)
        weights = None
        if self.weighted:
            weights = np.fromfile(self.values[number], dtype=WEIGHT)
            order = np.lexsort((weights, keys >> 1))
            keys, weights = keys[order], weights[order]
        else:
            keys.sort()
        positions = keys >> 1
        last = np.append(positions[1:] != positions[:-1], True)
        group = np.cumsum(np.concatenate([[False], last[:-1]]))
        forward = np.bincount(group, weights=1 - (keys & 1)).astype(np.int64)
        self.counts.repeated += int(np.maximum(forward - 1, 0).sum())
        self.counts.one_way += int((forward == 0).sum())
        return positions[last], None if weights is None else weights[last]


def _append(path: Path, values: NDArray[np.generic]) -> None:
    with path.open("ab") as file:
        values.tofile(file)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


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
