"""``dcgst audit``, ``suggest`` and ``label``: which nodes to label, and a page to do it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dcgst.cli.options import OutOption, RunArgument, check_new_table, check_out
from dcgst.cli.output import (
    JsonOption,
    SpreadsheetOption,
    cell,
    check_table,
    console,
    print_json,
    progress,
    say,
    say_next,
)
from dcgst.errors import InputError, unknown_name
from dcgst.files import next_folder, write_rows
from dcgst.insight import draw_audit, suggest
from dcgst.insight.suggestion import (
    SUGGESTED,
    Suggestion,
    Suggestions,
    id_and_label,
    predictions_of,
    rows_to_label,
)
from dcgst.runs import Run, open_run
from dcgst.tables.labels import CHOSEN, RANDOM


def audit_command(
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


def suggest_command(
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
        _show_suggestions(run, found, rows)
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


def _show_suggestions(run: Run, found: Suggestions, rows: list[dict[str, Any]]) -> None:
    table = Table("id", "predicted class", "probability", "uncertainty covered", "reason", box=None)
    for suggestion, row in zip(found.nodes, rows, strict=True):
        names = cell(str(run.graph.ids[suggestion.node])), cell(row["predicted"])
        figures = f"{row['probability']:.0%}", f"{row['covers']:.1%}"
        table.add_row(*names, *figures, row["reason"])
    console.print(table)


def label_command(
    folder: RunArgument,
    labels: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table of labels.  [default: RUN-labels.csv]"),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random nodes.")] = 0,
) -> None:
    """Label nodes in a page in your browser.

    Every label is stored at once. The page opens again where it stopped.
    """
    from filelock import FileLock, Timeout

    try:
        from dcgst.label.server import serve
    except ImportError as error:
        raise InputError("the labeling page requires: pip install 'dcgst[label]'") from error
    from dcgst.label.journal import Journal
    from dcgst.label.session import Session

    run = open_run(folder)
    path = labels or folder.resolve().with_name(f"{folder.resolve().name}-labels.csv")
    check_table(path)
    events, locked = (path.with_name(f"{path.name}.{end}") for end in ("jsonl", "lock"))
    if path.exists() and not events.exists():
        raise InputError(f"{path} exists and is not of dcgst label; choose another file with -o")
    lock = FileLock(locked, timeout=0)
    try:
        with lock:
            session = Session(run, Journal(events), path, seed)
            known = len(session.journal.state.classes)
            if known:
                say(f"{known} labels in {events}; continuing.")
            try:
                serve(session, port=port, browser=browser, ready=_announce)
            finally:
                session.refit.stop()
                written = session.write_export()
            if written:
                count = len(session.journal.state.classes)
                say(f"\n{count} labels: {written}")
                if session.run is not run:
                    latest = session.run.folder
                    say(f"Latest fit: {latest}")
                    say_next("compare", folder, latest)
                free = folder.with_name(next_folder(folder.resolve()).name)
                say_next("refit", folder, "--labels", written, "-o", free)
            else:
                say("\nNo labels.")
    except Timeout as error:
        raise InputError(
            f"another dcgst label is writing {events}; use its page, or another file with -o"
        ) from error


def _announce(address: str) -> None:
    say(f"Open {address}")
    say("Press Ctrl-C to end.")
