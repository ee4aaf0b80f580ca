"""``dcgst fit``: labels for all nodes of one's own graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dcgst.cli.data import reads_graph
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    check_folder,
    console,
    errors,
    print_json,
    progress,
)
from dcgst.diagnosis import diagnose
from dcgst.errors import InputError
from dcgst.io import Input
from dcgst.methods import METHODS, Method, method
from dcgst.methods.params import parse
from dcgst.report import write_report
from dcgst.runs import REPLICAS, Run
from dcgst.runs import fit as fit_run
from dcgst.runs.predictions import sources_of


@reads_graph
def fit(
    read_graph: Callable[[], Input],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make.")] = Path("run"),
    name: Annotated[str, typer.Option("--method", help=f"One of {', '.join(METHODS)}.")] = "dcgst",
    preset: Annotated[str, typer.Option(help="Named settings.")] = "default",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as name=value.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, help=f"Runs to average.  [default: {REPLICAS}]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 0,
    validate: Annotated[
        float, typer.Option(help="Share of the labels to set aside, to choose and calibrate by.")
    ] = 0.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew where there is a run.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Also make the report.")] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from the labels in a table and predict all other nodes of the graph."""
    model = _method(name, preset, settings or [], replicas, seed, device)
    check_folder(out)
    found = read_graph()
    trainings = model.trainings * model.replicas
    try:
        with progress(name, trainings, quiet or json) as after:
            run = fit_run(
                found,
                out,
                model,
                validate=validate,
                resume=resume,
                overwrite=overwrite,
                callbacks=[after],
            )
    except KeyboardInterrupt:
        errors.print(f"Interrupted; the same command with --resume goes on in {out}.")
        raise typer.Exit(130) from None
    page = write_report(run) if report else None
    if json:
        print_json(_facts(run))
        return
    _show(run)
    console.print(f"\nPredictions: {out / 'predictions.csv'}", highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"Report: {page}", highlight=False, soft_wrap=True)
    console.print(f"Next: dcgst explain {out} ID, dcgst suggest {out} -n 10", highlight=False)


def _method(
    name: str, preset: str, settings: list[str], replicas: int | None, seed: int, device: str
) -> Method:
    kind = type(method(name))
    values = {"seed": seed, "device": device, "replicas": 1 if kind.deterministic else REPLICAS}
    if replicas is not None:
        values["replicas"] = replicas
    for item in settings:
        key, equals, text = item.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, got {item!r}")
        values[key] = parse(kind, key, text)
    return kind.from_preset(preset, **values)


def _facts(run: Run) -> dict[str, object]:
    sources = sources_of(run.split.train[0] | run.split.val[0], run.stage).tolist()
    return {
        "folder": str(run.folder),
        "method": run.info["method"],
        "nodes": run.graph.num_nodes,
        "classes": list(run.graph.class_names),
        "given": sources.count("given"),
        "pseudo": sources.count("pseudo"),
        "predicted": sources.count("predicted"),
        "calibration": run.info["calibration"],
        "seconds": run.info["seconds"],
    }


def _show(run: Run) -> None:
    """How many nodes of each class, and how sure."""
    table = Table("class", "nodes", "given", "mean probability", box=None)
    rows = run.predictions
    for class_name in run.graph.class_names[:30]:
        own = [row for row in rows if row["class"] == class_name]
        new = [row["probability"] for row in own if row["source"] != "given"]
        sure = f"{sum(new) / len(new):.0%}" if new else "–"
        table.add_row(escape(class_name), str(len(own)), str(len(own) - len(new)), sure)
    console.print(table)
    if run.graph.num_classes > 30:
        console.print(f"… and {run.graph.num_classes - 30} more classes")
    words = run.info["calibration"]["words"]
    console.print(f"Probabilities: {words}.", highlight=False)
    found = diagnose(run.graph, run.split.train[0] | run.split.val[0])
    console.print(found.headline, highlight=False, markup=False)
    for line in found.warnings:
        console.print(f"Careful: {line}.", highlight=False, markup=False)
