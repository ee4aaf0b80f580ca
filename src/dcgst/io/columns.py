"""The role of each column: id, label, edge end, edge weight or feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dcgst.errors import InputError
from dcgst.io.encoders.kinds import KINDS
from dcgst.io.table import Table
from dcgst.io.table_files import column_names

ID_NAMES = ("id", "node_id", "nodeid", "node", "key", "name")
LABEL_NAMES = ("label", "class", "y", "target", "labels", "category")
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

KINDS_BEFORE = ("number", "category", "text")


@dataclass(frozen=True)
class Columns:
    """Role of each column of a node table and an edge table.

    Args:
        id: column of node ids. None: guess.
        label: column of classes, empty for nodes of unknown class. None: guess.
        source: column of the first node of each edge. None: guess.
        target: column of the second node of each edge. None: guess.
        weight: column of edge weights. None: guess; edges are unweighted if no column matches.
        edge_type: column of the kind of each edge. None: guess; if no column matches, there is one
            kind of edges.
        edge_time: column of the time of each edge; older edges count less.
        half_life: days after which an edge counts half, with ``edge_time``.
        weight_scale: weights w are replaced by ``log2(1 + w / weight_scale)``; zero for no change.
            None: the median weight if the weights are skewed.
        features: columns to use as features. None: all other columns of the node table.
        ignore: columns not to use as features.
        kinds: what feature columns contain, by name: ``number``, ``flag``, ``date``,
            ``category``, ``code``, ``list``, ``text`` or ``string``. Guessed for other columns.

    Example:
        >>> Columns(label="topic", kinds={"year": "number", "title": "text"}).label
        'topic'
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    edge_type: str | None = None
    edge_time: str | None = None
    half_life: float = 365.0
    weight_scale: float | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, Mapping):
            raise InputError(f"kinds must be a mapping, got {type(self.kinds).__name__}")
        if not self.half_life > 0:
            raise InputError(f"the half-life must be more than 0 days, got {self.half_life!r}")
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                raise InputError(
                    f"column {name!r} cannot have the kind {kind!r}; the kinds are: "
                    f"{', '.join(KINDS)}"
                )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Columns:
        """Restore from ``dataclasses.asdict``; version 0.1 stored a list of columns by kind."""
        values = {key: value for key, value in stored.items() if key not in KINDS_BEFORE}
        before = {name: kind for kind in KINDS_BEFORE for name in stored.get(kind) or ()}
        return cls(**{"kinds": before, **values})


@dataclass(frozen=True)
class NodeColumns:
    """Id and label column of a node table; the label column is None if there is none."""

    id: str
    label: str | None


@dataclass(frozen=True)
class EdgeColumns:
    """Columns of an edge table; weight, type and time are None if there is no such column."""

    source: str
    target: str
    weight: str | None = None
    edge_type: str | None = None
    edge_time: str | None = None


def resolve_node_columns(
    columns: Columns, nodes: Table, edges: Table, *, labels_needed: bool
) -> NodeColumns:
    """Return the id and the label column, as given or guessed.

    Args:
        columns: given roles.
        nodes: node table.
        edges: edge table; its first two columns help to guess the id column.
        labels_needed: whether a table without a label column is an error.
    """
    if labels_needed:
        _check_order(columns, nodes, edges)
    id_column = columns.id
    if id_column is None:
        id_column = _guess_id_column(nodes, edges)
    label = _resolve_label_column(columns.label, nodes, id_column, labels_needed)
    return NodeColumns(id_column, label)


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


def describe_node_columns(given: Columns, resolved: NodeColumns) -> list[str]:
    """Return notes on the id and the label column if they were guessed."""
    notes = []
    if given.id is None:
        notes.append(f"id: column {resolved.id!r}")
    if given.label is None and resolved.label is not None:
        notes.append(f"label: column {resolved.label!r}")
    return notes


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


def feature_columns(columns: Columns, resolved: NodeColumns, nodes: Table) -> list[str]:
    """Return the names of the feature columns.

    Raises:
        InputError: if a named column does not exist, or is the id or the label column.
    """
    not_features = {resolved.id, resolved.label}
    names = list(nodes.names if columns.features is None else columns.features)
    for name in (*names, *columns.ignore, *columns.kinds):
        nodes.column(name)
    for name in (*(columns.features or ()), *columns.kinds):
        if name in not_features:
            raise InputError(
                f"column {name!r} is the id or label column and cannot be a feature; remove it "
                "from --features and --kind"
            )
    excluded = not_features.union(columns.ignore)
    return [name for name in names if name not in excluded]


