"""``dcgst fit``: predict the classes of all nodes of your own graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dcgst.cli.graph_options import with_graph_options
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    SpreadsheetOption,
    cell,
    check_folder,
    console,
    errors,
    print_json,
    say,
    training_progress,
)
from dcgst.cli.settings import make_method, split_pairs
from dcgst.insight import diagnose, write_report
from dcgst.io import Input
from dcgst.methods import METHODS, Method
from dcgst.methods.core.params import parse_setting
from dcgst.runs import GIVEN, PREDICTED, PSEUDO, REPLICAS, Run, fit
from dcgst.runs.predictions import sources_of
from dcgst.runs.warnings import prediction_warnings

MOST_CLASSES = 30
"""Maximum number of classes to print."""


@with_graph_options
def command(
    read_graph: Callable[[], Input],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to create.")] = Path("run"),
    name: Annotated[
        str, typer.Option("--method", help="See dcgst methods; or package.module:Class.")
    ] = "dcgst",
    preset: Annotated[str, typer.Option(help="Named settings of the method.")] = "default",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be repeated."),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, help=f"Fits to average.  [default: {REPLICAS}]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS=SHARE,…",
            help="Known class shares of the nodes to predict: fraud=0.06,ok=0.94.",
        ),
    ] = None,
    validate: Annotated[
        float, typer.Option(help="Share of the labels to use for validation, not training.")
    ] = 0.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted fit.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing run.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write the report.")] = True,
    spreadsheet: SpreadsheetOption = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from the labels in a table and predict all other nodes."""
    pairs = [*(settings or []), *([] if prior is None else [f"prior={prior}"])]
    model = _method(name, preset, pairs, replicas, seed, device)
    check_folder(out)
    data = read_graph()
    validation = validate > 0 or "val" in data.graph.masks
    trainings = model.count_trainings(validation) * model.replicas
    try:
        with training_progress(name, trainings, quiet or json) as callback:
            run = fit(
                data,
                out,
                model,
                validate=validate,
                resume=resume,
                overwrite=overwrite,
                spreadsheet=spreadsheet,
                callbacks=[callback],
            )
    except KeyboardInterrupt:
        say(f"Interrupted. Repeat the command with --resume to continue in {out}.", errors)
        raise typer.Exit(130) from None
    page = write_report(run) if report else None
    if json:
        print_json(_facts(run))
        return
    _show(run)
    say(f"\nPredictions: {out / 'predictions.csv'}")
    if page is not None:
        say(f"Report: {page}")
    say(f"Next: dcgst explain {out} ID, dcgst suggest {out} -n 10")


def _method(
    name: str, preset: str, pairs: list[str], replicas: int | None, seed: int, device: str
) -> Method:
    kind = METHODS[name]
    values = {"seed": seed, "device": device, "replicas": 1 if kind.deterministic else REPLICAS}
    if replicas is not None:
        values["replicas"] = replicas
    for key, text in split_pairs(pairs).items():
        values[key] = parse_setting(kind, key, text)
    return make_method(name, preset, values)


def _facts(run: Run) -> dict[str, object]:
    sources = sources_of(run.result).tolist()
    return {
        "folder": str(run.folder),
        "method": run.info["method"],
        "nodes": run.graph.num_nodes,
        "classes": list(run.graph.class_names),
        **{source: sources.count(source) for source in (GIVEN, PSEUDO, PREDICTED)},
        "calibration": run.info["calibration"],
        "expert_weights": run.info["expert_weights"],
        "warnings": prediction_warnings(run),
        "seconds": run.info["seconds"],
    }


def _show(run: Run) -> None:
    """Print the number of nodes and the mean probability of each class."""
    table = Table("class", "nodes", "given", "mean probability", box=None)
    for class_name in run.graph.class_names[:MOST_CLASSES]:
        own = [row for row in run.predictions if row["class"] == class_name]
        new = [row["probability"] for row in own if row["source"] != GIVEN]
        mean = f"{sum(new) / len(new):.0%}" if new else "–"
        table.add_row(cell(class_name), str(len(own)), str(len(own) - len(new)), mean)
    console.print(table)
    if run.graph.num_classes > MOST_CLASSES:
        say(f"… and {run.graph.num_classes - MOST_CLASSES} more classes")
    say(f"Calibration: {run.info['calibration']['description']}.", wrap=True)
    diagnosis = diagnose(run.graph, run.split.given[0])
    say(diagnosis.headline, wrap=True)
    for line in (*diagnosis.warnings, *prediction_warnings(run)):
        say(f"Warning: {line}.", wrap=True)
