"""Synthetic tables of any size: planted classes, homophilous edges, labels that are biased."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

CHUNK = 200_000


@dataclass(frozen=True)
class Tables:
    """What is generated.

    Attributes:
        nodes: number of nodes.
        edges_per_node: number of edges divided by that of nodes.
        features: number of feature columns.
        classes: number of classes.
        labels_per_class: number of labels of each class.
        homophily: share of edges between nodes of the same class, beyond chance.
        noise: standard deviation of the features within a class; class means have one.
    """

    nodes: int
    edges_per_node: int = 10
    features: int = 64
    classes: int = 50
    labels_per_class: int = 10
    homophily: float = 0.4
    noise: float = 4.0

    def write(self, folder: Path) -> tuple[Path, Path, NDArray[np.int16]]:
        """Write ``nodes.csv`` and ``edges.csv``; returns their paths and the true classes.

        The features of a class are shifted along a direction of its own by an amount between 0 and
        1 that differs from node to node. Labels are those of nodes with an amount below 0.2.
        """
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        truth = rng.integers(0, self.classes, self.nodes, dtype=np.int16)
        amount = rng.random(self.nodes, dtype=np.float32)
        means, shifts = rng.normal(size=(2, self.classes, self.features)).astype(np.float32)
        labeled = np.zeros(self.nodes, dtype=bool)
        for code in range(self.classes):
            members = np.flatnonzero((truth == code) & (amount < 0.2))
            labeled[rng.choice(members, min(self.labels_per_class, members.size), False)] = True
        paths = folder / "nodes.csv", folder / "edges.csv"
        self._write_nodes(paths[0], truth, amount, labeled, means, shifts)
        self._write_edges(paths[1], truth)
        return *paths, truth

    def _write_nodes(
        self,
        path: Path,
        truth: NDArray[np.int16],
        amount: NDArray[np.float32],
        labeled: NDArray[np.bool_],
        means: NDArray[np.float32],
        shifts: NDArray[np.float32],
    ) -> None:
        rng = np.random.default_rng(1)
        names = [f"x{column}" for column in range(self.features)]
        types = [("id", pa.int64()), ("label", pa.string()), *((x, pa.float32()) for x in names)]
        with csv.CSVWriter(path, pa.schema(types)) as writer:
            for start in range(0, self.nodes, CHUNK):
                own = slice(start, min(self.nodes, start + CHUNK))
                code, count = truth[own], own.stop - own.start
                noise = rng.standard_normal((count, self.features), dtype=np.float32)
                x = means[code] + amount[own, None] * shifts[code] + self.noise * noise
                classes = np.char.add("class", code.astype(str))
                label = pa.array(classes, mask=~labeled[own])
                columns = [pa.array(np.round(column, 3)) for column in x.T]
                ids = pa.array(np.arange(own.start, own.stop))
                writer.write_table(pa.table([ids, label, *columns], pa.schema(types)))

    def _write_edges(self, path: Path, truth: NDArray[np.int16]) -> None:
        rng = np.random.default_rng(2)
        order = np.argsort(truth, kind="stable").astype(np.int32)
        first = np.searchsorted(truth[order], np.arange(self.classes))
        count = np.bincount(truth, minlength=self.classes)
        types = pa.schema([("source", pa.int32()), ("target", pa.int32())])
        with csv.CSVWriter(path, types) as writer:
            for start in range(0, self.nodes * self.edges_per_node, 5 * CHUNK):
                size = min(5 * CHUNK, self.nodes * self.edges_per_node - start)
                source = rng.integers(0, self.nodes, size, dtype=np.int32)
                target = rng.integers(0, self.nodes, size, dtype=np.int32)
                same = rng.random(size) < self.homophily
                code = truth[source[same]]
                within = (rng.random(code.size) * count[code]).astype(np.int64)
                target[same] = order[first[code] + within]
                writer.write_table(pa.table([source, target], types))
