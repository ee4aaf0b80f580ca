"""Edge tables: the role of each column, and the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import EmptyTableError, InputError, UnknownNodeError, option
from dcgst.graph import FeatureMatrix
from dcgst.graph.cleaning import MAX_MAGNITUDE
from dcgst.tables.encoders import SKEWED, days_of
from dcgst.tables.kinds import Cells
from dcgst.tables.nodes import Columns, matching_names
from dcgst.tables.sources import STDIN, open_table
from dcgst.tables.table import Table, column_names, without_compression
from dcgst.tables.values import NumberFormat, date_format

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
"""Largest number of relations."""

LARGEST_WEIGHT = 3e38
"""Of an edge: the largest number in single precision, nearly."""

NO_COLUMN = "none"
"""Says that no column is the weight, or the relation."""


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
        raise InputError(
            f"name both ends of the edges, with {option('source')} and {option('target')}, or "
            "neither"
        )
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
                f"{option('source')}, {option('target')}, {option('weight')}, "
                f"{option('edge_type')} and {option('edge_time')}"
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
        notes.append(f"relation: column {resolved.edge_type!r}")
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
    pairs, rows = _read_ends(edges, ids, columns, drop_unknown)
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
    types = None if columns.edge_type is None else _read_types(edges, columns.edge_type, rows)
    return Edges(pairs, weights, len(edges) - len(rows), types, tuple(notes), scale)


def unknown_node(where: str, node_id: str, hint: str = "") -> UnknownNodeError:
    """The error for an edge whose end is no node."""
    hint = hint if node_id else " (the cell is empty)"
    text = f"{where}: no node has the id {node_id!r}{hint}; fix it, or drop such edges with "
    return UnknownNodeError(text + option("drop_unknown", True), node_id)


def wrong_weight(where: str, column: str, text: str, others: str = "") -> InputError:
    """The error for a weight that is no number, negative or too large."""
    return InputError(
        f"{where}: the edge weight in column {column!r} must be a number that is not negative and "
        f"at most {LARGEST_WEIGHT:g}, got {text!r}{others}; fix it, remove the edge, or use "
        f"{option('weight', 'none')} to ignore the column"
    )


def no_edge(path: Path) -> InputError:
    """The error for a table whose edges are all loops or unknown."""
    return InputError(
        f"{path} has no edge between two different nodes of the node table; at least one is "
        "required"
    )


def _read_ends(
    edges: Table, ids: Sequence[str], columns: EdgeColumns, drop_unknown: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(2, E)`` positions of the nodes of each edge, and the rows of the table they are from."""
    position = {node_id: index for index, node_id in enumerate(ids)}
    ends = [edges.column(columns.source), edges.column(columns.target)]
    pairs = np.array([[position.get(node_id, -1) for node_id in end] for end in ends])
    unknown = (pairs < 0).any(axis=0)
    if unknown.any() and not drop_unknown:
        row = int(unknown.argmax())
        unknown_id = ends[0 if pairs[0, row] < 0 else 1][row]
        hint = _suggest_id(unknown_id, position)
        raise unknown_node(edges.where(row), unknown_id, hint)
    rows = np.flatnonzero(~unknown)
    pairs = pairs[:, rows]
    if (pairs[0] == pairs[1]).all():
        raise no_edge(edges.path)
    return pairs, rows


def _read_types(edges: Table, column: str, rows: NDArray[np.int64]) -> NDArray[np.str_]:
    """The relation of each edge."""
    texts = edges.column(column)
    blank = next((row for row in rows if not texts[row]), None)
    if blank is not None:
        raise InputError(
            f"{edges.where(int(blank))}: the relation in column {column!r} is missing; fill it in, "
            f"or use {option('edge_type', 'none')}"
        )
    return np.array([texts[row] for row in rows])


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
    invalid = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))  # also NaN
    if len(invalid):
        row = rows[invalid[0]]
        others = f" ({len(invalid):,} such rows)" if len(invalid) > 1 else ""
        raise wrong_weight(edges.where(row), column, edges.column(column)[row], others)
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
    without_zeros = unknown_id.lstrip("0") or "0"
    without_decimals = unknown_id.removesuffix(".0")
    for similar in (without_zeros, without_decimals, unknown_id.lower(), unknown_id.upper()):
        if similar in known:
            return f" (did you mean {similar!r}?)"
    padded = next((node_id for node_id in known if node_id.lstrip("0") == unknown_id), None)
    return f" (did you mean {padded!r}?)" if padded else ""


ROLES = ("source", "target", "weight", "edge_type", "edge_time")


@dataclass(frozen=True)
class EdgeTables:
    """Edge tables by name, None if a table is empty.

    The name is the relation if there are several.
    """

    tables: Mapping[str, Table | None]

    @property
    def first(self) -> Table:
        return next(table for table in self.tables.values() if table is not None)


def open_edge_tables(edges: Any, delimiter: str | None) -> EdgeTables:
    """Open one edge table, a sequence of them, or a mapping from relations to tables."""
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
    notes.append(f"relations: the tables {', '.join(found.tables)}")
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


HALF_DEGREE = 10.0
"""Number of edges in one direction that counts as one half."""


def add_directions(
    features: FeatureMatrix, pairs: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> FeatureMatrix:
    """Append the means of the features over targets and over sources, and how many there are.

    Networks pass messages along edges in both directions. With these columns, they can tell the
    two directions apart. Nothing is learned, so another graph gets the same columns.

    Args:
        features: ``(n, d)``.
        pairs: ``(2, E)`` sources and targets.
        weights: ``(E,)``; None if unweighted.

    Returns:
        ``(n, 3 d + 2)``.

    Example:
        >>> add_directions(np.array([[1.0], [2.0]]), np.array([[0], [1]]), None).round(2)
        array([[1.  , 2.  , 0.  , 0.09, 0.  ],
               [2.  , 0.  , 1.  , 0.  , 0.09]])
    """
    count = features.shape[0]
    values = np.ones(pairs.shape[1]) if weights is None else weights
    used = (pairs[0] != pairs[1]) & (values > 0)
    position, values = (pairs[0] * count + pairs[1])[used], values[used]
    order = np.lexsort((values, position))  # of repeated edges, the one of largest weight is last
    last = np.append(np.diff(position[order]) > 0, True)[: order.size]
    kept = order[last]
    ends = np.divmod(position[kept], count)
    matrix = sp.csr_array((values[kept], ends), shape=(count, count))
    blocks = [features]
    degrees = []
    for own in (matrix, sp.csr_array(matrix.T)):
        total = np.maximum(np.asarray(own.sum(axis=1)), np.finfo(float).tiny).reshape(-1, 1)
        blocks.append(sp.csr_array(own / total).astype(features.dtype) @ features)
        edges = np.diff(own.indptr)
        degrees.append(edges / (edges + HALF_DEGREE))
    shares = np.stack(degrees, axis=1).astype(features.dtype)
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([*blocks, sp.csr_array(shares)]))
    return np.hstack([*blocks, shares])
