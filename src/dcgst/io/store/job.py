"""What an import is given, shared by its steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dcgst.engine.progress import Report
from dcgst.files import write_text
from dcgst.io.columns import NodeColumns
from dcgst.io.edge_columns import EdgeColumns
from dcgst.io.encoders import FeatureEncoder
from dcgst.io.store.sql import Database

BATCH = 100_000
"""Rows that are converted at a time."""


@dataclass(frozen=True)
class Plan:
    """What is imported; an interrupted import continues if it is the same.

    Attributes:
        nodes: node table.
        edges: edge table.
        node_columns: id and label column.
        edge_columns: source, target and weight column.
        features: names of the feature columns.
        kinds: of the feature columns that are given.
        encoder: of the feature columns; None: to be fitted.
        has_header: whether the edge table has a header.
        drop_unknown: whether edges with unknown ids are dropped.
    """

    nodes: Path
    edges: Path
    node_columns: NodeColumns
    edge_columns: EdgeColumns
    features: tuple[str, ...]
    kinds: dict[str, str]
    encoder: FeatureEncoder | None
    has_header: bool
    drop_unknown: bool

    def identity(self) -> dict[str, Any]:
        """The plan as JSON, with size and time of the tables: that of the nodes, and the rest."""
        fields = {key: str(value) for key, value in asdict(self).items()}
        of_nodes = ("nodes", "node_columns", "features", "kinds", "encoder")
        times = [[s.st_size, s.st_mtime_ns] for s in (self.nodes.stat(), self.edges.stat())]
        return {
            "nodes": {**{key: fields.pop(key) for key in of_nodes}, "table": times[0]},
            "edges": {**fields, "table": times[1]},
        }


@dataclass(frozen=True)
class Job:
    """An import that runs.

    Attributes:
        plan: what is imported.
        out: the store.
        work: folder for what is removed at the end.
        database: with the views ``nodes`` and ``edges``.
        memory: bytes to use.
        progress: called with the name of a step and the share of it that is done.
    """

    plan: Plan
    out: Path
    work: Path
    database: Database
    memory: int
    progress: Report

    def step(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stored result of a step, or compute and store it."""
        path = self.work / f"{name}.json"
        if path.exists():
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return stored
        self.progress(name, 0.0)
        result = compute()
        write_text(path, json.dumps(result))
        self.progress(name, 1.0)
        return result