def find_column(
    table: Table,
    given: str | None,
    hint: str | None,
    standard: Sequence[str],
    what: str,
    remedy: str | None = None,
) -> str:
    """Return the given column, else the hint if the table has it, else one with a standard name.

    Args:
        table: the table.
        given: name of the column, as given by the user.
        hint: name of that column in another table.
        standard: standard names.
        what: ``id`` or ``label``, for the message.
        remedy: what to do, for the message; default: to use the option ``--id`` or ``--label``.
    """
    if given is not None:
        table.column(given)
        return given
    if hint is not None and hint in table.columns:
        return hint
    for name in _matching(table.names, standard):
        return name
    remedy = remedy or f"name it with --{what}"
    raise InputError(
        f"cannot guess the {what} column of {table.path}; {remedy}; the columns are: "
        f"{', '.join(table.names[:20])}"
    )


def _guess_id_column(nodes: Table, edges: Table) -> str:
    """Return the column with a standard name, else the one that edges refer to, else a unique one.

    A column that edges refer to contains more than half of the ids in the first two columns of the
    edge table.
    """
    for name in _matching(nodes.names, ID_NAMES):
        return name
    edge_ids = {text for column in list(edges.columns.values())[:2] for text in column}
    values = {name: set(column) for name, column in nodes.columns.items()}
    num_shared = {name: len(edge_ids & own) for name, own in values.items()}
    best = max(num_shared, key=lambda name: num_shared[name])
    if num_shared[best] > len(edge_ids) / 2:
        return best
    for name, own in values.items():
        if len(own) == len(nodes) and "" not in own:
            return name
    raise InputError(
        f"no column of {nodes.path} can be the id column: none has a different value in every row; "
        f"name the id column with --id; the columns are: {', '.join(nodes.names[:20])}"
    )


def _check_order(columns: Columns, nodes: Table, edges: Table) -> None:
    """Raise if the label column is in the edge table only."""
    label = columns.label
    if label is not None and label not in nodes.columns and label in edges.columns:
        raise InputError(
            f"{nodes.path} has no column {label!r}, but {edges.path} has; the node table comes "
            "first, then the edge table"
        )


def _resolve_label_column(
    given: str | None, nodes: Table, id_column: str, needed: bool
) -> str | None:
    if given is not None:
        if not needed and given not in nodes.columns:
            return None
        nodes.column(given)
        if given == id_column:
            raise InputError(
                f"column {given!r} cannot be both the id and the label column; name another column "
                "with --id or --label"
            )
        return given
    others = [name for name in nodes.names if name != id_column]
    for name in _matching(others, LABEL_NAMES):
        return name
    if not needed:
        return None
    raise InputError(
        f"cannot guess the label column of {nodes.path}; name it with --label; the columns are: "
        f"{', '.join(others[:20])}"
    )


def _guess_edge_ends(edges: Table) -> tuple[str, str]:
    """Return the source and target columns with standard names, else the first two columns."""
    by_lower_case = {name.lower(): name for name in edges.names}
    for source, target in EDGE_END_NAMES:
        if source in by_lower_case and target in by_lower_case:
            return by_lower_case[source], by_lower_case[target]
    return edges.names[0], edges.names[1]


def _guess_weight_column(edges: Table, ends: set[str]) -> str | None:
    """Return the column with a standard name, or the third of three columns without a header."""
    for name in _matching([name for name in edges.names if name not in ends], WEIGHT_NAMES):
        return name
    without_header = edges.names == column_names(3)
    return edges.names[2] if without_header else None


def _guess_type_column(edges: Table, others: set[str]) -> str | None:
    """Return the column with a standard name, if it has a few values that occur again."""
    names = [name for name in edges.names if name not in others]
    for name in _matching(names, TYPE_NAMES):
        distinct = set(edges.columns[name])
        if 1 < len(distinct) <= MOST_RELATIONS and len(edges) >= 2 * len(distinct):
            return name
    return None


def _matching(names: Iterable[str], standard: Sequence[str]) -> list[str]:
    """Return the names that are standard names in any letter case, in the order of the latter."""
    by_lower_case = {name.lower(): name for name in names}
    return [by_lower_case[name] for name in standard if name in by_lower_case]
