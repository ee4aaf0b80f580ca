"""``dcgst evaluate``: compare the predictions of a run with true classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from dcgst.cli.graph_options import DelimiterOption, IdOption
from dcgst.cli.output import JsonOption, cell, console, print_json, say
from dcgst.cli.run_options import RunArgument
from dcgst.evaluate.estimate import Estimate
from dcgst.insight import write_report
from dcgst.runs import open_run
from dcgst.runs.evaluation import RunEvaluation
from dcgst.runs.format import REPORT

MOST_CLASSES = 30
"""Maximum number of classes to print."""

MOST_CONFUSIONS = 10
"""Maximum number of pairs of confused classes to print."""


def command(
    folder: RunArgument,
    truth: Annotated[Path, typer.Argument(help="Table of node ids and true classes.")],
    id_column: IdOption = None,
    label: Annotated[str | None, typer.Option("--label", help="Column of true classes.")] = None,
    delimiter: DelimiterOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the predictions of a run with true classes.

    Labels that the fit used are left out. The report gets a section with the result.
    """
    run = open_run(folder)
    found = run.evaluate(truth, id_column=id_column, label_column=label, delimiter=delimiter)
    report = folder / REPORT
    if report.exists():
        write_report(run, evaluation=found)
    if json:
        print_json(found.to_json())
        return
    _show(found)
    if report.exists():
        say(f"\nReport: {report}")


def _show(found: RunEvaluation) -> None:
    quality = found.quality
    say(f"{quality.nodes:,} nodes evaluated.{_left_out(found)}", wrap=True)
    for name, count in found.new_classes.items():
        nodes = "node counts" if count == 1 else f"{count:,} nodes count"
        say(f"Warning: the run does not know the class {name!r}; its {nodes} as wrong.", wrap=True)
    say("")
    summary = Table("", "", "95% interval", box=None, show_header=True)
    rows = {
        "accuracy": quality.accuracy,
        "balanced accuracy": quality.balanced_accuracy,
        "macro F1": quality.macro_f1,
    }
    for name, estimate in rows.items():
        summary.add_row(name, f"{estimate.value:.1%}", _interval(estimate))
    summary.add_row("mean probability", f"{quality.mean_probability:.1%}", "")
    summary.add_row("calibration error (ECE)", f"{quality.ece:.1%}", "")
    console.print(summary)
    say("")
    console.print(_classes(found))
    if len(quality.classes) > MOST_CLASSES:
        say(f"… and {len(quality.classes) - MOST_CLASSES} more classes")
    _show_confusions(found)


def _left_out(found: RunEvaluation) -> str:
    """Sentences on nodes that were not evaluated."""
    parts = []
    if found.given:
        parts.append(f" {found.given:,} were given to the fit and are left out.")
    if found.without_class:
        parts.append(f" {found.without_class:,} others have no class in the table.")
    if found.unknown:
        listed = ", ".join(found.unknown[:3]) + (", …" if len(found.unknown) > 3 else "")
        ids = (
            "1 id of the table is" if len(found.unknown) == 1 else f"{len(found.unknown):,} ids are"
        )
        parts.append(f" {ids} not in the run: {listed}.")
    return "".join(parts)


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"


def _classes(found: RunEvaluation) -> Table:
    table = Table(
        "class", "nodes", "predicted", "precision", "recall", "F1", "average precision", box=None
    )
    for own in found.quality.classes[:MOST_CLASSES]:
        figures = (own.precision, own.recall, own.f1, own.average_precision)
        shares = ["–" if value is None else f"{value:.1%}" for value in figures]
        table.add_row(cell(own.name), f"{own.nodes:,}", f"{own.predicted:,}", *shares)
    return table


def _show_confusions(found: RunEvaluation) -> None:
    """Print the most frequent pairs of true and predicted class."""
    wrong = found.quality.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
    pairs = [divmod(int(position), len(wrong)) for position in order]
    pairs = [(true, predicted) for true, predicted in pairs if wrong[true, predicted]]
    if not pairs:
        return
    table = Table("true class", "predicted class", "nodes", box=None)
    for true, predicted in pairs:
        names = (cell(found.class_names[code]) for code in (true, predicted))
        table.add_row(*names, f"{wrong[true, predicted]:,}")
    say("\nMost frequent errors:")
    console.print(table)
