"""``dcgst diagnose``: how few, how biased, how well connected the labels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from rich.table import Table

from dcgst.cli.graph_options import with_graph_options
from dcgst.cli.output import JsonOption, QuietOption, cell, console, print_json, progress, say
from dcgst.insight import Diagnosis, diagnose
from dcgst.io import Input
from dcgst.runs.checks import check_graph

MOST_CLASSES = 20
"""Maximum number of classes to print."""

FEW_EDGES = 10
"""With fewer edges between labeled nodes, their homophily is not shown."""


@with_graph_options
def command(
    read_graph: Callable[[], Input],
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure how few, how biased and how well connected the labels are."""
    data = read_graph()
    check_graph(data.graph)
    columns = data.encoder.widths if data.encoder else None
    with progress("diagnose", 1.0, quiet or json):
        diagnosis = diagnose(data.graph, columns=columns)
    if json:
        print_json({**asdict(diagnosis), "headline": diagnosis.headline})
    else:
        _show(diagnosis)


def _show(found: Diagnosis) -> None:
    console.print(f"\n[bold]{cell(found.headline)}[/bold]\n", highlight=False)
    homophily = "unknown, there are none"
    if found.homophily is not None and found.labeled_edges < FEW_EDGES:
        homophily = f"unknown, there are only {found.labeled_edges}"
    elif found.homophily is not None:
        homophily = f"{found.homophily:.0%} of {found.labeled_edges}"
        homophily += f"; by chance {found.homophily_by_chance:.0%}"
    counts = [f"{name} {n}" for name, n in found.counts.items()]
    more = f" and {len(counts) - MOST_CLASSES} more" if len(counts) > MOST_CLASSES else ""
    say(
        f"{found.labels} of {found.nodes:,} nodes are labeled ({found.rate:.2%}). Labels per "
        f"class: {', '.join(counts[:MOST_CLASSES])}{more}.\n"
        f"Edges between labeled nodes that connect the same class: {homophily}.\n"
        f"Concentration of the labeled nodes in the graph: {found.concentration:.1f} (random "
        "sample: about 1; from one region: 2 or more).\n",
        wrap=True,
    )
    table = Table("difference in", "shift", "random", "", "meaning", box=None)
    for shift in found.shifts:
        verdict = "biased" if shift.significant else "not biased"
        numbers = f"{shift.value:.3f}", f"{shift.expected:.3f}"
        table.add_row(shift.name, *numbers, verdict, shift.description)
    console.print(table)
    if found.biased_columns:
        say(f"{found.biased_columns}.", wrap=True)
    for line in found.warnings:
        say(f"Warning: {line}.", wrap=True)
    for line in found.advice:
        say(f"Advice: {line}", wrap=True)
