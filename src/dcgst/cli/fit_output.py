"""Fit a method and print the result; shared by ``fit`` and ``refit``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from dcgst.cli.output import cell, console, errors, print_json, progress, say, training_progress
from dcgst.insight import diagnose_run, write_report
from dcgst.insight.diagnosis import Diagnosis
from dcgst.insight.expectation import expectation
from dcgst.io import Input, add_labels
from dcgst.methods import Method
from dcgst.methods.relations import verdict
from dcgst.runs import Run, columns, fit
from dcgst.runs.format import stored_steps
from dcgst.runs.predictions import count_sources
from dcgst.runs.warnings import prediction_warnings

MOST_CLASSES = 30
"""Maximum number of classes to print."""

MOST_UNUSED = 10
"""Maximum number of unused columns to print."""

LabelsOption = Annotated[
    list[Path] | None,
    typer.Option("--labels", help="Table of ids and classes to add; may be repeated."),
]
AuditOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--audit",
        help="Table of ids and classes of randomly chosen nodes (dcgst audit); may be repeated.",
    ),
]

PriorOption = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS=SHARE,…",
        help="Known class shares of the nodes to predict: fraud=0.06,ok=0.94.",
    ),
]


def fit_and_show(
    source: Input | Run,
    out: Path,
    model: Method,
    *,
    labels: Sequence[Path],
    audit: Sequence[Path],
    validate: float = 0.0,
    resume: bool,
    overwrite: bool,
    spreadsheet: bool = False,
    ray: str | None = None,
    report: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Fit with a progress bar, write the report, and print what was found."""
    known = source.as_input() if isinstance(source, Run) else source
    data = add_labels(known, labels, audit)
    for note in data.notes[len(known.notes) :]:
        if note.startswith("Warning") or not (json or quiet):
            say(f"  {note}", errors)
    validation = validate > 0 or "val" in data.graph.masks
    trainings = model.count_trainings(validation) * model.replicas
    kept = stored_steps(out) if resume else None
    if kept and not (json or quiet):
        say(f"  {out} holds {kept} of an interrupted fit", errors)
    elif resume and not out.exists() and not (json or quiet):
        say(f"  there is no interrupted fit in {out}: a new one starts", errors)
    try:
        with training_progress(model.name, trainings, quiet or json) as callback:
            run = fit(
                data,
                out,
                model,
                validate=validate,
                resume=resume,
                overwrite=overwrite,
                spreadsheet=spreadsheet,
                callbacks=[callback],
                ray=ray,
            )
    except KeyboardInterrupt:
        say(f"Interrupted. Repeat the command with --resume to continue in {out}.", errors)
        raise typer.Exit(130) from None
    with progress("report", 1.0, quiet or json):
        diagnosis = diagnose_run(run)
        page = write_report(run, diagnosis=diagnosis) if report else None
    if json:
        print_json(_facts(run, diagnosis))
        return
    _show(run, diagnosis)
    unused = [note for note in run.info["notes"] if "not used: " in note]
    if unused:
        more = f", {len(unused)} in all" if len(unused) > MOST_UNUSED else ""
        say(f"\nColumns that are not used{more}:")
    for note in unused[:MOST_UNUSED]:
        say(f"  {note.removeprefix('feature ')}", wrap=True)
    say(f"\nPredictions: {run.predictions_file}")
    if page is not None:
        say(f"Report: {page}")
    if run.audited:
        say(f"Next: dcgst suggest {out} -n 10, dcgst explain {out} ID")
    else:
        say(f"Next: dcgst audit {out} -n 30, dcgst suggest {out} -n 10, dcgst explain {out} ID")


def _facts(run: Run, diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "folder": str(run.folder),
        "method": run.info["method"],
        "nodes": run.graph.num_nodes,
        "classes": list(run.graph.class_names),
        **count_sources(run.result),
        "estimate": run.estimate.to_json() if run.estimate else None,
        "calibration": run.info["calibration"],
        "member_weights": run.info["member_weights"],
        "expectation": run.info["expectation"],
        "relations": run.info["relations"],
        "columns_used": run.info.get("columns_used", []),
        "warnings": [*diagnosis.warnings, *prediction_warnings(run)],
        "seconds": run.info["seconds"],
    }


def _show(run: Run, diagnosis: Diagnosis) -> None:
    """Print the estimate, and the number of nodes and the mean probability of each class."""
    say(f"{run.estimate}.\n" if run.estimate else f"{expectation(run, diagnosis)}\n", wrap=True)
    estimated = ["share (95% interval)"] if run.estimate else []
    table = Table("class", "nodes", "given", "mean probability", *estimated, box=None)
    result, classes = run.result, run.graph.num_classes
    new = result.given < 0
    counts = np.bincount(result.labels, minlength=classes)
    predicted = np.bincount(result.labels[new], minlength=classes)
    totals = np.bincount(result.labels[new], result.confidence[new], minlength=classes)
    for code, class_name in enumerate(run.graph.class_names[:MOST_CLASSES]):
        mean = f"{totals[code] / predicted[code]:.0%}" if predicted[code] else "–"
        share = [run.estimate.shares[class_name].text] if run.estimate else []
        given = counts[code] - predicted[code]
        table.add_row(cell(class_name), str(counts[code]), str(given), mean, *share)
    console.print(table)
    if run.graph.num_classes > MOST_CLASSES:
        say(f"… and {run.graph.num_classes - MOST_CLASSES} more classes")
    if run.relations:
        say(f"{verdict(run.relations)}.", wrap=True)
    for relation in run.relations:
        say(f"  {relation.describe()}", wrap=True)
    if described := columns.verdict(run.columns_used):
        say(f"{described}.", wrap=True)
    say(f"Calibration: {run.info['calibration']['description']}.", wrap=True)
    others = "Without the randomly chosen ones: " if run.audited else ""
    say(f"{others}{diagnosis.headline}", wrap=True)
    if diagnosis.biased_columns:
        say(f"{diagnosis.biased_columns}.", wrap=True)
    for line in (*diagnosis.warnings, *prediction_warnings(run)):
        say(f"Warning: {line}.", wrap=True)
