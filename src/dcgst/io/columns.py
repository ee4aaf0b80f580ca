"""The role of each column: id, label, edge end, edge weight or feature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dcgst.errors import InputError
from dcgst.io.encoders.kinds import KINDS
from dcgst.io.table import Table

ID_NAMES = ("id", "node_id", "nodeid", "node", "key", "name")
LABEL_NAMES = ("label", "class", "y", "target", "labels", "category")
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
        weight_mean: weights of one of several edge tables are divided by it. None: their mean.
        directed: whether sources and targets of edges are distinguished.
        tables: roles of the columns of each of several edge tables, found in the fit.
        features: columns to use as features. None: all other columns of the node table.
        ignore: columns not to use as features.
        kinds: what feature columns contain, by name: ``number``, ``flag``, ``date``,
            ``day-first``, ``month-first`` (dates), ``category``, ``code``, ``list``, ``text`` or
            ``string``. Guessed for other columns.

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
    weight_mean: float | None = None
    directed: bool = False
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, Mapping):
            raise InputError(f"kinds must be a mapping, got {type(self.kinds).__name__}")
        if not 0 < self.half_life < math.inf:
            raise InputError(
                f"the half-life must be a finite number of days above 0, got {self.half_life!r}"
            )
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


def describe_node_columns(given: Columns, resolved: NodeColumns) -> list[str]:
    """Return notes on the id and the label column if they were guessed."""
    notes = []
    if given.id is None:
        notes.append(f"id: column {resolved.id!r}")
    if given.label is None and resolved.label is not None:
        notes.append(f"label: column {resolved.label!r}")
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
    for name in matching_names(table.names, standard):
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
    for name in matching_names(nodes.names, ID_NAMES):
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
    for name in matching_names(others, LABEL_NAMES):
        return name
    if not needed:
        return None
    raise InputError(
        f"cannot guess the label column of {nodes.path}; name it with --label; the columns are: "
        f"{', '.join(others[:20])}"
    )


def matching_names(names: Iterable[str], standard: Sequence[str]) -> list[str]:
    """Return the names that are standard names in any letter case, in the order of the latter."""
    by_lower_case = {name.lower(): name for name in names}
    return [by_lower_case[name] for name in standard if name in by_lower_case]
