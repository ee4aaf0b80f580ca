"""``dcgst predict | explain | suggest | report | diagnose``: what there is to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dcgst.cli.data import DelimiterOption, DropOption, EdgesArgument, reads_graph
from dcgst.cli.output import JsonOption, QuietOption, check_file, console, errors, print_json
from dcgst.diagnosis import Diagnosis, diagnose
from dcgst.errors import InputError
from dcgst.explanations import Explanation, Neighbour, explain
from dcgst.io import Input
from dcgst.report import write_report
from dcgst.runs import open_run
from dcgst.runs.checks import check_graph, set_aside
from dcgst.runs.files import rows_as_csv, write_text
from dcgst.suggestions import suggest

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that dcgst fit made.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write, instead of the terminal.")
]


def predict_command(
    folder: RunArgument,
    nodes: Annotated[Path | None, typer.Argument(help="Nodes of another graph.")] = None,
    edges: EdgesArgument = None,
    out: OutOption = None,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
    json: JsonOption = False,
) -> None:
    """Predict with the saved model, on its own graph or on another with the same columns."""
    run = open_run(folder)
    _check_out(out, json)
    rows = run.predict(nodes, edges, delimiter=delimiter, drop_unknown=drop_unknown)
    if nodes is not None:
        ids = {str(node_id) for node_id in run.graph.ids}
        there = sum(str(row["id"]) in ids for row in rows)
        given = sum(row["source"] == "given" for row in rows)
        errors.print(
            f"{len(rows):,} nodes, {there:,} of them known from the run by their ids; {given:,} "
            "labels are used.",
            highlight=False,
        )
    if json:
        for row in rows:
            print_json({key: str(v) if key == "id" else v for key, v in row.items()})
    elif out is not None:
        write_text(out, rows_as_csv(rows))
        console.print(f"{len(rows):,} predictions: {out}", highlight=False, soft_wrap=True)
    else:
        typer.echo(rows_as_csv(rows), nl=False)


def report_command(
    folder: RunArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write.  [default: in the folder]")
    ] = None,
) -> None:
    """Make the HTML page of a run: one file, no network."""
    run = open_run(folder)
    check_file(out or folder / "report.html")
    console.print(str(write_report(run, out)), highlight=False, soft_wrap=True)


def explain_command(
    folder: RunArgument,
    node: Annotated[str, typer.Argument(help="The node's own id.")],
    json: JsonOption = False,
) -> None:
    """Tell when and why a node was or was not given a pseudo-label, and who speaks for it."""
    found = explain(open_run(folder), node)
    if json:
        print_json(asdict(found))
        return
    console.print(f"[bold]{escape(found.id)}[/bold]", highlight=False)
    for line in found.summary:
        console.print(line, highlight=False, markup=False)
    _show_opinions(found)
    _show_neighbours("\nNeighbours", "edge", found.neighbours, share=False)
    _show_neighbours("\nLabels nearby", "share by random walk", found.labeled, share=True)


def suggest_command(
    folder: RunArgument,
    count: Annotated[int, typer.Option("-n", min=1, help="How many nodes.")] = 10,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Choose the nodes whose labels would help most: near much uncertainty, far from all labels."""
    _check_out(out, json)
    run = open_run(folder)
    graph = run.graph
    labeled = run.split.train[0] | run.split.val[0]
    found = suggest(graph, run.proba, labeled, count)
    rows = [
        {
            "id": graph.ids[s.node].item(),
            "believed": graph.class_names[s.predicted],
            "probability": round(s.probability, 3),
            "covers": round(s.covers, 4),
        }
        for s in found.nodes
    ]
    if json:
        effect = {k: v for k, v in asdict(found).items() if k != "nodes"}
        print_json({"nodes": [{**row, "id": str(row["id"])} for row in rows], **effect})
        return
    if out is not None:
        write_text(out, rows_as_csv(rows))
        console.print(f"{len(rows)} nodes: {out}", highlight=False, soft_wrap=True)
    else:
        table = Table("id", "believed to be", "probability", "uncertainty covered", box=None)
        for row in rows:
            likely, covers = f"{row['probability']:.0%}", f"{row['covers']:.1%}"
            names = escape(str(row["id"])), escape(str(row["believed"]))
            table.add_row(*names, likely, covers)
        console.print(table)
    console.print(
        f"With these labeled, {found.covered_after:.0%} of the uncertainty lies near a label (now "
        f"{found.covered_before:.0%}), and the labels' shift is {found.shift_after:.3f} (now "
        f"{found.shift_before:.3f}).",
        highlight=False,
    )


