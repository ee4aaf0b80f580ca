"""``dcgst diagnose``, ``explain``, ``compare``, ``evaluate``, ``report`` and ``check``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from dcgst.cli.options import DelimiterOption, IdOption, RunArgument, check_out, with_graph_options
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    cell,
    check_file,
    console,
    print_json,
    progress,
    say,
)
from dcgst.errors import InputError
from dcgst.evaluate.quality import Estimate
from dcgst.insight import Diagnosis, Explanation, diagnose, explain, write_report
from dcgst.insight.comparison import Comparison, compare
from dcgst.insight.explanation import RelatedNode
from dcgst.insight.report import summary_rows, write_comparison
from dcgst.label.journal import Journal
from dcgst.runs import open_run
from dcgst.runs.assessment import RunEvaluation
from dcgst.runs.fitting import check_graph
from dcgst.runs.folder import BEGUN, REPORT, RUN
from dcgst.tables import Input
from dcgst.tables.store import is_store, open_store

MOST_DIAGNOSED_CLASSES = 20
"""Maximum number of classes to print."""

FEW_EDGES = 10
"""With fewer edges between labeled nodes, their homophily is not shown."""


@with_graph_options
def diagnose_command(
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
        _show_diagnosis(diagnosis)


def _show_diagnosis(found: Diagnosis) -> None:
    console.print(f"\n[bold]{cell(found.headline)}[/bold]\n", highlight=False)
    homophily = "unknown, there are none"
    if found.homophily is not None and found.labeled_edges < FEW_EDGES:
        homophily = f"unknown, there are only {found.labeled_edges}"
    elif found.homophily is not None:
        homophily = f"{found.homophily:.0%} of {found.labeled_edges}"
        homophily += f"; by chance {found.homophily_by_chance:.0%}"
    counts = [f"{name} {n}" for name, n in found.counts.items()]
    shown = ", ".join(counts[:MOST_DIAGNOSED_CLASSES])
    hidden = len(counts) - MOST_DIAGNOSED_CLASSES
    more = f" and {hidden} more" if hidden > 0 else ""
    say(
        f"{found.labels} of {found.nodes:,} nodes are labeled ({found.rate:.2%}). Labels per "
        f"class: {shown}{more}.\n"
        f"Edges between labeled nodes that connect the same class: {homophily}.\n",
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


MOST_CANDIDACIES = 12
"""Maximum number of stages to print."""


def explain_command(
    folder: RunArgument,
    node: Annotated[str, typer.Argument(help="Id of the node.")],
    json: JsonOption = False,
) -> None:
    """Explain the predicted class of a node.

    Shows when and why the node did or did not get a pseudo-label, its neighbors, and labels nearby.
    """
    explanation = explain(open_run(folder), node)
    if json:
        print_json(asdict(explanation))
        return
    console.print(f"[bold]{cell(explanation.id)}[/bold]", highlight=False)
    for line in explanation.summary:
        say(line, wrap=True)
    _show_candidacies(explanation)
    _show_nodes("\nNeighbors", "edge weight", explanation.neighbors, share=False)
    _show_nodes("\nLabels nearby", "share of PageRank", explanation.labeled, share=True)


def _show_candidacies(explanation: Explanation) -> None:
    found = explanation.candidacies
    if not found:
        return
    columns = (
        "replica",
        "stage",
        "class",
        "confidence",
        "rank",
        "score",
        "NER",
        "shift",
        "selected",
    )
    table = Table(*columns, box=None)
    for c in found[:MOST_CANDIDACIES]:
        table.add_row(
            str(c.replica),
            str(c.stage),
            cell(c.predicted),
            f"{c.confidence:.2f}",
            str(c.rank),
            "–" if c.selection_score is None else f"{c.selection_score:.2f}",
            "–" if c.ner is None else f"{c.ner:.2f}",
            _change(c.shift_before, c.shift_after),
            "yes" if c.selected else "no",
        )
    console.print()
    console.print(table)
    if len(found) > MOST_CANDIDACIES:
        say(f"… and {len(found) - MOST_CANDIDACIES} more; --json prints all")


def _change(before: float | None, after: float | None) -> str:
    if after is None:
        return "–"
    return f"{after:.3f}" if before is None else f"{before:.3f} → {after:.3f}"


def _show_nodes(title: str, weight: str, nodes: list[RelatedNode], share: bool) -> None:
    if not nodes:
        return
    table = Table("id", "class", "probability", "source", weight, box=None, title=title)
    table.title_justify = "left"
    for node in nodes:
        strength = f"{node.weight:.0%}" if share else f"{node.weight:g}"
        names = cell(node.id), cell(node.predicted)
        table.add_row(*names, f"{node.probability:.0%}", node.source, strength)
    console.print(table)


MOST_FLOWS, MOST_CHANGES = 10, 5
"""Numbers of rows to print."""


def compare_command(
    before: Annotated[Path, typer.Argument(metavar="RUN1", help="Folder of the earlier run.")],
    after: Annotated[Path, typer.Argument(metavar="RUN2", help="Folder of the later run.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write a page (.html) with a chart.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs: what changed, for which nodes, and whether it helped."""
    if out is not None:
        check_file(out)
    found = compare(open_run(before), open_run(after))
    if out is not None:
        write_comparison(found, out, before.name, after.name)
    if json:
        print_json(asdict(found))
        return
    _show_comparison(found)
    if out is not None:
        say(f"\nPage: {out}")


