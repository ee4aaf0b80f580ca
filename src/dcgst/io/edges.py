"""Convert an edge table to pairs of nodes and edge weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.io.columns import EdgeColumns
from dcgst.io.table import Table
from dcgst.io.table_files import column_names


@dataclass(frozen=True)
class Edges:
    """Edges between nodes.

    Args:
        pairs: ``(2, E)`` positions of the source and target nodes.
        weights: ``(E,)`` edge weights, None if unweighted.
        num_dropped: number of edges that were dropped because of an unknown node id.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    num_dropped: int


def read_edges(
    edges: Table,
    ids: Sequence[str],
    columns: EdgeColumns,
    *,
    drop_unknown: bool = False,
) -> Edges:
    """Look up both ends of each edge among the node ids.

    Args:
        edges: edge table.
        ids: node ids, in the order of the nodes.
        columns: source, target and weight column.
        drop_unknown: drop edges with unknown node ids instead of raising an error.

    Example:
        >>> from pathlib import Path
        >>> table = Table(Path("edges.csv"), {"u": ["a", "b"], "v": ["b", "c"]}, [2, 3])
        >>> read_edges(table, ["a", "b"], EdgeColumns("u", "v"), drop_unknown=True)
        Edges(pairs=array([[0],
               [1]]), weights=None, num_dropped=1)
    """
    position = {node_id: index for index, node_id in enumerate(ids)}
    ends = [edges.column(columns.source), edges.column(columns.target)]
    pairs = np.array([[position.get(node_id, -1) for node_id in end] for end in ends])
    unknown = (pairs < 0).any(axis=0)
    if unknown.any() and not drop_unknown:
        row = int(unknown.argmax())
        unknown_id = ends[0 if pairs[0, row] < 0 else 1][row]
        raise InputError(
            f"{edges.where(row)}: no node has the id {unknown_id!r}"
            f"{_suggest_id(unknown_id, position)}; fix it, or drop such edges with --drop-unknown"
        )
    rows = np.flatnonzero(~unknown)
    pairs = pairs[:, rows]
    if (pairs[0] == pairs[1]).all():
        raise InputError(
            f"{edges.path} has no edge between two different nodes of the node table; at least one "
            "is required"
        )
    weights = None if columns.weight is None else _read_weights(edges, columns.weight, rows)
    return Edges(pairs, weights, len(edges) - len(rows))


def has_header(edges: Table, ids: Sequence[str]) -> bool:
    """Whether the header of an edge table is a header, not an edge between two of the ids."""
    return not set(edges.names[:2]) <= set(ids)


def header_as_row(table: Table) -> Table:
    """Return a table without a header: its column names become the first row."""
    columns = {
        name: [first, *values]
        for name, (first, values) in zip(
            column_names(len(table.columns)), table.columns.items(), strict=True
        )
    }
    return Table(table.path, columns, [table.header_line, *table.lines], unit=table.unit)


def _read_weights(edges: Table, column: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    weights = edges.numbers(column)[rows]
    invalid = np.flatnonzero(np.isnan(weights) | (weights < 0))
    if len(invalid):
        row = rows[invalid[0]]
        raise InputError(
            f"{edges.where(row)}: the edge weight in column {column!r} must be a number that is "
            f"not negative, got {edges.column(column)[row]!r}; fix it, or remove the edge"
        )
    return weights


def _suggest_id(unknown_id: str, known: Mapping[str, int]) -> str:
    """Return a hint at a known id with other leading zeros, decimals or letter case."""
    if not unknown_id:
        return " (the cell is empty)"
    without_zeros = unknown_id.lstrip("0") or "0"
    without_decimals = unknown_id.removesuffix(".0")
    for similar in (without_zeros, without_decimals, unknown_id.lower(), unknown_id.upper()):
        if similar in known:
            return f" (did you mean {similar!r}?)"
    padded = next((node_id for node_id in known if node_id.lstrip("0") == unknown_id), None)
    return f" (did you mean {padded!r}?)" if padded else ""
