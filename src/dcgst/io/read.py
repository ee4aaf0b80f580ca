"""Graphs from whatever people have: tables, GraphML, NetworkX, PyG, npz."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.spectral import spectral_features
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph, as_graph
from dcgst.io.features import Recipe, make_recipe, parse_numbers
from dcgst.io.table import Table, read_table
from dcgst.io.whole import read_graphml, read_npz, read_pt, tables_of_networkx

ID_NAMES = ("id", "node_id", "nodeid", "node", "key", "name")
LABEL_NAMES = ("label", "class", "y", "target", "labels", "category")
END_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("node1", "node2"),
    ("id1", "id2"),
)
WEIGHT_NAMES = ("weight", "weights", "w")
SPECTRAL = 64
"""Features made from the graph alone, where nodes have none of their own."""


@dataclass(frozen=True)
class Columns:
    """Which columns are what; None to be guessed.

    Attributes:
        id: the nodes' ids.
        label: their classes; empty where unknown.
        source: one end of an edge.
        target: its other end.
        weight: how strong it is.
        features: which of the others to use; all by default.
        ignore: which not to use.
        number: columns that are numbers.
        category: columns of which each value is a feature.
        text: columns of which each word is one.
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    number: Sequence[str] = ()
    category: Sequence[str] = ()
    text: Sequence[str] = ()

    @property
    def kinds(self) -> dict[str, str]:
        named = {"number": self.number, "category": self.category, "text": self.text}
        return {name: kind for kind, names in named.items() for name in names}


@dataclass(frozen=True)
class Input:
    """A graph and how it was read.

    Attributes:
        graph: the graph.
        recipe: how columns became features; None where they were features already, or made from
            the graph alone.
        spectral: whether features were made from the graph alone.
        columns: which columns were taken for what.
        notes: what was guessed, changed or left out, in plain words.
    """

    graph: Graph
    recipe: Recipe | None = None
    spectral: bool = False
    columns: Columns = field(default_factory=Columns)
    notes: tuple[str, ...] = ()


def read(
    nodes: Any,
    edges: str | Path | None = None,
    columns: Columns | None = None,
    *,
    delimiter: str | None = None,
    drop_unknown: bool = False,
    recipe: Recipe | None = None,
    class_names: Sequence[str] | None = None,
    labels_needed: bool = True,
) -> Input:
    """Read a graph, guess what is what, and say so in the notes.

    Args:
        nodes: a table of nodes (CSV or Parquet), or a whole graph: a file in GraphML, of PyG data
            (``.pt``) or of arrays (``.npz``), a NetworkX graph, PyG ``Data`` or a :class:`Graph`.
        edges: a table of edges, where ``nodes`` is a table.
        columns: which columns are what.
        delimiter: of CSV files; guessed by default.
        drop_unknown: leave out edges to nodes that the table of nodes does not have.
        recipe: how columns become features, if that has been decided before.
        class_names: the classes, if they have been decided before.
        labels_needed: whether a table without a label column is refused.
    """
    columns = columns or Columns()
    if not isinstance(nodes, (str, Path)):
        if isinstance(nodes, Input):
            return nodes
        if not hasattr(nodes, "nodes") or not hasattr(nodes, "edges"):
            graph = as_graph(nodes)
            return Input(graph, notes=graph.notes)
        tables = tables_of_networkx(nodes, Path("graph"))
    else:
        path = Path(nodes)
        suffix = path.suffix.lower()
        if edges is not None and suffix in (".pt", ".pth", ".npz", ".graphml"):
            raise InputError(f"{path} holds edges already: {edges} is one file too many")
        if suffix in (".pt", ".pth", ".npz"):
            if columns != Columns():
                raise InputError(f"{path} has no columns: --label and its like are for tables")
            graph = read_pt(path) if suffix != ".npz" else read_npz(path)
            return Input(graph, notes=graph.notes)
        if suffix == ".graphml":
            tables = read_graphml(path)
        elif edges is None:
            raise InputError(f"{path} is a table of nodes: the table of edges is needed as well")
        else:
            tables = (
                read_table(path, delimiter),
                read_table(Path(edges), delimiter, header=False),
            )
    reader = _Reader(*tables, columns, drop_unknown)
    return reader.read(recipe, class_names, labels_needed)


