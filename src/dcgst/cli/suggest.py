"""``dcgst suggest``: which nodes to label next."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from dcgst.cli.output import JsonOption, SpreadsheetOption, cell, console, print_json, say
from dcgst.cli.run_options import OutOption, RunArgument, check_out
from dcgst.files import write_rows
from dcgst.insight import suggest
from dcgst.runs import open_run


def command(
    folder: RunArgument,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of nodes.")] = 10,
    out: OutOption = None,
    spreadsheet: SpreadsheetOption = False,
    json: JsonOption = False,
) -> None:
    """Suggest which nodes to label next.

    These nodes are similar to many uncertain nodes and dissimilar to labeled ones.
    """
    check_out(out, json, folder)
    run = open_run(folder)
    graph = run.graph
    found = suggest(graph, run.result.proba, run.split.given[0], count)
    rows = [
        {
            "id": graph.ids[s.node].item(),
            "predicted": graph.class_names[s.predicted],
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
        write_rows(out, rows, spreadsheet=spreadsheet)
        say(f"{len(rows)} nodes: {out}")
    else:
        table = Table("id", "predicted class", "probability", "uncertainty covered", box=None)
        for row in rows:
            probability, covers = f"{row['probability']:.0%}", f"{row['covers']:.1%}"
            names = cell(str(row["id"])), cell(str(row["predicted"]))
            table.add_row(*names, probability, covers)
        console.print(table)
    say(
        f"With these labels, {found.covered_after:.0%} of the uncertainty is covered by similar "
        f"labeled nodes (now {found.covered_before:.0%}), and the shift of the labels is "
        f"{found.shift_after:.3f} (now {found.shift_before:.3f}).",
        wrap=True,
    )
