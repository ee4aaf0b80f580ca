"""Convert an edge table to pairs of nodes and edge weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError, UnknownNodeError
from dcgst.graph.checks import MAX_MAGNITUDE
from dcgst.io.edge_columns import EdgeColumns
from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.dates import date_format
from dcgst.io.encoders.fitting import SKEWED
from dcgst.io.encoders.numbers import NumberFormat
from dcgst.io.encoders.numeric import days_of
from dcgst.io.table import Table
from dcgst.io.table_files import column_names

MOST_TEXTS = 10_000
"""Weights from which their format is learned."""

SMALLEST_WEIGHT = 1e-3
"""Of an edge, however old it is."""


@dataclass(frozen=True)
class Edges:
    """Edges between nodes.

    Args:
        pairs: ``(2, E)`` positions of the source and target nodes.
        weights: ``(E,)`` edge weights, None if unweighted.
        num_dropped: number of edges that were dropped because of an unknown node id.
        types: ``(E,)`` kind of each edge; None if there is one kind.
        notes: how weights were scaled.
        weight_scale: of :class:`Columns`.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    num_dropped: int
    types: NDArray[np.str_] | None = None
    notes: tuple[str, ...] = ()
    weight_scale: float = 0.0


def read_edges(
    edges: Table,
    ids: Sequence[str],
    columns: EdgeColumns,
    *,
    drop_unknown: bool = False,
    half_life: float = 365.0,
    weight_scale: float | None = None,
) -> Edges:
    """Look up both ends of each edge among the node ids.

    Args:
        edges: edge table.
        ids: node ids, in the order of the nodes.
        columns: source, target, weight, type and time column.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
        half_life: days after which an edge counts half, if there is a time column.
        weight_scale: of :class:`Columns`.

    Example:
        >>> from pathlib import Path
        >>> table = Table(Path("edges.csv"), {"u": ["a", "b"], "v": ["b", "c"]}, [2, 3])
        >>> read_edges(table, ["a", "b"], EdgeColumns("u", "v"), drop_unknown=True)
        Edges(pairs=array([[0],
               [1]]), weights=None, num_dropped=1, types=None, notes=(), weight_scale=0.0)
    """
    position = {node_id: index for index, node_id in enumerate(ids)}
    ends = [edges.column(columns.source), edges.column(columns.target)]
    pairs = np.array([[position.get(node_id, -1) for node_id in end] for end in ends])
    unknown = (pairs < 0).any(axis=0)
    if unknown.any() and not drop_unknown:
        row = int(unknown.argmax())
        unknown_id = ends[0 if pairs[0, row] < 0 else 1][row]
        raise UnknownNodeError(
            f"{edges.where(row)}: no node has the id {unknown_id!r}"
            f"{_suggest_id(unknown_id, position)}; fix it, or drop such edges with --drop-unknown",
            unknown_id,
        )
    rows = np.flatnonzero(~unknown)
    pairs = pairs[:, rows]
    if (pairs[0] == pairs[1]).all():
        raise InputError(
            f"{edges.path} has no edge between two different nodes of the node table; at least one "
            "is required"
        )
    notes = []
    weights = None if columns.weight is None else _read_weights(edges, columns.weight, rows)
    scale = 0.0
    if weights is not None:
        scale = scale_of_weights(weights) if weight_scale is None else weight_scale
    if weights is not None and scale:
        weights = np.log2(1 + weights / scale)
        notes.append(f"weights are skewed: logarithms of 1 + weight / {scale:g}")
    if columns.edge_time is not None:
        recent, note = _recency(edges, columns.edge_time, rows, half_life)
        weights = recent if weights is None else weights * recent
        notes.append(note)
    types = None
    if columns.edge_type is not None:
        texts = edges.column(columns.edge_type)
        blank = next((row for row in rows if not texts[row]), None)
        if blank is not None:
            raise InputError(
                f"{edges.where(int(blank))}: the kind of the edge in column {columns.edge_type!r} "
                "is missing; fill it in, or use --edge-type none"
            )
        types = np.array([texts[row] for row in rows])
    return Edges(pairs, weights, len(edges) - len(rows), types, tuple(notes), scale)


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
    weights = _amounts(edges, column)[rows]
    invalid = np.flatnonzero(np.isnan(weights) | (weights < 0))
    if len(invalid):
        row = rows[invalid[0]]
        others = f" ({len(invalid):,} such rows)" if len(invalid) > 1 else ""
        raise InputError(
            f"{edges.where(row)}: the edge weight in column {column!r} must be a number that is "
            f"not negative, got {edges.column(column)[row]!r}{others}; fix it, remove the edge, or "
            "use --weight none to ignore the column"
        )
    return weights


def _amounts(edges: Table, column: str) -> NDArray[np.float64]:
    """Numbers of a column; amounts of money and numbers with units are read as in features."""
    texts = edges.column(column)
    form = NumberFormat.of(text for text in texts[:MOST_TEXTS] if text)
    if not form.unit:
        return edges.numbers(column)
    parsed = [form.parse(text) if text else None for text in texts]
    found = np.array([np.nan if number is None else number for number in parsed], dtype=np.float64)
    return np.where(np.abs(found) > MAX_MAGNITUDE, np.nan, found)


def scale_of_weights(weights: NDArray[np.float64]) -> float:
    """The median of skewed weights, such as amounts of money; zero if they are not skewed.

    Example:
        >>> scale_of_weights(np.array([1.0, 2.0, 3.0]))
        0.0
        >>> scale_of_weights(np.array([5.0] * 20 + [1e6]))
        5.0
    """
    positive = weights[weights > 0]
    if positive.size < 2 or positive.std() == 0:
        return 0.0
    scaled = positive / positive.max()
    skewness = float((((scaled - scaled.mean()) / scaled.std()) ** 3).mean())
    return float(np.median(positive)) if skewness > SKEWED else 0.0


def _recency(
    edges: Table, column: str, rows: NDArray[np.int64], half_life: float
) -> tuple[NDArray[np.float64], str]:
    """``(E,)`` one for the latest edges, half of it after each half-life, and a note."""
    cells = Cells.of(column, [edges.column(column)[row] for row in rows])
    form = date_format(cells.sample, share=0.5)
    if form is None:
        raise InputError(
            f"{edges.where(int(rows[0]))}: column {column!r} should contain dates or times, got "
            f"{edges.column(column)[rows[0]]!r}"
        )
    days = cells.map(lambda text: days_of(text, form))
    if np.isnan(days).any():
        unread = np.flatnonzero(np.isnan(days))
        row = int(rows[unread[0]])
        others = f" ({len(unread):,} such rows)" if len(unread) > 1 else ""
        raise InputError(
            f"{edges.where(row)}: the time in column {column!r} cannot be read, got "
            f"{edges.column(column)[row]!r}{others}; fix it, or remove the edge"
        )
    # One time in the far future must not make all other edges old.
    latest = np.quantile(days, 0.99) if len(days) > 100 else days.max()
    age = np.maximum(latest - days, 0)
    weights = np.maximum(0.5 ** (age / half_life), SMALLEST_WEIGHT)
    return weights, f"edges count half after {half_life:g} days, by {column!r}"


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
