"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.helpers import dcgst, write_table
from tests.runs.helpers import small_graph

METHOD = ("--method", "dcgst", "--set", "epochs=10", "--set", "max_stages=2",
          "--set", "student_epochs=4", "--set", "hidden=8")  # fmt: skip
"""Quick, with pseudo-labels."""


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """A folder with ``nodes.csv`` (label column: kind) and ``edges.csv``."""
    folder = tmp_path_factory.mktemp("tables")
    graph = small_graph(90)
    rows = [
        [f"n{i:03d}", *np.round(graph.features[i, :4], 3), "" if label < 0 else "abc"[label]]
        for i, label in enumerate(graph.labels)
    ]
    write_table(folder / "nodes.csv", ["id", "w", "x1", "x2", "x3", "kind"], rows)
    coo = graph.adjacency.tocoo()
    edges = [[f"n{a:03d}", f"n{b:03d}"] for a, b in zip(coo.row, coo.col, strict=True) if a < b]
    write_table(folder / "edges.csv", ["source", "target"], edges)
    return folder


@pytest.fixture(scope="session")
def fitted(tables):
    """The output of ``dcgst fit`` on the tables; the run folder is ``tables / "run"``."""
    return dcgst("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind",
                 "-o", tables / "run", "--replicas", 2, *METHOD)  # fmt: skip


@pytest.fixture(scope="session")
def run_folder(fitted, tables) -> Path:
    assert fitted.code == 0, fitted.err
    return tables / "run"
