"""Node tables: the role of each column, ids and classes; what reading returns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.graph import UNKNOWN, Graph
from dcgst.tables.encoders import FeatureEncoder
from dcgst.tables.kinds import KINDS
from dcgst.tables.table import Table

MAX_ID_LENGTH = 1000
"""Largest number of characters of an id; all ids are stored with the length of the longest."""

MANY_CLASSES = 100
"""With more classes, most must have several labels."""


@dataclass(frozen=True)
class Labels:
    """Classes of the nodes of a table.

    Args:
        class_names: name of each class, in the order of the class codes.
        codes: ``(n,)`` class code of each node, ``UNKNOWN`` for a missing label.
    """

    class_names: tuple[str, ...]
    codes: NDArray[np.int64]


def missing_id(where: str, column: str) -> InputError:
    """The error for a node without an id."""
    return InputError(
        f"{where}: the id in column {column!r} is missing; every node needs an id, and NA, N/A, "
        "NaN, null and none count as missing values"
    )


def long_id(where: str, node_id: str) -> InputError:
    """The error for a text that is too long for an id."""
    return InputError(
        f"{where}: the id {node_id[:20]!r}… has {len(node_id):,} characters; ids may have at most "
        f"{MAX_ID_LENGTH:,}"
    )


def repeated_id(where: str, node_id: str, first: str) -> InputError:
    """The error for an id of two nodes."""
    return InputError(
        f"{where}: the id {node_id!r} is repeated, it is also in {first}; ids must be unique, and "
        "spaces around them do not count"
    )


def read_ids(nodes: Table, column: str) -> list[str]:
    """Return the node ids.

    Raises:
        InputError: if an id is missing or repeated.
    """
    ids = nodes.column(column)
    first_row: dict[str, int] = {}
    for row, node_id in enumerate(ids):
        if not node_id:
            raise missing_id(nodes.where(row), column)
        if len(node_id) > MAX_ID_LENGTH:
            raise long_id(nodes.where(row), node_id)
        if node_id in first_row:
            raise repeated_id(nodes.where(row), node_id, nodes.position(first_row[node_id]))
        first_row[node_id] = row
    return ids


def read_labels(nodes: Table, column: str | None, class_names: Sequence[str] | None) -> Labels:
    """Return the classes of the nodes.

    Args:
        nodes: node table.
        column: label column; None if no node has a label.
        class_names: known classes. None: all classes in the column, in natural order.

    Raises:
        InputError: if a class is not one of ``class_names``.
    """
    values = [""] * len(nodes) if column is None else nodes.column(column)
    if class_names is None:
        class_names = sorted({value for value in values if value}, key=natural_order)
        check_label_column(nodes, column, values, len(class_names))
    code = {"": UNKNOWN} | {name: index for index, name in enumerate(class_names)}
    for row, value in enumerate(values):
        if value not in code:
            raise InputError(
                f"{nodes.where(row)}: the class {value!r} is not a class of the model; its classes "
                f"are: {', '.join(class_names[:20])}"
            )
    codes = np.array([code[value] for value in values], dtype=np.int64)
    return Labels(tuple(class_names), codes)


def check_label_column(
    nodes: Table, column: str | None, values: Sequence[str], num_classes: int
) -> None:
    """Raise if most classes have one label: then the column holds names or texts."""
    count = sum(bool(value) for value in values)
    if num_classes > MANY_CLASSES and num_classes > count / 2:
        raise InputError(
            f"{nodes.path}: column {column!r} has {num_classes:,} classes in {count:,} labels, "
            f"most of them once; name the column of the classes with {option('label')}"
        )


def describe_classes(class_names: Iterable[str]) -> list[str]:
    """Return a note for each class name that differs from another in letter case only.

    Example:
        >>> print(*describe_classes(["Red", "blue", "red"]))
        classes 'Red' and 'red' differ in letter case only; use one spelling for one class
    """
    notes = []
    first_spelling: dict[str, str] = {}
    for name in class_names:
        first = first_spelling.setdefault(name.casefold(), name)
        if first != name:
            notes.append(
                f"classes {first!r} and {name!r} differ in letter case only; use one spelling for "
                "one class"
            )
    return notes


def natural_order(text: str) -> tuple[list[tuple[float, str]], str]:
    """Return a sort key that compares the numbers in a text by value.

    The text itself is the second part, so that "9" and "09" have a fixed order.

    Example:
        >>> sorted(["c10", "c9", "b", "c09"], key=natural_order)
        ['b', 'c09', 'c9', 'c10']
    """
    parts = [part for part in re.split(r"(\d+)", text) if part]
    return [(float(part), "") if part.isdecimal() else (math.inf, part) for part in parts], text


ID_NAMES = ("id", "node_id", "nodeid", "node", "key", "name")
LABEL_NAMES = ("label", "class", "y", "target", "labels", "category")


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
            relation.
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
        """Restore from ``dataclasses.asdict``."""
        return cls(**stored)


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
                f"from {option('features')} and {option('kinds')}"
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
    remedy = remedy or f"name it with {option(what)}"
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
        f"name the id column with {option('id')}; the columns are: {', '.join(nodes.names[:20])}"
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
                f"with {option('id')} or {option('label')}"
            )
        return given
    others = [name for name in nodes.names if name != id_column]
    for name in matching_names(others, LABEL_NAMES):
        return name
    if not needed:
        return None
    raise InputError(
        f"cannot guess the label column of {nodes.path}; name it with {option('label')}; the "
        f"columns are: {', '.join(others[:20])}"
    )


def matching_names(names: Iterable[str], standard: Sequence[str]) -> list[str]:
    """Return the names that are standard names in any letter case, in the order of the latter."""
    by_lower_case = {name.lower(): name for name in names}
    return [by_lower_case[name] for name in standard if name in by_lower_case]


@dataclass(frozen=True)
class StoreReference:
    """The store that a graph is in.

    Attributes:
        path: the folder.
        digest: SHA-256 digest of its arrays.
    """

    path: Path
    digest: str


@dataclass(frozen=True)
class Input:
    """A graph and how it was read.

    Args:
        graph: the graph.
        encoder: encoder that converted columns to features. None if the input had a feature
            matrix, or if the features were computed from the graph structure.
        spectral: whether the features were computed from the graph structure.
        columns: role of each column, given or guessed.
        table: columns of the node table by name, as text, except for the label column; empty if
            the input was no table.
        notes: what was guessed, changed or dropped, for the user.
        audited: whether validation labels are those of randomly chosen nodes.
        store: the store that the graph is in; None if it is in memory.
        weighed: facts about relations that were weighed in an earlier fit.
        relations: ``(n, n)`` adjacency of each relation by name; empty if there is one.
    """

    graph: Graph
    encoder: FeatureEncoder | None = None
    spectral: bool = False
    columns: Columns = field(default_factory=Columns)
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    audited: bool = False
    store: StoreReference | None = None
    relations: Mapping[str, sp.csr_array] = field(default_factory=dict)
    weighed: tuple[Mapping[str, Any], ...] = ()
