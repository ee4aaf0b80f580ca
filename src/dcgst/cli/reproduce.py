"""``dcgst reproduce``: the paper's tables and figures with our results and the published ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from dcgst.bench.cells import Cell
from dcgst.bench.experiments import EXPERIMENTS, Experiment, cells_of, select_experiments
from dcgst.bench.figures import FIGURES, draw, import_matplotlib
from dcgst.bench.grid import (
    CellResult,
    default_num_workers,
    estimate_seconds,
    missing_cells,
    run_grid,
)
from dcgst.bench.pages import make_tables, render_page
from dcgst.bench.records import Records
from dcgst.bench.tables import Table
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    check_file,
    check_folder,
    console,
    errors,
    print_json,
    progress,
    say,
)
from dcgst.cli.settings import split_list
from dcgst.datasets import DATASETS
from dcgst.engine.device import resolve_device
from dcgst.errors import InputError
from dcgst.files import write_text

NAMES = ", ".join(EXPERIMENTS)


def command(
    what: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {NAMES}; or all.", show_default=False)
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Comma-separated subset of the experiments.", show_default=False),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each cell; the paper has 10.")] = 10,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells to run in parallel.  [default: one per core]")
    ] = None,
    results: Annotated[
        Path, typer.Option(help="File of records; cells in it are not run again.")
    ] = Path("reproduction/records.jsonl"),
    figures: Annotated[Path, typer.Option(help="Folder for the figures (SVG and PNG).")] = Path(
        "reproduction/figures"
    ),
    page_path: Annotated[
        Path | None, typer.Option("--page", help="Also write all tables as a Markdown page.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cells and their estimated time.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the experiments of the paper and compare with the published results."""
    experiments = _select(what, only)
    records = Records(results)
    check_file(results)
    check_folder(figures)
    if page_path is not None:
        check_file(page_path)
    if any(e.name in FIGURES for e in experiments):
        import_matplotlib()
    plan = Plan(cells_of(experiments, runs), records, device, workers)
    if dry_run:
        _list(plan, json)
        return
    _announce(plan, json)
    failed = _run(plan, json, quiet) if plan.missing else []
    if not json:
        for table in make_tables(experiments, records, runs):
            _show(table)
    for experiment in experiments:
        if experiment.name in FIGURES:
            files = draw(experiment.name, records, figures, runs)
            if not json:
                where = ", ".join(map(str, files)) or "not drawn, because cells are missing"
                say(f"{experiment.name}: {where}")
    if page_path is not None:
        write_text(page_path, render_page(records, runs))
    if failed:
        lines = "\n".join(f"  {f.cell}: {f.error}" for f in failed)
        say(f"{len(failed)} of {len(plan.missing)} cells failed; run again to retry:", errors)
        say(lines, errors)
        raise typer.Exit(1)


@dataclass
class Plan:
    """The cells of some experiments, and which of them have to be run."""

    cells: list[Cell]
    records: Records
    device: str
    requested_workers: int | None

    def __post_init__(self) -> None:
        target = resolve_device(self.device)
        self.gpu = target.type == "cuda"
        self.workers = self.requested_workers or default_num_workers(target)
        self.missing = missing_cells(self.cells, self.records)
        self.missing_keys = {cell.key for cell in self.missing}

    def seconds(self, cell: Cell) -> float:
        """Estimated time of a cell; timed cells run one at a time, others in parallel."""
        return estimate_seconds(cell, self.records, self.gpu) / (1 if cell.timed else self.workers)


def _select(what: list[str] | None, only: str | None) -> list[Experiment]:
    """The requested experiments; ``all`` excludes ogbn-arxiv if it is not available."""
    selected = select_experiments(what or ["all"])
    if only is not None:
        some = select_experiments(list(split_list(only)))
        selected = [e for e in selected if e in some]
    if not selected:
        raise InputError(f"no experiment selected; choose from: all, {NAMES}")
    arxiv = EXPERIMENTS["arxiv"]
    requested = "arxiv" in (what or []) or "arxiv" in (only or "")
    if arxiv in selected and not requested and not DATASETS["ogbn-arxiv"].available():
        say("ogbn-arxiv is not available and skipped; see dcgst reproduce arxiv.", errors)
        selected.remove(arxiv)
    return selected


def _announce(plan: Plan, json: bool) -> None:
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
    if plan.missing:
        seconds = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"{len(plan.missing)} cells to run, {plan.workers} in parallel, about "
            f"{_time(seconds)}.",
            errors,
        )


def _run(plan: Plan, json: bool, quiet: bool) -> list[CellResult]:
    """Run the missing cells with a progress bar; returns those that failed."""
    estimates = {cell.key: plan.seconds(cell) for cell in plan.missing}
    count, completed = 0, 0.0
    with progress("reproduce", sum(estimates.values()), quiet or json) as bar:

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


def _list(plan: Plan, json: bool) -> None:
    """List all cells with their estimated time."""
    for cell in plan.cells:
        todo = cell.key in plan.missing_keys
        seconds = estimate_seconds(cell, plan.records, plan.gpu) if todo else 0.0
        if json:
            print_json({"cell": str(cell), "done": not todo, "seconds": round(seconds, 1)})
        else:
            say(f"{cell}: {f'about {_time(seconds)}' if todo else 'done'}")
    if not json:
        total = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"\n{len(plan.missing)} of {len(plan.cells)} cells to run, about {_time(total)} with "
            f"{plan.workers} in parallel."
        )


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show(table: Table) -> None:
    shown = RichTable(title=table.title, box=None, title_justify="left")
    for header in table.headers:
        shown.add_column(header, overflow="fold")
    for row in table.rows:
        shown.add_row(*(re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/bold]", cell) for cell in row))
    console.print(shown)
    for note in table.notes:
        say(note)
    console.print()