@reads_graph
def diagnose_command(
    read_graph: Callable[[], Input],
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Tell how few, how biased and how connected the labels are, and what to do."""
    found = read_graph()
    check_graph(found.graph)
    split = set_aside(found.graph, 0.0)
    result = diagnose(found.graph, split.train[0] | split.val[0])
    if json:
        print_json({**asdict(result), "headline": result.headline})
    else:
        _show_diagnosis(result)


def _check_out(out: Path | None, json: bool) -> None:
    if out is not None:
        if json:
            raise InputError("--json prints and --out writes: choose one")
        check_file(out)


def _change(before: float | None, after: float | None) -> str:
    if after is None:
        return "–"
    return f"{after:.3f}" if before is None else f"{before:.3f} → {after:.3f}"


def _show_diagnosis(found: Diagnosis) -> None:
    console.print(f"\n[bold]{found.headline}[/bold]\n", highlight=False)
    known = f"{found.homophily:.0%}" if found.homophily is not None else "not known"
    counts = [f"{name} {n}" for name, n in found.counts.items()]
    more = f" and {len(counts) - 20} more" if len(counts) > 20 else ""
    console.print(
        f"{found.labels} of {found.nodes:,} nodes are labeled ({found.rate:.2%}); labels of each "
        f"class: {', '.join(counts[:20])}{more}.\n"
        f"Edges between labeled nodes that join the same class: {known}.\n",
        highlight=False,
        markup=False,
    )
    table = Table("in", "shift", "random", "", "that is", box=None)
    for shift in found.shifts:
        verdict = "biased" if shift.unusual else "fine"
        table.add_row(shift.name, f"{shift.value:.3f}", f"{shift.usual:.3f}", verdict, shift.words)
    console.print(table)
    for line in found.warnings:
        console.print(f"Careful: {line}.", highlight=False, markup=False)
    for line in found.advice:
        console.print(f"→ {line}", highlight=False, markup=False)


def _show_opinions(found: Explanation, most: int = 12) -> None:
    if not found.opinions:
        return
    table = Table(
        "replica", "stage", "class", "confidence", "rank", "q", "NER", "shift", "chosen", box=None
    )
    for o in found.opinions[:most]:
        table.add_row(
            str(o.replica),
            str(o.stage),
            escape(o.predicted),
            f"{o.confidence:.2f}",
            str(o.rank),
            "–" if o.q is None else f"{o.q:.2f}",
            "–" if o.ner is None else f"{o.ner:.2f}",
            _change(o.shift_before, o.shift),
            "yes" if o.chosen else "no",
        )
    console.print()
    console.print(table)
    if len(found.opinions) > most:
        console.print(f"… and {len(found.opinions) - most} more; --json shows all")


def _show_neighbours(title: str, weight: str, nodes: list[Neighbour], share: bool) -> None:
    if not nodes:
        return
    table = Table("id", "class", "probability", "source", weight, box=None, title=title)
    table.title_justify = "left"
    for node in nodes:
        strength = f"{node.weight:.0%}" if share else f"{node.weight:g}"
        names = escape(node.id), escape(node.predicted)
        table.add_row(*names, f"{node.probability:.0%}", node.source, strength)
    console.print(table)
