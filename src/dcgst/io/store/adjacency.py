"""Build a CSR adjacency matrix in files from edges that come in batches, in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
