"""Running a grid of cells from the command line: what is done, what is left, progress, failures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import typer
from rich.table import Table as RichTable

from dcgst.bench.cells import Cell
from dcgst.bench.grid import (
    CellResult,
    default_num_workers,
    estimate_seconds,
    missing_cells,
    run_grid,
)
from dcgst.bench.records import Records
from dcgst.bench.tables import Table
from dcgst.cli.output import console, errors, print_json, progress, say
from dcgst.engine.device import resolve_device

MANY_COLUMNS = 10
"""Tables with more columns have narrower gaps, so that they fit into 80 characters."""


@dataclass
class Plan:
    """The cells of some experiments, and which of them have to be run."""

    cells: list[Cell]
    records: Records
    device: str
    requested_workers: int | None
    ray: str | None = None

    def __post_init__(self) -> None:
        target = resolve_device(self.device)
        self.gpu = target.type == "cuda"
        self.workers = self.requested_workers or default_num_workers(target)
        self.missing = missing_cells(self.cells, self.records)
        self.missing_keys = {cell.key for cell in self.missing}

    def seconds(self, cell: Cell) -> float:
        """Estimated time of a cell; timed cells run one at a time, others in parallel."""
        return estimate_seconds(cell, self.records, self.gpu) / (1 if cell.timed else self.workers)


def announce(plan: Plan, json: bool) -> None:
    """Print how many cells are done and how long the others will take; as JSON, the records."""
    done = [
        plan.records.by_key[cell.key] for cell in plan.cells if cell.key not in plan.missing_keys
    ]
    if json:
        for record in done:
            print_json(record)
        return
    if done:
        devices = ", ".join(sorted({str(record.get("device")) for record in done}))
        where = f"{plan.records.path} ({devices})"
        say(f"{len(done)} of {len(plan.cells)} cells from {where}.", errors)
        say("If graphs or methods have changed, delete the file to measure again.", errors)
    if plan.missing:
        seconds = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"{len(plan.missing)} cells to run, {plan.workers} in parallel, about "
            f"{describe_time(seconds)}.",
            errors,
        )


def run_missing(plan: Plan, title: str, json: bool, quiet: bool) -> list[CellResult]:
    """Run the missing cells with a progress bar; returns those that failed."""
    estimates = {cell.key: plan.seconds(cell) for cell in plan.missing}
    count, completed = 0, 0.0
    with progress(title, sum(estimates.values()), quiet or json) as bar:

        def report(result: CellResult) -> None:
            nonlocal count, completed
            count, completed = count + 1, completed + estimates[result.cell.key]
            if result.record is not None and json:
                print_json(result.record)
            bar.describe(f"{count} of {len(estimates)} cells, last {result.cell}")
            bar.advance_to(completed)

        try:
            results = run_grid(
                plan.missing,
                plan.records,
                device=plan.device,
                workers=plan.requested_workers,
                ray=plan.ray,
                report=report,
            )
        except KeyboardInterrupt:
            stored = len(plan.missing) - len(missing_cells(plan.missing, plan.records))
            say(
                f"Interrupted. {stored} of {len(plan.missing)} cells are in {plan.records.path}; "
                "run the same command to continue.",
                errors,
            )
            raise typer.Exit(130) from None
    for result in results:
        if result.first_error and result.record is not None:
            say(f"{result.cell} failed once ({result.first_error}) and was run again.", errors)
    return [result for result in results if result.record is None]


def report_failures(failed: Sequence[CellResult], plan: Plan) -> None:
    """Print the cells that failed, if any, and exit with code 1."""
    if failed:
        lines = "\n".join(f"  {f.cell}: {f.error}" for f in failed)
        say(f"{len(failed)} of {len(plan.missing)} cells failed; run again to retry:", errors)
        say(lines, errors)
        raise typer.Exit(1)


def describe_time(seconds: float) -> str:
    """Describe a time in seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_table(table: Table) -> None:
    """Print a table with its notes; text between double asterisks is bold."""
    wide = len(table.headers) > MANY_COLUMNS
    shown = RichTable(
        title=table.title,
        box=None,
        title_justify="left",
        collapse_padding=wide,
        pad_edge=not wide,
    )
    for header in table.headers:
        shown.add_column(header, overflow="fold")
    for row in table.rows:
        shown.add_row(*(re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/bold]", cell) for cell in row))
    console.print(shown)
    for note in table.notes:
        say(note)
    console.print()
