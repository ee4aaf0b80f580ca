"""One or several edge tables become the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcgst.errors import EmptyTableError, InputError
from dcgst.io.columns import Columns
from dcgst.io.edge_columns import NO_COLUMN, describe_edge_columns, resolve_edge_columns
from dcgst.io.edges import Edges, has_header, header_as_row, read_edges
from dcgst.io.sources import STDIN, open_table
from dcgst.io.table import Table
from dcgst.io.table_files import without_compression

ROLES = ("source", "target", "weight", "edge_type", "edge_time")


@dataclass(frozen=True)
class EdgeTables:
    """Edge tables by name, None if a table is empty.

    The name is the kind of edges if there are several.
    """

    tables: Mapping[str, Table | None]

    @property
    def first(self) -> Table:
        return next(table for table in self.tables.values() if table is not None)


def open_edge_tables(edges: Any, delimiter: str | None) -> EdgeTables:
    """Open one edge table, a sequence of them, or a mapping from kinds of edges to tables."""
    if isinstance(edges, Mapping):
        sources = {str(name): source for name, source in edges.items()}
    else:
        sources = {}
        for number, source in enumerate(edges if isinstance(edges, list | tuple) else [edges], 1):
            name = _name_of(source, number)
            if name in sources:
                raise InputError(
                    f"two edge tables are named {name!r}; the name of a table is the kind of its "
                    "edges: rename one of the files"
                )
            sources[name] = source
    if not sources:
        raise InputError("a node table needs at least one edge table")
    tables: dict[str, Table | None] = {}
    empty: list[EmptyTableError] = []
    for name, source in sources.items():
        try:
            tables[name] = open_table(source, delimiter, "edges", header_required=False)
        except EmptyTableError as error:
            tables[name] = None
            empty.append(error)
    if len(empty) == len(tables):
        raise empty[0]
    return EdgeTables(tables)


def _name_of(source: Any, number: int) -> str:
    if isinstance(source, str | Path) and str(source) != STDIN:
        return without_compression(Path(source)).stem
    return f"edges {number}"


def read_edge_tables(
    found: EdgeTables, ids: Sequence[str], columns: Columns, *, drop_unknown: bool
) -> tuple[Edges, dict[str, Any], list[str]]:
    """Read all edges.

    Args:
        found: the tables.
        ids: node ids, in the order of the nodes.
        columns: roles of columns, given by the user or known from a fit (``tables``).
        drop_unknown: drop edges with unknown node ids instead of raising an error.

    Returns:
        the edges; the roles to store with the graph; and notes.
    """
    if columns.tables:
        found = _as_in_the_fit(found, list(columns.tables))
    several = len(found.tables) > 1 or bool(columns.tables)
    if several:
        _check_named(columns, found)
    parts: list[Edges] = []
    notes: list[str] = []
    roles: dict[str, dict[str, Any]] = {}
    for name, table in found.tables.items():
        if table is None:
            notes.append(f"the edge table {name} has no rows")
            roles[name] = dict(columns.tables.get(name, {}))
            continue
        if not has_header(table, ids):
            table = header_as_row(table)
            notes.append(f"{table.path.name} has no header: its first line is read as an edge")
        own = columns if not several else _of_table(columns, name, table)
        resolved = resolve_edge_columns(own, table)
        notes += describe_edge_columns(own, resolved, table)
        links = read_edges(
            table,
            ids,
            resolved,
            drop_unknown=drop_unknown,
            half_life=columns.half_life,
            weight_scale=own.weight_scale,
        )
        notes += [f"{table.path.name}: {note}" if several else note for note in links.notes]
        roles[name] = {key: value or getattr(own, key) for key, value in asdict(resolved).items()}
        roles[name]["weight_scale"] = links.weight_scale
        if several and links.weights is not None:  # the units of tables may differ
            mean = own.weight_mean or float(links.weights.mean()) or 1.0
            roles[name]["weight_mean"] = mean
            links = replace(links, weights=links.weights / mean)
        parts.append(_named(links, name) if several else links)
    if not several:
        return parts[0], next(iter(_fixed(roles).values())), notes
    if columns.edge_type == NO_COLUMN:
        return replace(_join(parts), types=None), {"tables": _fixed(roles)}, notes
    notes.append(f"kinds of edges: the tables {', '.join(found.tables)}")
    return _join(parts), {"tables": _fixed(roles)}, notes


def _as_in_the_fit(found: EdgeTables, names: list[str]) -> EdgeTables:
    """Tables by the names that they had in the fit: the same names, or the same order."""
    if all(name in names for name in found.tables):
        return found
    if len(found.tables) == len(names):
        return EdgeTables(dict(zip(names, found.tables.values(), strict=True)))
    raise InputError(
        f"the fit had the edge tables {', '.join(names)}; give tables of these names, or as many "
        f"in the same order; got {', '.join(found.tables)}"
    )


def _check_named(columns: Columns, found: EdgeTables) -> None:
    """Raise if a column that the user named is in none of the tables."""
    for name in (getattr(columns, role) for role in ROLES):
        if name in (None, NO_COLUMN):
            continue
        tables = [table for table in found.tables.values() if table is not None]
        if not any(name in table.columns for table in tables):
            names = sorted({column for table in tables for column in table.columns})
            raise InputError(
                f"none of the edge tables has a column {name!r}; their columns are "
                f"{', '.join(names[:20])}"
            )


def _of_table(columns: Columns, name: str, table: Table) -> Columns:
    """The roles of one of several tables: as in the fit, or given, if the table has the columns."""
    if name in columns.tables:
        return replace(columns, **columns.tables[name])
    absent: dict[str, Any] = {
        role: None
        for role in ROLES
        if (own := getattr(columns, role)) not in (None, NO_COLUMN) and own not in table.columns
    }
    if "source" in absent or "target" in absent:
        absent |= {"source": None, "target": None}
    return replace(columns, **absent)


def _fixed(roles: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Roles to store: what was not found is not guessed again."""
    optional = ("weight", "edge_type")
    return {
        name: {**own, **{role: own.get(role) or NO_COLUMN for role in optional}}
        for name, own in roles.items()
    }


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
