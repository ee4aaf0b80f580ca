"""Check node ids and convert class names to class codes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN
from dcgst.io.table import Table

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


def read_ids(nodes: Table, column: str) -> list[str]:
    """Return the node ids.

    Raises:
        InputError: if an id is missing or repeated.
    """
    ids = nodes.column(column)
    first_row: dict[str, int] = {}
    for row, node_id in enumerate(ids):
        if not node_id:
            raise InputError(
                f"{nodes.where(row)}: the id in column {column!r} is missing; every node needs an "
                "id, and NA, N/A, NaN, null and none count as missing values"
            )
        if len(node_id) > MAX_ID_LENGTH:
            raise InputError(
                f"{nodes.where(row)}: the id {node_id[:20]!r}… has {len(node_id):,} characters; "
                f"ids may have at most {MAX_ID_LENGTH:,}"
            )
        if node_id in first_row:
            raise InputError(
                f"{nodes.where(row)}: the id {node_id!r} is repeated, it is also in "
                f"{nodes.position(first_row[node_id])}; ids must be unique, and spaces around "
                "them do not count"
            )
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
            "most of them once; name the column of the classes with --label"
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
