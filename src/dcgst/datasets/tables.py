"""Datasets stored as tables: nodes, edges, and the true classes in a third table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dcgst.datasets.source import Source, find, locate
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.tables import read
from dcgst.tables.nodes import natural_order
from dcgst.tables.table import read_table

SOURCE = Source(
    "tables",
    origin="https://github.com/benedekrozemberczki/MUSAE",
    remedy="convert the original (https://github.com/benedekrozemberczki/MUSAE) to a folder with "
    "nodes.csv (id and features), edges.csv and truth.csv (id and class)",
)
FILES = ("nodes.csv", "edges.csv", "truth.csv")


def available(name: str) -> bool:
    """Whether the files of a dataset are on this machine."""
    return all(find(SOURCE, f"{name}/{file}") is not None for file in FILES)


def load(name: str) -> Graph:
    """Load a dataset by name, with all labels."""
    return _load([locate(SOURCE, f"{name}/{file}") for file in FILES], name)


def load_folder(folder: Path) -> Graph:
    """Load a graph from the three tables in a folder, with all labels."""
    return _load([folder / file for file in FILES], folder.name)


def _load(files: Sequence[Path], name: str) -> Graph:
    nodes, edges, path = files
    graph = read(nodes, edges, labels_needed=False).graph
    truth = read_table(path)
    if len(truth.columns) != 2:
        raise InputError(f"{path} must have two columns, id and class; it has {len(truth.columns)}")
    ids, classes = (list(map(str, values)) for values in truth.columns.values())
    names = tuple(sorted(set(classes), key=natural_order))
    code = {text: number for number, text in enumerate(names)}
    known = {node: code[text] for node, text in zip(ids, classes, strict=True)}
    labels = np.array([known.get(str(node), UNKNOWN) for node in graph.ids])
    return replace(graph, labels=labels, class_names=names, name=name)