def _show_comparison(found: Comparison) -> None:
    if found.audit is not None:
        audit = found.audit
        difference = (audit.right_after - audit.right_before) / audit.nodes
        say(
            f"On {audit.nodes} randomly chosen nodes, {audit.right_before} predictions were right "
            f"before and {audit.right_after} after: {100 * difference:+.0f} points (95% interval "
            f"{100 * audit.low:+.0f} to {100 * audit.high:+.0f}).\n",
            wrap=True,
        )
    summary = Table("", "before", "after", box=None)
    for row in summary_rows(found):
        summary.add_row(*row)
    console.print(summary)
    share = found.changed / found.compared if found.compared else 0
    say(
        f"\nOf {found.compared:,} nodes without a label in either run, {found.changed:,} changed "
        f"their predicted class ({share:.1%}).",
        wrap=True,
    )
    if found.only_before or found.only_after:
        say(
            f"{found.only_before:,} nodes are in the first run only, {found.only_after:,} in the "
            "second only.",
            wrap=True,
        )
    if found.changed:
        _show_changes(found)


def _show_changes(found: Comparison) -> None:
    flows = Table("before", "after", "nodes", box=None)
    for first, second, count in found.flows[:MOST_FLOWS]:
        flows.add_row(cell(first), cell(second), f"{count:,}")
    console.print(flows)
    say("\nMost confident changes:")
    changes = Table("id", "before", "after", box=None)
    for change in found.changes[:MOST_CHANGES]:
        texts = (
            f"{change.before} {change.probability_before:.0%}",
            f"{change.after} {change.probability_after:.0%}",
        )
        changes.add_row(cell(change.id), *map(cell, texts))
    console.print(changes)


MOST_EVALUATED_CLASSES = 30
"""Maximum number of classes to print."""

MOST_CONFUSIONS = 10
"""Maximum number of pairs of confused classes to print."""


def evaluate_command(
    folder: RunArgument,
    truth: Annotated[Path, typer.Argument(help="Table of node ids and true classes.")],
    id_column: IdOption = None,
    label: Annotated[str | None, typer.Option("--label", help="Column of true classes.")] = None,
    delimiter: DelimiterOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the predictions of a run with true classes.

    Labels that the fit used are left out. The run keeps the true classes, and its report shows
    the accuracy.
    """
    run = open_run(folder)
    found = run.evaluate(
        truth, id_column=id_column, label_column=label, delimiter=delimiter, store=True
    )
    report = folder / REPORT
    if report.exists():
        write_report(run, evaluation=found)
    if json:
        print_json(found.to_json())
        return
    _show_evaluation(found)
    if report.exists():
        say(f"\nReport: {report}")


def _show_evaluation(found: RunEvaluation) -> None:
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
    if len(quality.classes) > MOST_EVALUATED_CLASSES:
        hidden = len(quality.classes) - MOST_EVALUATED_CLASSES
        say(f"… and {hidden} more classes")
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
    for own in found.quality.classes[:MOST_EVALUATED_CLASSES]:
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


def report_command(
    folder: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write.  [default: report.html in RUN]"),
    ] = None,
) -> None:
    """Write the HTML report of a run.

    The report is one file that needs no network.
    """
    run = open_run(folder)
    if out is not None and out.resolve() != (folder / REPORT).resolve():
        check_out(out, json=False)
    with progress("report", 1.0, quiet=False):
        path = write_report(run, out)
    say(str(path))


def check_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A store, run folder or journal.")],
    json: JsonOption = False,
) -> None:
    """Read all files of a store, a run or a journal of labels, and say what is damaged.

    A damaged file is an error that names it, and what to do.
    """
    if is_store(path):
        with progress("store", 1.0, quiet=json):
            found = open_store(path, again=True)
        what, size = "store", f"{found.graph.num_nodes:,} nodes"
    elif any((path / name).exists() for name in (RUN, BEGUN)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as: a table of predictions was changed
            try:
                run = open_run(path)
            except UserWarning as warning:
                raise InputError(str(warning)) from warning
        if run.store is not None:
            open_store(run.store.path, again=True)
        what, size = "run", f"{run.graph.num_nodes:,} nodes, {len(run.info['files'])} files"
    elif path.is_file():
        journal = Journal(path, repair=False)
        if not journal.events:
            raise InputError(f"{path} is empty, or no journal of labels")
        what, size = "journal", f"{len(journal.events):,} events"
    else:
        raise InputError(f"{path} is not a store, a run folder or a journal")
    if json:
        print_json({"path": str(path), "kind": what, "complete": True})
    else:
        say(f"{path}: a complete {what}, {size}.")
