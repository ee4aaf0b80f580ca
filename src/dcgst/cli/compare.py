"""``dcgst compare``: what changed between two runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dcgst.cli.output import JsonOption, cell, check_file, console, print_json, say
from dcgst.insight.comparison import Comparison, compare
from dcgst.insight.report import summary_rows, write_comparison
from dcgst.runs import open_run

MOST_FLOWS, MOST_CHANGES = 10, 5
"""Numbers of rows to print."""


def command(
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
    _show(found)
    if out is not None:
        say(f"\nPage: {out}")


def _show(found: Comparison) -> None:
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
