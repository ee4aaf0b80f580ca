"""Tables of node ids and classes, and their labels added to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.graph import UNKNOWN, Graph
from dcgst.tables.nodes import ID_NAMES, LABEL_NAMES, Columns, Input, find_column, natural_order
from dcgst.tables.table import Table, read_table

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


MOST_LISTED = 3
"""Number of changed labels that a note lists."""


def add_labels(
    data: Input, labels: Sequence[str | Path] = (), audit: Sequence[str | Path] = ()
) -> Input:
    """Return the input with labels from tables; a label that is known already is replaced.

    Labels of an audit, of nodes that were chosen at random, become validation labels: the graph
    then has the masks ``train`` and ``val``.

    Args:
        data: the graph and its columns.
        labels: tables of ids and classes. Rows with ``random`` in a column ``chosen`` belong to an
            audit.
        audit: tables of ids and classes of randomly chosen nodes.
    """
    if not labels and not audit:
        return data
    graph = data.graph
    given = _given(graph)
    notes: list[str] = []
    audits = data.audited
    random = np.zeros(graph.num_nodes, dtype=bool)
    if data.audited:  # else the validation nodes are not known to be random
        random |= graph.masks["val"]
    for path in (*labels, *audit):
        table = read_label_table(path, hints=data.columns)
        if not table.classes:
            raise InputError(f"{path} has no class yet; fill in at least one row")
        nodes = _nodes_of(graph, table)
        notes += _new_classes(graph, table)
        graph, changed = _with_classes(graph, nodes, list(table.classes.values()), given)
        audited = nodes[[path in audit or node_id in table.random for node_id in table.classes]]
        notes.append(_describe(table, len(audited), changed))
        known = int((given & ~random)[audited].sum())
        if known:
            notes.append(
                f"{known} randomly chosen nodes of {table.path.name} had a label already. They now "
                "belong to the audit; it should be a random sample of nodes without a label"
            )
        random[audited] = True
        given[nodes] = True
        audits = audits or audited.size > 0
    graph = _without_lost_classes(graph, data.graph)
    if audits and not (given & ~random).any():
        raise InputError(
            "all labels are of randomly chosen nodes, so there are none to train on; give some of "
            f"them with {option('labels')} instead of {option('audit')}"
        )
    if random.any():  # validation nodes that are not random become training nodes
        masks = {**graph.masks, "train": given & ~random, "val": random}
        graph = graph.with_labels(masks=masks)
    elif graph.masks:
        val = graph.masks.get("val", random)
        graph = graph.with_labels(masks={**graph.masks, "train": given & ~val, "val": val})
    return replace(data, graph=graph, notes=(*data.notes, *notes), audited=audits)


def _given(graph: Graph) -> NDArray[np.bool_]:
    """``(n,)`` nodes whose labels are for the fit: those of the masks, else all known ones."""
    if "train" in graph.masks:
        return np.asarray(graph.masks["train"] | graph.masks.get("val", False))
    return np.asarray(graph.labels != UNKNOWN)


def _new_classes(graph: Graph, table: LabelTable) -> list[str]:
    """A note on each new class; raises if it differs from a known one in letter case only."""
    notes = []
    known = {name.casefold(): name for name in graph.class_names}
    for node_id, name in table.classes.items():
        same = known.get(name.casefold())
        if same == name:
            continue
        if same is not None:
            raise InputError(
                f"{table.path}, {table.rows[node_id]}: the class {name!r} differs from {same!r} in "
                "letter case only; use one spelling"
            )
        known[name.casefold()] = name
        note = f"{table.path.name}, {table.rows[node_id]}: {name!r} is a new class"
        similar = get_close_matches(name, graph.class_names, n=1, cutoff=0.8)
        if similar:
            note = f"Warning: {note}; did you mean {similar[0]!r}? If so, fix it and fit again"
        notes.append(note)
    return notes


def _nodes_of(graph: Graph, table: LabelTable) -> NDArray[np.int64]:
    ids = list(table.classes)
    nodes = graph.find(ids)
    if (nodes < 0).any():
        unknown = ids[int(np.argmin(nodes))]
        raise InputError(
            f"{table.path}, {table.rows[unknown]}: no node of the graph has the id {unknown!r}; "
            "fix the id, or remove the row"
        )
    return nodes


def _with_classes(
    graph: Graph, nodes: NDArray[np.int64], names: list[str], given: NDArray[np.bool_]
) -> tuple[Graph, list[str]]:
    """Set the classes of nodes; also returns a text for each given label that changes."""
    class_names = sorted({*graph.class_names, *names}, key=natural_order)
    if set(class_names) == set(graph.class_names):
        class_names = list(graph.class_names)  # keep the codes
    code = {name: index for index, name in enumerate(class_names)}
    recoded = np.array([*(code[name] for name in graph.class_names), UNKNOWN], dtype=np.int64)
    labels = recoded[graph.labels]  # UNKNOWN is the last entry
    new = np.array([code[name] for name in names], dtype=np.int64)
    differs = given[nodes] & (labels[nodes] != new)
    changed = [
        f"{graph.ids[node]}: {class_names[labels[node]]} → {class_names[label]}"
        for node, label in zip(nodes[differs], new[differs], strict=True)
    ]
    labels[nodes] = new
    return graph.with_labels(labels, class_names=class_names), changed


def _without_lost_classes(graph: Graph, before: Graph) -> Graph:
    """Remove classes all of whose labels were replaced, such as misspelled ones."""
    had = {before.class_names[code] for code in np.unique(before.labels[before.labels != UNKNOWN])}
    have = {graph.class_names[code] for code in np.unique(graph.labels[graph.labels != UNKNOWN])}
    kept = tuple(name for name in graph.class_names if name in have or name not in had)
    if kept == graph.class_names:
        return graph
    recoded = [kept.index(name) if name in kept else UNKNOWN for name in graph.class_names]
    labels = np.array([*recoded, UNKNOWN], dtype=np.int64)[graph.labels]
    return graph.with_labels(labels, class_names=kept)


def _describe(table: LabelTable, audited: int, changed: list[str]) -> str:
    note = f"{table.path.name}: {len(table.classes)} label{'' if len(table.classes) == 1 else 's'}"
    if audited:
        note += f", {audited} of them of randomly chosen nodes"
    if table.blank:
        note += f", {table.blank} without a class yet"
    if changed:
        listed = ", ".join(changed[:MOST_LISTED]) + (", …" if len(changed) > MOST_LISTED else "")
        note += f"; {len(changed)} replace another class ({listed})"
    return note
