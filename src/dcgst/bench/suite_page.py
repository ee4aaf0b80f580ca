"""Generate the page of the few-label suite, and its short table in the README, from records."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from dcgst.bench.records import Records
from dcgst.bench.suite import (
    FLOORS,
    GRAPHS,
    MAJORITY,
    PER_CLASS,
    SECOND_FLOORS,
    Regime,
    regimes_of,
    suite_cells,
)
from dcgst.bench.suite_tables import gap_table, group_table, summary_table
from dcgst.bench.tables import Table
from dcgst.methods import method

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
    parts.append(f"## Methods\n\n{_body(summary_table(regimes, METHODS))}")
    groups = group_table(regimes, METHODS)
    if groups.rows:
        parts.append(
            "## Gap by group of graphs\n\nMean gap and the gap on the worst graph of each group; "
            "2nd and F1 gap as above, likewise. tables: graphs that are read from tables with "
            f"columns of several kinds; development: the others.\n\n{_body(groups)}"
        )
    by_graph = gap_table(regimes, METHOD)
    if by_graph.rows:
        parts.append(
            f"## Gap of {METHOD} by graph\n\nColumns: labels and number of validation labels.\n\n"
            f"{_body(by_graph)}"
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


def _body(table: Table) -> str:
    """The table without its title."""
    return table.markdown().split("\n\n", 1)[1]
