"""Read a table of node ids and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dcgst.errors import InputError
from dcgst.io.columns import ID_NAMES, LABEL_NAMES, Columns, find_column
from dcgst.io.table import Table
from dcgst.io.table_files import read_table

CHOSEN = "chosen"
"""Column of a table to fill in: how the node was chosen."""

RANDOM = "random"
"""Value of that column for nodes of an audit."""


@dataclass(frozen=True)
class LabelTable:
    """Classes of some nodes, by id.

    Attributes:
        path: the file.
        classes: class name by node id, in the order of the rows.
        rows: position in the file by node id, for messages.
        random: ids of nodes that were chosen at random, by the column ``chosen``.
        blank: number of rows without a class.
    """

    path: Path
    classes: dict[str, str]
    rows: dict[str, str]
    random: frozenset[str]
    blank: int


def read_label_table(
    path: str | Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    hints: Columns | None = None,
    delimiter: str | None = None,
) -> LabelTable:
    r"""Read the classes of some nodes from a table; rows without a class are skipped.

    Args:
        path: CSV or Parquet file.
        id_column: column of node ids; guessed if None.
        label_column: column of classes; guessed if None.
        hints: columns of the node table, which often have the same names.
        delimiter: delimiter of a CSV file.

    Raises:
        InputError: if an id is missing, or has two classes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "truth.csv")
        >>> _ = path.write_text("id,class\na,red\nb,\nc,blue\n")
        >>> found = read_label_table(path)
        >>> found.classes, found.blank
        ({'a': 'red', 'c': 'blue'}, 1)
    """
    table = read_table(Path(path), delimiter)
    hints = hints or Columns()
    id_column = find_column(table, id_column, hints.id, ID_NAMES, "id", _remedy(hints.id, ID_NAMES))
    if label_column is None and len(table.names) == 2:
        label_column = next((name for name in table.names if name != id_column), None)
    label_column = find_column(
        table, label_column, hints.label, LABEL_NAMES, "label", _remedy(hints.label, LABEL_NAMES)
    )
    if id_column == label_column:
        raise InputError(
            f"column {id_column!r} of {path} cannot be both the id and the label column"
        )
    return _read_rows(table, id_column, label_column)


def _remedy(of_nodes: str | None, standard: Sequence[str]) -> str | None:
    """Commands that know the node table have no options for the columns of other tables."""
    if not of_nodes:
        return None
    other = f", or {standard[0]!r}" if standard[0] != of_nodes else ""
    return f"call it {of_nodes!r} as in the node table{other}"


def _read_rows(table: Table, id_column: str, label_column: str) -> LabelTable:
    classes: dict[str, str] = {}
    rows: dict[str, str] = {}
    chosen = table.columns.get(CHOSEN, [""] * len(table))
    random = set()
    blank = 0
    pairs = zip(table.column(id_column), table.column(label_column), strict=True)
    for row, (node_id, name) in enumerate(pairs):
        if not name:
            blank += 1
            continue
        if not node_id:
            raise InputError(f"{table.where(row)}: the id in column {id_column!r} is missing")
        if classes.setdefault(node_id, name) != name:
            raise InputError(
                f"{table.where(row)}: the node {node_id!r} has the class {name!r}, but "
                f"{classes[node_id]!r} in {rows[node_id]}; keep one of them"
            )
        rows.setdefault(node_id, table.position(row))
        if chosen[row] == RANDOM:
            random.add(node_id)
    return LabelTable(table.path, classes, rows, frozenset(random), blank)
