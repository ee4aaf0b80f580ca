"""One or several edge tables become the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcgst.errors import InputError
from dcgst.io.columns import Columns
from dcgst.io.edge_columns import EdgeColumns, describe_edge_columns, resolve_edge_columns
from dcgst.io.edges import Edges, has_header, header_as_row, read_edges
from dcgst.io.sources import STDIN, open_table
from dcgst.io.table import Table
from dcgst.io.table_files import without_compression

ROLES = ("source", "target", "weight", "edge_type", "edge_time")


@dataclass(frozen=True)
class EdgeTables:
    """Edge tables by name; the name is the kind of edges if there are several."""

    tables: Mapping[str, Table]

    @property
    def first(self) -> Table:
        return next(iter(self.tables.values()))


def open_edge_tables(edges: Any, delimiter: str | None) -> EdgeTables:
    """Open one edge table, a sequence of them, or a mapping from kinds of edges to tables."""
    if isinstance(edges, Mapping):
        sources = {str(name): source for name, source in edges.items()}
    elif isinstance(edges, list | tuple):
        sources = {}
        for number, source in enumerate(edges, 1):
            name = _name_of(source, number)
            if name in sources:
                raise InputError(
                    f"two edge tables are named {name!r}; the name of a table is the kind of its "
                    "edges: rename one of the files"
                )
            sources[name] = source
    else:
        sources = {"edges": edges}
    if not sources:
        raise InputError("a node table needs at least one edge table")
    return EdgeTables(
        {
            name: open_table(source, delimiter, "edges", header_required=False)
            for name, source in sources.items()
        }
    )


def _name_of(source: Any, number: int) -> str:
    if isinstance(source, str | Path) and str(source) != STDIN:
        return without_compression(Path(source)).stem
    return getattr(source, "name", None) or f"edges {number}"


def read_edge_tables(
    found: EdgeTables, ids: Sequence[str], columns: Columns, *, drop_unknown: bool
) -> tuple[Edges, dict[str, Any], list[str]]:
    """Read all edges.

    Args:
        found: the tables.
        ids: node ids, in the order of the nodes.
        columns: roles of columns, given by the user; those of several tables are guessed for each.
        drop_unknown: drop edges with unknown node ids instead of raising an error.

    Returns:
        the edges; the roles to store with the graph; and notes.
    """
    several = len(found.tables) > 1
    parts: list[Edges] = []
    notes: list[str] = []
    resolved = EdgeColumns("", "")
    for name, table in found.tables.items():
        if not has_header(table, ids):
            table = header_as_row(table)
            notes.append(f"{table.path.name} has no header: its first line is read as an edge")
        own = _present(columns, table) if several else columns
        resolved = resolve_edge_columns(own, table)
        notes += describe_edge_columns(own, resolved, table)
        links = read_edges(
            table,
            ids,
            resolved,
            drop_unknown=drop_unknown,
            half_life=columns.half_life,
            weight_scale=columns.weight_scale,
        )
        notes += [f"{table.path.name}: {note}" if several else note for note in links.notes]
        parts.append(_named(links, name) if several else links)
    if several:
        notes.append(f"kinds of edges: the {len(parts)} tables {', '.join(found.tables)}")
        return _join(parts), {}, notes
    roles = {key: name or getattr(columns, key) for key, name in asdict(resolved).items()}
    return parts[0], {**roles, "weight_scale": parts[0].weight_scale}, notes


def _present(columns: Columns, table: Table) -> Columns:
    """The given roles, without columns that only other tables have."""
    absent: dict[str, Any] = {
        role: None
        for role in ROLES
        if (name := getattr(columns, role)) not in (None, "none") and name not in table.columns
    }
    return replace(columns, **absent)


def _named(edges: Edges, name: str) -> Edges:
    """The same edges, whose kinds start with the name of their table."""
    if edges.types is None:
        types = np.full(edges.pairs.shape[1], name)
    else:
        types = np.array([f"{name} {kind}" for kind in edges.types.tolist()])
    return replace(edges, types=types)


def _join(parts: Sequence[Edges]) -> Edges:
    weighted = any(part.weights is not None for part in parts)
    weights = [
        np.ones(part.pairs.shape[1]) if part.weights is None else part.weights for part in parts
    ]
    return Edges(
        np.concatenate([part.pairs for part in parts], axis=1),
        np.concatenate(weights) if weighted else None,
        sum(part.num_dropped for part in parts),
        np.concatenate([part.types for part in parts if part.types is not None]),
    )
