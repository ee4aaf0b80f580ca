"""``dcgst predict``: predictions of a stored model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.graph_options import DelimiterOption, DropOption, EdgesArgument
from dcgst.cli.output import JsonOption, SpreadsheetOption, errors, print_json, say
from dcgst.cli.run_options import OutOption, RunArgument, check_out
from dcgst.runs import GIVEN, open_run
from dcgst.runs.predictions import count_sources
from dcgst.text import printable


def command(
    folder: RunArgument,
    nodes: Annotated[Path | None, typer.Argument(help="Nodes of another graph.")] = None,
    edges: EdgesArgument = None,
    out: OutOption = None,
    delimiter: DelimiterOption = None,
    drop_unknown: DropOption = False,
    spreadsheet: SpreadsheetOption = False,
    json: JsonOption = False,
) -> None:
    """Predict with a stored model, on its own graph or another one.

    Another graph must have the same columns or features.
    """
    run = open_run(folder)
    check_out(out, json, folder, (nodes, edges))
    found = run.predict_table(nodes, edges, delimiter=delimiter, drop_unknown=drop_unknown)
    if nodes is not None:
        ids = [str(node_id) for node_id in found.ids.tolist()]
        shared = int((run.graph.find(ids) >= 0).sum())
        labels = count_sources(found.result)[GIVEN]
        say(
            f"{len(found):,} nodes, {shared:,} of them also in the run (same id); {labels:,} known "
            "labels used.",
            errors,
        )
        if shared == len(found) == run.graph.num_nodes:
            say(
                f"These are the nodes of the run. Its own predictions are in {folder}; those of "
                "the stored network differ slightly.",
                errors,
            )
    if json:
        for row in found.rows():
            print_json({key: str(v) if key == "id" else v for key, v in row.items()})
    elif out is not None:
        if out.suffix.lower() == ".parquet":
            found.write_parquet(out)
        else:
            found.write_csv(out, spreadsheet=spreadsheet)
        say(f"{len(found):,} predictions: {out}")
    else:
        for text in found.csv_texts(spreadsheet=spreadsheet):
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
