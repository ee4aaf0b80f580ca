"""``dcgst audit``: randomly chosen nodes to label, to measure how good a run is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dcgst.cli.output import SpreadsheetOption, say, say_next
from dcgst.cli.run_options import RunArgument, check_new_table
from dcgst.files import next_folder, write_rows
from dcgst.insight import draw_audit
from dcgst.insight.label_rows import CHOSEN, RANDOM, id_and_label, predictions_of, rows_to_label
from dcgst.runs import open_run


def command(
    folder: RunArgument,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of nodes.")] = 30,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write.")] = Path("audit.csv"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    show_predictions: Annotated[
        bool,
        typer.Option("--show-predictions", help="Add the predictions; they may bias the labels."),
    ] = False,
    spreadsheet: SpreadsheetOption = False,
) -> None:
    """Write a table of randomly chosen nodes to label.

    From their labels, dcgst refit estimates how many predictions are right.
    """
    check_new_table(out)
    run = open_run(folder)
    nodes = draw_audit(run, count, seed=seed).tolist()
    more: list[dict[str, Any]] = [{CHOSEN: RANDOM}] * len(nodes)
    if show_predictions:
        more = [{**own, **new} for own, new in zip(more, predictions_of(run, nodes), strict=True)]
    write_rows(out, rows_to_label(run, nodes, more), spreadsheet=spreadsheet)
    label = id_and_label(run)[1]
    say(f"{len(nodes)} randomly chosen nodes: {out}")
    say(
        f"Fill in the column {label!r} from the top; rows that stay empty are ignored. Classes: "
        f"{', '.join(run.graph.class_names[:10])}{', …' if run.graph.num_classes > 10 else ''}.",
        wrap=True,
    )
    say_next("refit", folder, "--audit", out, "-o", next_folder(folder))
