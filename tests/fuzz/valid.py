"""Valid files, run folders and interrupted fits, to be damaged."""

from __future__ import annotations

import contextlib
import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dcgst import DCGST, EM, Columns, fit, read
from dcgst.files import rows_to_csv
from dcgst.label.journal import Journal
from dcgst.tables.importing import import_tables
from dcgst.train.training import StageEnd
from tests.runs.helpers import QUICK, small_graph

NODES = b"id,size,color,text,label\n" + b"".join(
    b"n%d,%d.5,%s,%s,%s\n"
    % (i, i * 7 % 11, (b"red", b"blue")[i % 2], b"a few words here" if i % 3 else b"other words",
       (b"x", b"y", b"", b"")[i % 4])
    for i in range(12)
)  # fmt: skip
EDGES = b"source,target,weight\n" + b"".join(
    b"n%d,n%d,%d\n" % (i, (i + 1) % 12, 1 + i % 3) for i in range(12)
)


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    ring = np.arange(12)
    return {
        "edge_index": np.stack([ring, (ring + 1) % 12]),
        "x": rng.random((12, 4)),
        "y": np.array([0, 1, -1, -1] * 3),
    }


def npz(values: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()


def sparse_arrays() -> dict[str, Any]:
    values = arrays()
    del values["x"]
    return values | {
        "x_data": np.ones(24),
        "x_indices": np.tile([0, 2], 12),
        "x_indptr": np.arange(0, 25, 2),
        "x_shape": np.array([12, 4]),
    }


@cache
def valid_file(kind: str) -> bytes:
    if kind == "npz":
        return npz(sparse_arrays())
    if kind == "pt":
        import torch

        buffer = io.BytesIO()
        torch.save({key: torch.tensor(value) for key, value in arrays().items()}, buffer)
        return buffer.getvalue()
    if kind == "graphml":
        import networkx as nx

        graph = nx.cycle_graph(12)
        for node in graph:
            graph.nodes[node].update(size=node * 1.5, label=("x", "y", "", "")[node % 4])
        return "\n".join(nx.generate_graphml(graph)).encode()
    import pyarrow.csv
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(NODES)), buffer)
    return buffer.getvalue()


@cache
def valid_run() -> Path:
    """A run folder; it exists as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-")) / "run"
    fit(small_graph(40), folder, DCGST(**QUICK))
    return folder


@cache
def valid_store() -> Path:
    """A store; it exists as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for name, content in (("nodes.csv", NODES), ("edges.csv", EDGES)):
        (folder / name).write_bytes(content)
    columns = Columns(label="label")
    import_tables(folder / "nodes.csv", folder / "edges.csv", folder / "g.store", columns)
    return folder / "g.store"


@cache
def run_of_tables() -> Path:
    """A run that was fitted to the valid tables; it exists as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for name, content in (("nodes.csv", NODES), ("edges.csv", EDGES)):
        (folder / name).write_bytes(content)
    data = read(folder / "nodes.csv", folder / "edges.csv", Columns(label="label"))
    fit(data, folder / "run", EM())
    return folder / "run"


@cache
def valid_journal() -> bytes:
    """A journal with labels, skips, and one that was taken back."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "labels.jsonl")
        for number in range(4):
            journal.decide("label", "someone", [f"n{number}"], "x")
        journal.undo("someone")
        journal.decide("skip", "someone else", ["n7"])
        return journal.path.read_bytes()


RESUMED = DCGST(**QUICK)


@cache
def interrupted_fit() -> Path:
    """A folder ``out`` of a fit to the valid tables that was interrupted in its second stage."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for name, content in (("nodes.csv", NODES), ("edges.csv", EDGES)):
        (folder / name).write_bytes(content)
    data = read(folder / "nodes.csv", folder / "edges.csv", Columns(label="label"))
    (folder / "expected.csv").write_text(
        rows_to_csv(fit(data, folder / "whole", RESUMED).predictions)
    )

    def interrupt(event: object) -> None:
        if isinstance(event, StageEnd):
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        fit(data, folder / "out", RESUMED, callbacks=[interrupt])
    return folder / "out"