class _Reader:
    """Two tables on their way to a graph."""

    def __init__(self, nodes: Table, edges: Table, columns: Columns, drop_unknown: bool) -> None:
        self.nodes, self.edges, self.columns = nodes, edges, columns
        self.drop_unknown = drop_unknown
        self.notes: list[str] = []

    def read(
        self, recipe: Recipe | None, class_names: Sequence[str] | None, labels_needed: bool
    ) -> Input:
        id_column = self._id_column()
        label_column = self._label_column(id_column, labels_needed)
        ids = self._ids(id_column)
        if set(self.edges.names[:2]) <= set(ids):
            self.edges = _without_header(self.edges)
            self.notes.append(f"{self.edges.path.name} has no header: its first line is an edge")
        ends, weights, source, target, weight = self._edges(ids)
        names, labels = self._labels(label_column, class_names)
        found = replace(
            self.columns,
            id=id_column,
            label=label_column,
            source=source,
            target=target,
            weight=weight,
        )
        if recipe is None:
            recipe = self._recipe({id_column, label_column or ""})
        spectral = not recipe.columns
        features: Any
        if spectral:
            bare = Graph.from_edges(ends, np.ones((len(ids), 1)), weights=weights)
            features = spectral_features(bare.adjacency, SPECTRAL)
            self.notes.append(
                f"no column says anything of the nodes: {features.shape[1]} features are made from "
                "the graph itself"
            )
        else:
            features = recipe.encode(self.nodes)
        graph = Graph.from_edges(
            ends,
            features,
            labels,
            weights=weights,
            ids=np.array(ids),
            class_names=names,
            name=self.nodes.path.stem,
        )
        notes = (*self.notes, *graph.notes)
        return Input(graph, None if spectral else recipe, spectral, found, notes)

    # --- which column is what -----------------------------------------------------------------

    def _id_column(self) -> str:
        if self.columns.id is not None:
            self.nodes.column(self.columns.id)
            return self.columns.id
        for name in _like(self.nodes.names, ID_NAMES):
            return self._said("id", name)
        ends = {text for column in list(self.edges.columns.values())[:2] for text in column}
        values = {name: set(column) for name, column in self.nodes.columns.items()}
        named = {name: len(ends & own) for name, own in values.items()}
        best = max(named, key=lambda name: named[name])
        if named[best] > len(ends) / 2:  # what the edges speak of
            return self._said("id", best)
        for name, own in values.items():
            if len(own) == len(self.nodes) and "" not in own:
                return self._said("id", name)
        raise InputError(
            f"no column of {self.nodes.path} has a different value in every row; name the ids' "
            f"column with --id; there are: {', '.join(self.nodes.names[:20])}"
        )

    def _label_column(self, id_column: str, needed: bool) -> str | None:
        if self.columns.label is not None:
            if not needed and self.columns.label not in self.nodes.columns:
                return None
            self.nodes.column(self.columns.label)
            if self.columns.label == id_column:
                raise InputError(
                    f"{id_column!r} is the column of ids: it cannot be the label as well"
                )
            return self.columns.label
        others = [name for name in self.nodes.names if name != id_column]
        for name in _like(others, LABEL_NAMES):
            return self._said("label", name)
        if not needed:
            return None
        raise InputError(
            f"which column of {self.nodes.path} holds the labels? Name it with --label; there are: "
            f"{', '.join(others[:20])}"
        )

    def _said(self, what: str, name: str) -> str:
        self.notes.append(f"{what}: column {name!r}")
        return name

    # --- nodes --------------------------------------------------------------------------------

    def _ids(self, name: str) -> list[str]:
        ids = self.nodes.column(name)
        first: dict[str, int] = {}
        for row, text in enumerate(ids):
            if not text:
                raise InputError(
                    f"{self.nodes.where(row)}: the id ({name!r}) is empty, or a word for that (NA, "
                    "nan, null, none)"
                )
            if text in first:
                raise InputError(
                    f"{self.nodes.where(row)}: the id {text!r} is there already, in line "
                    f"{self.nodes.lines[first[text]]}; ids must differ"
                )
            first[text] = row
        return ids

    def _labels(
        self, name: str | None, known: Sequence[str] | None
    ) -> tuple[list[str], NDArray[np.int64]]:
        values = [""] * len(self.nodes) if name is None else self.nodes.column(name)
        names = list(known) if known is not None else sorted({v for v in values if v}, key=_natural)
        place = {name: code for code, name in enumerate(names)}
        alike: dict[str, str] = {}
        for one in names:
            other = alike.setdefault(one.casefold(), one)
            if other != one:
                self.notes.append(
                    f"classes {other!r} and {one!r} differ in capitals only: one class?"
                )
        for row, value in enumerate(values):
            if value and value not in place:
                raise InputError(
                    f"{self.nodes.where(row)}: the class {value!r} is not one of the model's: "
                    f"{', '.join(names[:20])}"
                )
        codes = [place[value] if value else UNKNOWN for value in values]
        return names, np.array(codes, dtype=np.int64)

    def _recipe(self, taken: set[str]) -> Recipe:
        chosen = self.columns
        if chosen.features is not None:
            names = list(chosen.features)
        else:
            names = [name for name in self.nodes.names if name not in taken]
        for name in (*names, *chosen.ignore, *chosen.kinds):
            self.nodes.column(name)
        for name in (*(chosen.features or ()), *chosen.kinds):
            if name in taken:
                raise InputError(f"{name!r} is the column of ids or labels, it is no feature")
        names = [name for name in names if name not in (*taken, *chosen.ignore)]
        recipe = make_recipe(self.nodes, names, chosen.kinds)
        self.notes += _summary(recipe.notes)
        return recipe

    # --- edges --------------------------------------------------------------------------------

    def _edges(
        self, ids: list[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64] | None, str, str, str | None]:
        source, target = self._ends()
        weight = self._weight((source, target))
        place = {text: at for at, text in enumerate(ids)}
        pairs = list(zip(self.edges.column(source), self.edges.column(target), strict=True))
        keep, dropped = [], 0
        for row, pair in enumerate(pairs):
            lost = next((end for end in pair if end not in place), None)
            if lost is None:
                keep.append(row)
            elif self.drop_unknown:
                dropped += 1
            else:
                raise InputError(
                    f"{self.edges.where(row)}: no node has the id {lost!r}{_hint(lost, place)}; "
                    "mend it, or leave such edges out with --drop-unknown"
                )
        if dropped:
            self.notes.append(f"{dropped} edges to unknown nodes left out")
        ends = np.array([[place[a], place[b]] for a, b in (pairs[row] for row in keep)])
        if not (ends[:, 0] != ends[:, 1]).any() if len(ends) else True:
            raise InputError(f"{self.edges.path} joins no two nodes of {self.nodes.path}")
        weights = None
        if weight is not None:
            numbers = parse_numbers(self.edges, weight)[keep]
            wrong = np.flatnonzero(np.isnan(numbers) | (numbers < 0))
            if wrong.size:
                raise InputError(
                    f"{self.edges.where(keep[wrong[0]])}: the weight must be a number, not negative"
                )
            weights = numbers
        return ends.T, weights, source, target, weight

    def _ends(self) -> tuple[str, str]:
        names = self.edges.names
        if self.columns.source is not None or self.columns.target is not None:
            if self.columns.source is None or self.columns.target is None:
                raise InputError("name both ends of the edges: --source and --target")
            return self.columns.source, self.columns.target
        lower = {name.lower(): name for name in names}
        for first, second in END_NAMES:
            if first in lower and second in lower:
                return lower[first], lower[second]
        self.notes.append(f"edges: from column {names[0]!r} to {names[1]!r}")
        return names[0], names[1]

    def _weight(self, ends: tuple[str, str]) -> str | None:
        if self.columns.weight is not None:
            self.edges.column(self.columns.weight)
            return self.columns.weight
        others = [name for name in self.edges.names if name not in ends]
        for name in _like(others, WEIGHT_NAMES):
            return self._said("weight", name)
        if self.edges.names == ["column 1", "column 2", "column 3"]:  # no header
            return self._said("weight", "column 3")
        if others:
            self.notes.append(f"not used of {self.edges.path.name}: {', '.join(others[:10])}")
        return None


