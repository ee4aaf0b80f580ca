"""The role of each column of an edge table."""

from __future__ import annotations

from dataclasses import dataclass

from dcgst.errors import InputError
from dcgst.io.columns import Columns, matching_names
from dcgst.io.table import Table
from dcgst.io.table_files import column_names

EDGE_END_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("node1", "node2"),
    ("id1", "id2"),
)

WEIGHT_NAMES = ("weight", "weights", "w")

TYPE_NAMES = ("edge_type", "type", "relation", "relationship", "rel", "kind", "link_type")

MOST_RELATIONS = 20
"""Largest number of kinds of edges."""

NO_COLUMN = "none"
"""Says that no column is the weight, or the kind of edges."""


@dataclass(frozen=True)
class EdgeColumns:
    """Columns of an edge table; weight, type and time are None if there is no such column."""

    source: str
    target: str
    weight: str | None = None
    edge_type: str | None = None
    edge_time: str | None = None


def resolve_edge_columns(columns: Columns, edges: Table) -> EdgeColumns:
    """Return the source, target and weight column, as given or guessed."""
    if (columns.source is None) != (columns.target is None):
        raise InputError("name both ends of the edges, with --source and --target, or neither")
    source, target, weight = columns.source, columns.target, columns.weight
    if source is None or target is None:
        source, target = _guess_edge_ends(edges)
    if weight == NO_COLUMN and weight not in edges.columns:
        weight = None
    elif weight is None:
        weight = _guess_weight_column(edges, {source, target})
    edge_type = columns.edge_type
    if edge_type is None:
        edge_type = _guess_type_column(edges, {source, target, weight or ""})
    elif edge_type == NO_COLUMN and edge_type not in edges.columns:
        edge_type = None
    roles = [name for name in (source, target, weight, edge_type, columns.edge_time) if name]
    for name in roles:
        edges.column(name)
        if roles.count(name) > 1:
            raise InputError(
                f"column {name!r} of {edges.path} cannot have two roles; name other columns with "
                "--source, --target, --weight, --edge-type and --edge-time"
            )
    return EdgeColumns(source, target, weight, edge_type, columns.edge_time)


def describe_edge_columns(given: Columns, resolved: EdgeColumns, edges: Table) -> list[str]:
    """Return notes on the columns of the edge table that were guessed, and on those not used."""
    notes = []
    ends = (resolved.source, resolved.target)
    if given.source is None and (ends[0].lower(), ends[1].lower()) not in EDGE_END_NAMES:
        notes.append(f"edges: source column {ends[0]!r}, target column {ends[1]!r}")
    if given.weight is None and resolved.weight is not None:
        notes.append(f"weight: column {resolved.weight!r}")
    if given.edge_type is None and resolved.edge_type is not None:
        notes.append(f"kind of edges: column {resolved.edge_type!r}")
    used = (*ends, resolved.weight, resolved.edge_type, resolved.edge_time)
    unused = [name for name in edges.names if name not in used]
    if unused:
        notes.append(f"columns of {edges.path.name} not used: {', '.join(unused[:10])}")
    return notes


def _guess_edge_ends(edges: Table) -> tuple[str, str]:
    """Return the source and target columns with standard names, else the first two columns."""
    by_lower_case = {name.lower(): name for name in edges.names}
    for source, target in EDGE_END_NAMES:
        if source in by_lower_case and target in by_lower_case:
            return by_lower_case[source], by_lower_case[target]
    return edges.names[0], edges.names[1]


def _guess_weight_column(edges: Table, ends: set[str]) -> str | None:
    """Return the column with a standard name, or the third of three columns without a header."""
    for name in matching_names([name for name in edges.names if name not in ends], WEIGHT_NAMES):
        return name
    without_header = edges.names == column_names(3)
    return edges.names[2] if without_header else None


def _guess_type_column(edges: Table, others: set[str]) -> str | None:
    """Return the column with a standard name, if it has a few values that occur again."""
    names = [name for name in edges.names if name not in others]
    for name in matching_names(names, TYPE_NAMES):
        distinct = set(edges.columns[name])
        if 1 < len(distinct) <= MOST_RELATIONS and len(edges) >= 2 * len(distinct):
            return name
    return None
