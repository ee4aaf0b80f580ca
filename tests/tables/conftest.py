"""Fixtures of the tests of reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dcgst.tables.table import Table

NODES = """id,age,city,about,label
007,31,Rome,red apples and green pears,fruit
8,,Oslo,red cars and fast bikes,
9,45,Rome,green pears taste sweet,
10,52,Oslo,fast cars and loud bikes,wheels
"""
EDGES = "source,target\n007,9\n8,10\n9,007\n"


@pytest.fixture
def write_tables(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return a function that writes ``nodes.csv`` and ``edges.csv`` and returns their paths."""

    def write(nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> tuple[Path, Path]:
        for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(raw)
        return tmp_path / "nodes.csv", tmp_path / "edges.csv"

    return write


def make_table(**columns: list[str]) -> Table:
    """Return a table whose rows start in line 2."""
    num_rows = len(next(iter(columns.values())))
    return Table(Path("nodes.csv"), columns, range(2, 2 + num_rows))