def _without_header(table: Table) -> Table:
    """The same table with what was taken for its header as the first row."""
    names = [f"column {place}" for place in range(1, len(table.columns) + 1)]
    columns = {
        name: [first, *values]
        for name, (first, values) in zip(names, table.columns.items(), strict=True)
    }
    return Table(table.path, columns, [1, *table.lines])


def _like(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Those of the names that are known, the best known first, whatever the case of letters."""
    lower = {name.lower(): name for name in names}
    return [lower[name] for name in known if name in lower]


def _natural(text: str) -> list[tuple[int, float, str]]:
    """So that 10 comes after 9."""
    parts = re.split(r"(\d+)", text)
    return [(0, float(p), "") if p.isdecimal() else (1, 0.0, p) for p in parts if p]


def _hint(lost: str, place: Mapping[str, int]) -> str:
    """What may have been meant by an id that no node has."""
    if not lost:
        return " (it is empty)"
    for like in (lost.lstrip("0") or "0", lost.removesuffix(".0"), lost.lower(), lost.upper()):
        if like in place:
            return f" (there is {like!r})"
    padded = next((text for text in place if text.lstrip("0") == lost), None)
    return f" (there is {padded!r})" if padded else ""


def _summary(notes: Sequence[str]) -> list[str]:
    """What became of the columns; of many alike, the first and how many more there are."""
    by_words: dict[str, list[str]] = {}
    for note in notes:
        name, _, words = note.partition(": ")
        by_words.setdefault(words, []).append(name)
    lines = []
    for words, names in by_words.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(f"feature {', '.join(names[:3])}{more}: {words}")
    return lines
