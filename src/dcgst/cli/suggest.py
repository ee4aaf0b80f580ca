"""``dcgst suggest``: which nodes to label next."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from dcgst.cli.output import (
    JsonOption,
    SpreadsheetOption,
    cell,
    console,
    print_json,
    progress,
    say,
    say_next,
)
from dcgst.cli.run_options import OutOption, RunArgument, check_new_table, check_out
from dcgst.errors import unknown_name
from dcgst.files import next_folder, write_rows
from dcgst.insight import draw_audit, suggest
from dcgst.insight.label_rows import CHOSEN, RANDOM, SUGGESTED, rows_to_label
from dcgst.insight.suggestion import Suggestion, Suggestions
from dcgst.runs import Run, open_run


def command(
    folder: RunArgument,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of nodes.")] = 10,
    class_name: Annotated[
        str | None, typer.Option("--class", help="Suggest nodes that may be of this class.")
    ] = None,
    top: Annotated[
        bool, typer.Option("--top", help="With --class: suggest its likeliest nodes.")
    ] = False,
    audit: Annotated[
        int, typer.Option(min=0, help="Add this many randomly chosen nodes; see dcgst audit.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    out: OutOption = None,
    spreadsheet: SpreadsheetOption = False,
    json: JsonOption = False,
) -> None:
    """Suggest which nodes to label next.

    These nodes are similar to many uncertain nodes and dissimilar to labeled ones.
    """
    check_out(out, json)
    if out is not None:
        check_new_table(out)
    run = open_run(folder)
    graph = run.graph
    if class_name is not None and class_name not in graph.class_names:
        raise unknown_name("class of the run", class_name, graph.class_names)
    focus = None if class_name is None else graph.class_names.index(class_name)
    with progress("suggest", 1.0, quiet=json):
        found = suggest(
            graph, run.result.proba, run.split.given[0], count, focus=focus, top=top, seed=seed
        )
    rows = [_row(run, suggestion) for suggestion in found.nodes]
    random = draw_audit(run, audit, seed=seed).tolist() if audit else []
    if json:
        effect = {k: v for k, v in asdict(found).items() if k != "nodes"}
        ids = [{"id": str(graph.ids[s.node])} for s in found.nodes]
        nodes = [{**own, **row} for own, row in zip(ids, rows, strict=True)]
        print_json({"nodes": nodes, "random": [str(graph.ids[v]) for v in random], **effect})
        return
    if out is not None:
        table = _rows_to_fill_in(run, found, rows, random)
        write_rows(out, table, spreadsheet=spreadsheet)
        say(f"{len(table)} nodes: {out}")
    else:
        _show(run, found, rows)
        if random:
            say(f"Randomly chosen: {', '.join(str(graph.ids[v]) for v in random)}", wrap=True)
    say(
        f"With these labels, {found.covered_after:.0%} of the uncertainty is covered by similar "
        f"labeled nodes (now {found.covered_before:.0%}), and the shift of the labels is "
        f"{found.shift_after:.3f} (now {found.shift_before:.3f}).",
        wrap=True,
    )
    if out is not None:
        say("Fill in the labels; rows that stay empty are ignored.")
        say_next("refit", folder, "--labels", out, "-o", next_folder(folder))


def _row(run: Run, suggestion: Suggestion) -> dict[str, Any]:
    return {
        "predicted": run.graph.class_names[suggestion.predicted],
        "probability": round(suggestion.probability, 3),
        "covers": round(suggestion.covers, 4),
        "reason": _reason(suggestion),
    }


def _reason(suggestion: Suggestion) -> str:
    if not suggestion.nodes:
        return f"its own prediction is {suggestion.probability:.0%} certain"
    nodes = "1 node" if suggestion.nodes == 1 else f"{suggestion.nodes:,} nodes"
    return f"most similar label of {nodes}"


def _rows_to_fill_in(
    run: Run, found: Suggestions, rows: list[dict[str, Any]], random: list[int]
) -> list[dict[str, Any]]:
    """Suggested and randomly chosen nodes in turn; the latter without predictions."""
    suggested = [
        (s.node, {CHOSEN: SUGGESTED, **row})
        for s, row in zip(found.nodes, rows, strict=True)
        if s.node not in random
    ]
    drawn: list[tuple[int, dict[str, Any]]] = [(node, {CHOSEN: RANDOM}) for node in random]
    ordered = []
    while suggested or drawn:
        ordered += suggested[:1] + drawn[:1]
        del suggested[:1], drawn[:1]
    return rows_to_label(run, [node for node, _ in ordered], [more for _, more in ordered])


def _show(run: Run, found: Suggestions, rows: list[dict[str, Any]]) -> None:
    table = Table("id", "predicted class", "probability", "uncertainty covered", "reason", box=None)
    for suggestion, row in zip(found.nodes, rows, strict=True):
        names = cell(str(run.graph.ids[suggestion.node])), cell(row["predicted"])
        figures = f"{row['probability']:.0%}", f"{row['covers']:.1%}"
        table.add_row(*names, *figures, row["reason"])
    console.print(table)
