"""Tables of the few-label suite: by method, by group of graphs, and by graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from dcgst.bench.suite import FLOORS, GROUPS, MAJORITY, PER_CLASS, SECOND_FLOORS, Regime
from dcgst.bench.tables import Table

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
            for method in dict.fromkeys(methods):
                if method not in part.rows:
                    continue
                gaps = (part.gaps(method), part.second_gaps(method), part.f1_gaps(method))
                texts = [text for found in gaps for text in _mean_and_worst(found)]
                kind = [regime.sampler, str(regime.validation)]
                rows.append([group, str(len(part.by_graph)), *kind, method, *texts])
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
