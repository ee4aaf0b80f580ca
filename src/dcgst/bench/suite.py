"""The few-label suite: graphs as people have them, with few labels of several kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from dcgst.bench.cells import Cell
from dcgst.bench.records import Records, StoredRecord
from dcgst.datasets import DATASETS

DEVELOPMENT = (
    "cora_ml",
    "amazon_photo",
    "blogcatalog",
    "uai",
    "polblogs",
    "minesweeper",
    "actor",
    "chameleon_filtered",
    "digits",
    "cora",
    "citeseer",
    "pubmed",
    "cornell",
)
"""Citation, co-purchase, social and web graphs, homophilous and heterophilous ones."""

TABLES = ("counties_winner", "counties_economy", "german", "wikispeedia", "facebook", "DE")
"""Graphs that are read from tables with columns of several kinds."""

GROUPS = {"development": DEVELOPMENT, "tables": TABLES}
GRAPHS = (*DEVELOPMENT, *TABLES)

FLOORS = ("gcn", "appnp", "mlp", "lp", "em")
"""Plain methods. The best of them on each graph, in hindsight, is what others are compared with."""

MAJORITY = "majority"
"""Always measured: what predicting one class for all nodes reaches."""

SAMPLERS = ("uniform", "degree", "ppr-s")
VALIDATION = (0, 20)
PER_CLASS = 10


def available_graphs(names: Iterable[str] = GRAPHS) -> list[str]:
    """The graphs whose files are on this machine."""
    return [name for name in names if DATASETS[name].available()]


def suite_cells(
    graphs: Sequence[str],
    methods: Sequence[str],
    *,
    runs: int = 5,
    first_run: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """The cells of the suite: each method on each graph, sampler and number of validation labels.

    With validation labels, each floor is measured twice: the second time, the validation labels are
    further training labels.

    Args:
        graphs: names of datasets or paths of graphs.
        methods: methods to measure; the floors and the majority class are always included.
        runs: runs of each cell.
        first_run: number of the first run.
        settings: settings that override the defaults, by method.
    """
    return [
        Cell(
            graph,
            method,
            None,
            sampler,
            settings=(settings or {}).get(method, {}),
            runs=runs,
            per_class=PER_CLASS,
            validation=validation,
            first_run=first_run,
            train_on_validation=train_on_validation,
        )
        for graph in graphs
        for sampler in SAMPLERS
        for validation in VALIDATION
        for method in dict.fromkeys((MAJORITY, *FLOORS, *methods))
        for train_on_validation in ((False, True) if validation and method in FLOORS else (False,))
    ]


def row_name(method: str, train_on_validation: bool) -> str:
    """Name of a row of the tables: the method, and whether it trains on the validation labels."""
    return f"{method}+val" if train_on_validation else method


SECOND_FLOORS = tuple(row_name(floor, True) for floor in FLOORS)
"""The floors that also train on the validation labels."""


@dataclass(frozen=True)
class Regime:
    """All graphs with labels of one kind.

    Attributes:
        sampler: how the labels were drawn.
        validation: number of validation labels.
        by_graph: records by graph and row, see :func:`row_name`. All graphs have the same rows.
    """

    sampler: str
    validation: int
    by_graph: Mapping[str, Mapping[str, StoredRecord]]

    @property
    def rows(self) -> list[str]:
        """The measured rows."""
        return list(next(iter(self.by_graph.values())))

    @property
    def second_floors(self) -> tuple[str, ...]:
        """The floors that use as many training labels as there are; empty if not measured.

        Without validation labels, they are the floors themselves.
        """
        if self.validation == 0:
            return FLOORS
        return SECOND_FLOORS if set(SECOND_FLOORS) <= set(self.rows) else ()

    def gaps(self, row: str) -> dict[str, float]:
        """Accuracy minus that of the best floor, by graph."""
        return self._differences(row, FLOORS, "mean")

    def second_gaps(self, row: str) -> dict[str, float]:
        """Accuracy minus that of the best floor that also trains on the validation labels."""
        return self._differences(row, self.second_floors, "mean")

    def f1_gaps(self, row: str) -> dict[str, float]:
        """Macro F1 minus the largest one of these floors; empty if one was not measured."""
        return self._differences(row, self.second_floors, "macro_f1")

    def _differences(self, row: str, floors: Sequence[str], field: str) -> dict[str, float]:
        """A field of a row minus the largest one of the floors, by graph; empty if one is missing.

        Records of earlier versions do not have all fields.
        """
        own, others = self._values(row, field), [self._values(name, field) for name in floors]
        if not others or not all([own, *others]):
            return {}
        return {graph: own[graph] - max(other[graph] for other in others) for graph in own}

    def _values(self, row: str, field: str) -> dict[str, float]:
        """A field of the records of a row, by graph; empty if a record does not have it."""
        found = {graph: records[row].get(field) for graph, records in self.by_graph.items()}
        known = {graph: float(value) for graph, value in found.items() if value is not None}
        return known if len(known) == len(found) else {}

    def mean_of(self, row: str, field: str) -> float | None:
        """Mean of a field of the records over the graphs; None if a record does not have it."""
        values = self._values(row, field)
        return mean(values.values()) if values else None

    def select(self, graphs: Iterable[str]) -> Regime | None:
        """The same with some of the graphs; None if there are none of them."""
        kept = {name: self.by_graph[name] for name in graphs if name in self.by_graph}
        return Regime(self.sampler, self.validation, kept) if kept else None


def regimes_of(cells: Sequence[Cell], records: Records) -> list[Regime]:
    """Group the records of cells by kind of labels.

    Rows without any record in a regime are left out, and so are the second floors if one of them
    has none. Of the graphs, those are left out that lack a record of another row. A regime needs
    all floors.
    """
    by_kind: dict[tuple[str, int | None], list[Cell]] = {}
    for cell in cells:
        by_kind.setdefault((cell.sampler, cell.validation), []).append(cell)
    found = [
        _regime(sampler, validation, by_kind.get((sampler, validation), []), records)
        for sampler in SAMPLERS
        for validation in VALIDATION
    ]
    return [regime for regime in found if regime is not None]


def _regime(
    sampler: str, validation: int, cells: Sequence[Cell], records: Records
) -> Regime | None:
    by_row: dict[str, dict[str, StoredRecord]] = {}
    for cell in cells:
        record = records.find(cell)
        if record is not None:
            name = row_name(cell.method, cell.train_on_validation)
            by_row.setdefault(name, {})[cell.dataset] = record
    if not set(FLOORS) <= by_row.keys():
        return None
    if not set(SECOND_FLOORS) <= by_row.keys():
        by_row = {row: found for row, found in by_row.items() if row not in SECOND_FLOORS}
    complete = {
        graph: {row: found[graph] for row, found in by_row.items()}
        for graph in dict.fromkeys(cell.dataset for cell in cells)
        if all(graph in found for found in by_row.values())
    }
    return Regime(sampler, validation, complete) if complete else None
