"""Generate the page of the few-label suite, and its short table in the README, from records."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from scipy.stats import wilcoxon

from dcgst.bench.records import Records
from dcgst.bench.suite import (
    FLOORS,
    GRAPHS,
    PER_CLASS,
    Regime,
    gap_table,
    regimes_of,
    suite_cells,
    summary_table,
)
from dcgst.bench.tables import Table

METHOD = "dcgst"
ABLATIONS: dict[str, dict[str, Any]] = {
    "experts": {"experts": False},
    "selection by shift": {"criterion": "confidence"},
}
"""Settings that remove each part."""

LABELS = {"uniform": "random", "degree": "by degree", "ppr-s": "from one region (PPR-S)"}


def render_suite(records: Records, runs: int = 5) -> str:
    """The page: all methods, the gap on each graph, and ablations, as Markdown."""
    regimes = find_regimes(records, runs)
    graphs = list(dict.fromkeys(graph for regime in regimes for graph in regime.by_graph))
    parts = [
        "# Few-label suite",
        f"{len(graphs)} graphs with {PER_CLASS} labels per class, as people have them: citation, "
        "co-purchase, social and web graphs, homophilous and heterophilous ones. The labels are "
        "drawn at random, by degree, or from one region of the graph for each class (PPR-S); "
        "there are no validation labels, or 20 drawn at random. DC-GST is compared with the best "
        f"of five plain methods ({', '.join(FLOORS)}) on the same graph and labels, in hindsight: "
        "nobody can choose that well in advance.",
        "With validation labels, the plain methods use them to choose the epoch. DC-GST uses them "
        "for weights and calibration and then trains on them, which the plain methods do not: a "
        "plain method that trains on them too gained about two points with random labels and five "
        "with labels from one region (runs 10 to 13), so most of the lead with 20 labels is due to "
        "that.",
        f"Runs 0 to {runs - 1}; settings were chosen on runs 10 to 13 of the same graphs, by "
        "the true classes of their test nodes. "
        "`dcgst bench --suite` runs the methods, with `--set experts=false` and "
        "`--set criterion=confidence` the ablations; `make results` generates this page from "
        "`results/suite.jsonl`.",
        _origin(regimes),
        f"## Methods\n\n{_body(summary_table(regimes, [METHOD]))}",
        f"## Gap by graph\n\nColumns: labels and number of validation labels.\n\n"
        f"{_body(gap_table(regimes, METHOD))}",
        f"## Ablations\n\n{_body(ablation_table(records, regimes, runs))}",
    ]
    return "\n\n".join(parts) + "\n"


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


def find_regimes(
    records: Records, runs: int, settings: Mapping[str, Any] | None = None
) -> list[Regime]:
    """The records of the suite by kind of labels, optionally with other settings of DC-GST."""
    own = {METHOD: settings or {}}
    return regimes_of(suite_cells(GRAPHS, [METHOD], runs=runs, settings=own), records)


def ablation_table(records: Records, regimes: list[Regime], runs: int) -> Table:
    """What each part of the default is worth, paired by graph."""
    rows = []
    for part, settings in ABLATIONS.items():
        others = {(r.sampler, r.validation): r for r in find_regimes(records, runs, settings)}
        for full in regimes:
            without = others.get((full.sampler, full.validation))
            if without is None:
                continue
            graphs = [graph for graph in full.by_graph if graph in without.by_graph]
            gains = [
                full.by_graph[graph][METHOD]["mean"] - without.by_graph[graph][METHOD]["mean"]
                for graph in graphs
            ]
            p = float(wilcoxon(gains).pvalue)
            better = sum(gain > 0 for gain in gains)
            rows.append(
                [
                    part,
                    LABELS[full.sampler],
                    str(full.validation),
                    f"{mean(gains):+.1f}",
                    f"{better} of {len(graphs)}",
                    f"{p:.3f}",
                ]
            )
    note = (
        "gain: accuracy with the part minus accuracy without it, mean over the graphs; better: "
        "graphs on which it is positive; p: Wilcoxon signed-rank test over the graphs. Without "
        "experts, the network alone predicts. Without selection by shift, pseudo-labels are "
        "selected by confidence."
    )
    headers = ["part", "labels", "val", "gain", "better", "p"]
    return Table("Ablations", headers, rows, [note])


def suite_summary(records: Records, runs: int = 5) -> str:
    """A short table for the README."""
    headers = ["labels", "validation", "GCN", "APPNP", "best plain method", "DC-GST"]
    rows = []
    regimes = find_regimes(records, runs)
    graphs = {graph for regime in regimes for graph in regime.by_graph}
    for regime in regimes:
        best = mean(
            max(found[floor]["mean"] for floor in FLOORS) for found in regime.by_graph.values()
        )
        accuracy = [regime.mean_of(name, "mean") for name in ("gcn", "appnp")]
        numbers = [*accuracy, best, regime.mean_of(METHOD, "mean")]
        rows.append(
            [
                LABELS[regime.sampler],
                f"{regime.validation} random" if regime.validation else "none",
                *(f"{value:.1f}" for value in numbers),
            ]
        )
    lines = [headers, ["---"] * len(headers), *rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        f"{body}\n\nAccuracy in %, mean of {len(graphs)} graphs and {runs} runs, {PER_CLASS} "
        "labels per class. The best plain method is chosen for each graph in hindsight, from "
        f"{', '.join(FLOORS)}. DC-GST also trains on the validation labels. Calibration, class "
        "shares, single graphs and ablations: [few-label suite](docs/suite.md)."
    )


def _body(table: Table) -> str:
    """The table without its title."""
    return table.markdown().split("\n\n", 1)[1]
