"""The few-label suite: graphs with few labels of several kinds, its tables and its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from dcgst.bench.cells import Cell, Records, StoredRecord
from dcgst.bench.results import Table
from dcgst.datasets import DATASETS
from dcgst.methods import method

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


HEADERS = (
    "labels",
    "val",
    "method",
    "acc",
    "bal",
    "F1",
    "gap",
    "worst",
    "2nd",
    "F1 gap",
    "ECE",
    "shares",
    "s",
)
MISSING = "–"


def summary_table(regimes: Sequence[Regime], methods: Sequence[str]) -> Table:
    """One row per kind of labels and method: means over the graphs, mean and worst gap.

    Methods without records are left out.
    """
    rows = [
        _summary_row(regime, row)
        for regime in regimes
        for row in dict.fromkeys((MAJORITY, *FLOORS, *SECOND_FLOORS, *methods))
        if row in regime.rows
    ]
    graphs = {graph for regime in regimes for graph in regime.by_graph}
    count = "1 graph" if len(graphs) == 1 else f"{len(graphs)} graphs"
    note = (
        f"Means over {count} with {PER_CLASS} labels per class and, in column val, validation "
        "labels drawn at random. acc: accuracy; bal: balanced accuracy, the mean recall of the "
        "classes; F1: macro F1; all in percent. gap: accuracy minus that of the best of "
        f"{', '.join(FLOORS)} on the same graph and labels, in hindsight; worst: on the graph "
        "where it is lowest. Rows with +val: the same methods, trained on the validation labels "
        "too, for a fixed number of epochs. 2nd: second gap, accuracy minus that of the best of "
        "these; F1 gap: macro F1 minus the largest one of these. Without validation labels, both "
        "are differences to the methods themselves. ECE: expected calibration error. shares: half "
        "the sum of differences between mean probabilities and true class shares. s: seconds per "
        "run."
    )
    return Table("Few-label suite", list(HEADERS), rows, [note])


def _summary_row(regime: Regime, row: str) -> list[str]:
    gaps = regime.gaps(row)
    seconds = mean(
        records[row]["seconds"] / records[row]["runs"] for records in regime.by_graph.values()
    )
    quality = [_number(regime.mean_of(row, f), ".1f") for f in ("mean", "balanced_accuracy")]
    return [
        regime.sampler,
        str(regime.validation),
        row,
        *quality,
        _number(regime.mean_of(row, "macro_f1"), ".1f"),
        *_mean_and_worst(gaps),
        _mean_and_worst(regime.second_gaps(row))[0],
        _mean_and_worst(regime.f1_gaps(row))[0],
        _number(regime.mean_of(row, "ece"), ".3f"),
        _number(regime.mean_of(row, "share_error"), ".3f"),
        f"{seconds:.1f}",
    ]


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


def _mean_and_worst(gaps: Mapping[str, float]) -> tuple[str, str]:
    """Mean and smallest difference as text."""
    if not gaps:
        return MISSING, MISSING
    return f"{mean(gaps.values()):+.1f}", f"{min(gaps.values()):+.1f}"


def group_table(regimes: Sequence[Regime], methods: Sequence[str]) -> Table:
    """Mean and worst gaps of methods on each group of graphs, by kind of labels."""
    rows = []
    for group, names in GROUPS.items():
        for regime in regimes:
            part = regime.select(names)
            if part is None:
                continue
            for name in dict.fromkeys(methods):
                if name not in part.rows:
                    continue
                gaps = (part.gaps(name), part.second_gaps(name), part.f1_gaps(name))
                texts = [text for found in gaps for text in _mean_and_worst(found)]
                kind = [regime.sampler, str(regime.validation)]
                rows.append([group, str(len(part.by_graph)), *kind, name, *texts])
    names_of_gaps = [text for gap in ("gap", "2nd", "F1 gap") for text in (gap, "worst")]
    headers = ["group", "graphs", "labels", "val", "method", *names_of_gaps]
    return Table("Gap by group of graphs", headers, rows, [])


def gap_table(regimes: Sequence[Regime], method: str) -> Table:
    """The gap of one method on each graph, by kind of labels."""
    measured = [regime for regime in regimes if method in regime.rows]
    headers = ["graph", *(f"{r.sampler}, {r.validation}" for r in measured)]
    graphs = list(dict.fromkeys(graph for regime in measured for graph in regime.by_graph))
    gaps = [regime.gaps(method) for regime in measured]
    rows = [
        [graph, *(f"{gap[graph]:+.1f}" if graph in gap else MISSING for gap in gaps)]
        for graph in graphs
    ]
    return Table(f"Gap of {method} by graph", headers, rows, [])


METHOD = "ensemble"
"""The default method; it has a table of its own. It trains on the validation labels."""

METHODS = (METHOD, "dcgst")
TITLES = {
    "gcn": "GCN",
    "appnp": "APPNP",
    "ensemble": "ensemble",
    "dcgst": "DC-GST",
}
"""Methods in the short table; those without records are left out."""

LABELS = {"uniform": "random", "degree": "by degree", "ppr-s": "from one region (PPR-S)"}


def render_suite(records: Records, runs: int = 5) -> str:
    """The page as Markdown: all methods, groups of graphs, and the gap on each graph.

    A part without records is left out.
    """
    regimes = find_regimes(records, runs)
    graphs = {graph for regime in regimes for graph in regime.by_graph}
    parts = ["# Few-label suite"]
    if not regimes:
        parts.append("Nothing was measured yet.")
        return "\n\n".join(parts) + "\n"
    parts += [*_introduction(regimes, len(graphs), runs), _origin(regimes)]
    parts.append(f"## Methods\n\n{summary_table(regimes, METHODS).markdown(title=False)}")
    groups = group_table(regimes, METHODS)
    if groups.rows:
        parts.append(
            "## Gap by group of graphs\n\nMean gap and the gap on the worst graph of each group; "
            "2nd and F1 gap as above, likewise. tables: graphs that are read from tables with "
            f"columns of several kinds; development: the others.\n\n{groups.markdown(title=False)}"
        )
    by_graph = gap_table(regimes, METHOD)
    if by_graph.rows:
        parts.append(
            f"## Gap of {METHOD} by graph\n\nColumns: labels and number of validation labels.\n\n"
            f"{by_graph.markdown(title=False)}"
        )
    return "\n\n".join(parts) + "\n"


def _introduction(regimes: list[Regime], count: int, runs: int) -> list[str]:
    measured = [name for name in METHODS if any(name in regime.rows for regime in regimes)]
    paper = "DC-GST (`dcgst`) is the method of the paper. " if "dcgst" in measured else ""
    twice = (
        "They are also measured a second time, trained on the validation labels too, for a fixed "
        "number of epochs (rows with +val), for comparison with methods that train on these "
        "labels. "
    )
    if not any(set(SECOND_FLOORS) <= set(regime.rows) for regime in regimes):
        twice = ""
    return [
        f"{count} graphs with {PER_CLASS} labels per class, as people have them: citation, "
        "co-purchase, social and web graphs, homophilous and heterophilous ones, and tables. The "
        "labels are drawn at random, by degree, or from one region of the graph for each class "
        "(PPR-S); there are no validation labels, or 20 drawn at random. Methods are compared with "
        f"the best of five plain methods ({', '.join(FLOORS)}) on the same graph and labels, in "
        "hindsight: nobody can choose that well in advance.",
        f"With validation labels, the plain methods use them to choose the epoch. {twice}{paper}"
        f"{_training_on_validation(measured)}".rstrip(),
        *(
            [
                "[ensemble](methods/ensemble.md) is the default of `dcgst fit`. It is not the "
                "method of the paper, which is [DC-GST](methods/dcgst.md)."
            ]
            if METHOD in measured
            else []
        ),
        f"Runs 0 to {runs - 1}; settings and rules were chosen on other runs (from 10 to 29) "
        "of the same graphs, by the true classes of their test nodes. `dcgst "
        "bench --suite` runs the methods; `make results` generates this page from "
        "`results/suite.jsonl`.",
    ]


def _training_on_validation(measured: Sequence[str]) -> str:
    """A sentence that names the methods that train on the validation labels by default."""
    names = [name for name in measured if "train_on_validation" in method(name).get_params()]
    if not names:
        return ""
    verb = "use" if len(names) > 1 else "uses"
    return (
        f"{' and '.join(TITLES[name] for name in names)} also {verb} the validation labels for "
        f"weights and calibration, and {'train' if len(names) > 1 else 'trains'} on them. "
    )


def _origin(regimes: list[Regime]) -> str:
    """Devices and commits of the records."""
    found = [
        record
        for regime in regimes
        for records in regime.by_graph.values()
        for record in records.values()
    ]
    devices = sorted({str(record["device"]) for record in found})
    commits = sorted({str(record["commit"]) for record in found})
    return (
        f"Measured on {', '.join(devices)} at commit {', '.join(commits)} (a plus sign means with "
        "changes that were not committed yet)."
    )


def find_regimes(records: Records, runs: int) -> list[Regime]:
    """The records of the suite by kind of labels."""
    return regimes_of(suite_cells(GRAPHS, METHODS, runs=runs), records)


def suite_summary(records: Records, runs: int = 5) -> str:
    """A short table for the README; methods without records are left out."""
    regimes = find_regimes(records, runs)
    graphs = {graph for regime in regimes for graph in regime.by_graph}
    names = [name for name in TITLES if regimes and all(name in r.rows for r in regimes)]
    plain, others = [n for n in names if n in FLOORS], [n for n in names if n not in FLOORS]
    second = bool(regimes) and all(regime.second_floors for regime in regimes)
    best = ["best plain method", *(["the same, trained on all labels"] if second else [])]
    headers = ["labels", "validation", *(TITLES[n] for n in plain), *best]
    headers += [TITLES[name] for name in others]
    rows = []
    for regime in regimes:
        numbers = [
            *(regime.mean_of(name, "mean") for name in plain),
            _best(regime, FLOORS),
            *([_best(regime, regime.second_floors)] if second else []),
            *(regime.mean_of(name, "mean") for name in others),
        ]
        validation = f"{regime.validation} random" if regime.validation else "none"
        rows.append([LABELS[regime.sampler], validation, *(f"{n:.1f}" for n in numbers)])
    lines = [headers, ["---"] * len(headers), *rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        f"{body}\n\nAccuracy in %, mean of {len(graphs)} graphs and {runs} runs, {PER_CLASS} "
        "labels per class. The best plain method is chosen for each graph in hindsight, from "
        f"{', '.join(FLOORS)}; with validation labels, it uses them to choose the epoch. "
        f"{_training_on_validation(others)}{_behind_majority(regimes)}Balanced accuracy, macro "
        "F1, calibration, class shares and single graphs: [few-label suite](docs/suite.md)."
    )


def _behind_majority(regimes: Sequence[Regime]) -> str:
    """A sentence on the graphs where one class for all nodes is always more accurate."""
    if not regimes or not all({MAJORITY, METHOD} <= set(regime.rows) for regime in regimes):
        return ""
    behind = [
        graph
        for graph in regimes[0].by_graph
        if all(
            float(own[MAJORITY]["mean"]) > float(own[METHOD]["mean"])
            for own in (regime.by_graph.get(graph) for regime in regimes)
            if own is not None
        )
    ]
    if not behind:
        return ""
    return (
        f"On {', '.join(behind)}, predicting the largest class for all nodes is more accurate than "
        f"{METHOD} with all labels: one class is large, and each class has as many labels. "
    )


def _best(regime: Regime, floors: tuple[str, ...]) -> float:
    """Mean over the graphs of the largest accuracy of some methods."""
    return mean(
        max(float(found[name]["mean"]) for name in floors) for found in regime.by_graph.values()
    )
