"""Small graphs and quick settings for tests that fit a method."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dcgst import Graph, synthetic
from dcgst.runs.folder import digest_of, seal
from dcgst.tables.importing import import_tables

QUICK: dict[str, Any] = {
    "epochs": 10,
    "stage_epochs": 4,
    "student_epochs": 4,
    "max_stages": 2,
    "hidden": 8,
}
"""Settings of DC-GST that take a fraction of a second."""


def with_few_labels(graph: Graph, per_class: int = 4) -> Graph:
    """The graph with the first labels of each class only, and without masks."""
    labels = np.full(graph.num_nodes, -1)
    for code in range(graph.num_classes):
        labels[np.flatnonzero(graph.labels == code)[:per_class]] = code
    return replace(graph.with_labels(labels), masks={})


def small_graph(nodes: int = 120) -> Graph:
    """A graph of three classes with four labels each; all other labels are unknown."""
    return with_few_labels(synthetic(nodes, 3, features=8, seed=1, name="small"))


def with_known_truth(graph: Graph) -> Graph:
    """The graph with all labels, of which the mask ``train`` holds the given ones."""
    truth = np.arange(graph.num_nodes) * graph.num_classes // graph.num_nodes
    return replace(graph.with_labels(truth), masks={"train": graph.labels >= 0})


def reseal(folder: Path, **changes: Any) -> None:
    """Change entries of ``run.json`` and update all digests, as an attacker could."""
    info = json.loads((folder / "run.json").read_text()) | changes
    info["files"] = {name: digest_of((folder / name).read_bytes()) for name in info["files"]}
    (folder / "run.json").write_text(json.dumps(seal(info)))


def write_store_tables(folder):
    """Node and edge table of 300 nodes in three classes, 24 of them labeled, and their store."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    x = np.eye(3)[truth] + 0.5 * rng.normal(size=(300, 3))
    names = np.array(["red", "green", "blue"])[truth]
    labels = np.where(np.arange(300) < 24, names, "")
    rows = [f"n{i},{labels[i]},{x[i, 0]},{x[i, 1]},{x[i, 2]}" for i in range(300)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,a,b,c", *rows]))
    ends = [(i, j) for i in range(300) for j in rng.choice(np.flatnonzero(truth == truth[i]), 3)]
    (folder / "edges.csv").write_text("\n".join(["s,t", *(f"n{i},n{j}" for i, j in ends)]))
    (folder / "truth.csv").write_text(
        "\n".join(["id,label", *(f"n{i},{names[i]}" for i in range(300))])
    )
    import_tables(folder / "nodes.csv", folder / "edges.csv", folder / "g.store")
    return folder
