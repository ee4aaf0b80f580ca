"""The few-label suite: graphs as people have them, with few labels of several kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from dcgst.bench.cells import Cell
from dcgst.bench.records import Records, StoredRecord
from dcgst.bench.tables import Table
from dcgst.datasets import DATASETS

GRAPHS = (
    "cora_ml",
    "amazon_photo",
    "blogcatalog",
    "uai",
    "polblogs",
    "minesweeper",
    "actor",
    "chameleon_filtered",
    "cornell",
    "facebook",
    "DE",
    "counties_winner",
    "counties_economy",
    "german",
    "wikispeedia",
    "digits",
    "cora",
    "citeseer",
    "pubmed",
)
"""Citation, co-purchase, social and web graphs, homophilous and heterophilous ones."""

FLOORS = ("gcn", "appnp", "mlp", "lp", "em")
"""Plain methods. The best of them on each graph, in hindsight, is what others are compared with."""

SAMPLERS = ("uniform", "degree", "ppr-s")
VALIDATION = (0, 20)
PER_CLASS = 10


def available_graphs() -> list[str]:
    """The graphs whose files are on this machine."""
    return [name for name in GRAPHS if DATASETS[name].available()]


def suite_cells(
    graphs: Sequence[str],
    methods: Sequence[str],
    *,
    runs: int = 5,
    first_run: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """The cells of the suite: each method on each graph, sampler and number of validation labels.

    Args:
        graphs: names of datasets or paths of graphs.
        methods: methods to measure; the floors are always included.
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
        )
        for graph in graphs
        for sampler in SAMPLERS
        for validation in VALIDATION
        for method in dict.fromkeys((*FLOORS, *methods))
    ]


@dataclass(frozen=True)
class Regime:
    """All graphs with labels of one kind.

    Attributes:
        sampler: how the labels were drawn.
        validation: number of validation labels.
        by_graph: records by graph and method.
    """

    sampler: str
    validation: int
    by_graph: Mapping[str, Mapping[str, StoredRecord]]

    def gaps(self, method: str) -> dict[str, float]:
        """Accuracy minus that of the best floor, by graph."""
        return {
            graph: records[method]["mean"] - max(records[floor]["mean"] for floor in FLOORS)
            for graph, records in self.by_graph.items()
        }

    def mean_of(self, method: str, name: str) -> float:
        """Mean of a field of the records over the graphs."""
        return float(mean(records[method][name] for records in self.by_graph.values()))


def regimes_of(cells: Sequence[Cell], records: Records) -> list[Regime]:
    """Group the records of cells by kind of labels; graphs with missing records are left out."""
    regimes = []
    for sampler in SAMPLERS:
        for validation in VALIDATION:
            by_graph: dict[str, dict[str, StoredRecord]] = {}
            incomplete = set()
            for cell in cells:
                if (cell.sampler, cell.validation) != (sampler, validation):
                    continue
                record = records.find(cell)
                if record is None:
                    incomplete.add(cell.dataset)
                else:
                    by_graph.setdefault(cell.dataset, {})[cell.method] = record
            complete = {graph: by_graph[graph] for graph in by_graph if graph not in incomplete}
            if complete:
                regimes.append(Regime(sampler, validation, complete))
    return regimes


HEADERS = ("labels", "val", "method", "acc", "gap", "worst", "F1", "ECE", "shares", "s")


def summary_table(regimes: Sequence[Regime], methods: Sequence[str]) -> Table:
    """One row per kind of labels and method: means over the graphs, mean and worst gap."""
    rows = []
    for regime in regimes:
        for method in dict.fromkeys((*FLOORS, *methods)):
            gaps = regime.gaps(method).values()
            seconds = mean(
                records[method]["seconds"] / records[method]["runs"]
                for records in regime.by_graph.values()
            )
            rows.append(
                [
                    regime.sampler,
                    str(regime.validation),
                    method,
                    f"{regime.mean_of(method, 'mean'):.1f}",
                    f"{mean(gaps):+.1f}",
                    f"{min(gaps):+.1f}",
                    f"{regime.mean_of(method, 'macro_f1'):.1f}",
                    f"{regime.mean_of(method, 'ece'):.3f}",
                    f"{regime.mean_of(method, 'share_error'):.3f}",
                    f"{seconds:.1f}",
                ]
            )
    graphs = {graph for regime in regimes for graph in regime.by_graph}
    note = (
        f"Means over {len(graphs)} graphs with {PER_CLASS} labels per class and, in column val, "
        "validation labels drawn at random. gap: accuracy minus that of the best of "
        f"{', '.join(FLOORS)} on the same graph and labels, in hindsight; worst: on the graph "
        "where it is lowest. F1: macro F1. ECE: expected calibration error. shares: half the sum "
        "of differences between mean probabilities and true class shares. s: seconds per run."
    )
    return Table("Few-label suite", list(HEADERS), rows, [note])


def gap_table(regimes: Sequence[Regime], method: str) -> Table:
    """The gap of one method on each graph, by kind of labels."""
    headers = ["graph", *(f"{r.sampler}, {r.validation}" for r in regimes)]
    graphs = list(dict.fromkeys(graph for regime in regimes for graph in regime.by_graph))
    gaps = [regime.gaps(method) for regime in regimes]
    rows = [
        [graph, *(f"{gap[graph]:+.1f}" if graph in gap else "–" for gap in gaps)]
        for graph in graphs
    ]
    return Table(f"Gap of {method} by graph", headers, rows, [])
