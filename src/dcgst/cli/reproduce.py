"""``dcgst reproduce``: the paper's tables and figures, ours beside the published."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from dcgst.bench.cells import Cell
from dcgst.bench.experiments import EXPERIMENTS, Experiment, cells_of, chosen
from dcgst.bench.figures import FIGURES, draw, import_matplotlib
from dcgst.bench.grid import Finished, estimate, missing, run_grid, workers_for
from dcgst.bench.pages import page, tables
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
)
from dcgst.datasets import CATALOGUE
from dcgst.errors import InputError
from dcgst.methods.base import device_of

NAMES = ", ".join(EXPERIMENTS)


def reproduce(
    what: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {NAMES}; or all.", show_default=False)
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="The same, comma-separated; of those named, if any.", show_default=False),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each cell; the paper has 10.")] = 10,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells at once.  [default: one per core]")
    ] = None,
    results: Annotated[
        Path, typer.Option(help="File of records: what is in it is not run again.")
    ] = Path("reproduction/records.jsonl"),
    figures: Annotated[Path, typer.Option(help="Folder for the figures, as SVG and PNG.")] = Path(
        "reproduction/figures"
    ),
    page_path: Annotated[
        Path | None, typer.Option("--page", help="Also write all tables as a page in Markdown.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be run, and for how long.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the paper's experiments and show ours beside the published figures."""
    experiments = _chosen(what, only)
    records = Records(results)
    check_file(results)
    check_folder(figures)
    if page_path is not None:
        check_file(page_path)
    if any(e.name in FIGURES for e in experiments):
        import_matplotlib()
    cells = cells_of(experiments, runs)
    todo = missing(cells, records)
    if dry_run:
        _list(cells, records, device, workers, json)
        return
    _begin(cells, todo, records, device, workers, json)
    failed = _run(todo, records, device, workers, json, quiet) if todo else []
    if not json:
        for table in tables(experiments, records, runs):
            _show(table)
    for experiment in experiments:
        if experiment.name in FIGURES:
            written = draw(experiment.name, records, figures, runs)
            if not json:
                _tell(experiment.name, written)
    if page_path is not None:
        part = page_path.with_suffix(".part")
        part.write_text(page(records, runs), encoding="utf-8")
        part.replace(page_path)
    if failed:
        lines = "\n".join(f"  {f.cell}: {f.error}" for f in failed)
        errors.print(f"{len(failed)} of {len(todo)} cells failed; run again to retry:\n{lines}")
        raise typer.Exit(1)


def _chosen(what: list[str] | None, only: str | None) -> list[Experiment]:
    """What is asked for; of all, without ogbn-arxiv where it is not here."""
    named = chosen(what or ["all"])
    if only is not None:
        some = chosen([name.strip() for name in only.split(",") if name.strip()])
        named = [e for e in named if e in some]
    if not named:
        raise InputError(f"nothing is asked for; choose of: all, {NAMES}")
    large = EXPERIMENTS["arxiv"]
    by_name = "arxiv" in (what or []) or "arxiv" in (only or "")
    if large in named and not by_name and not CATALOGUE["ogbn-arxiv"].present("ogbn-arxiv"):
        errors.print("Without ogbn-arxiv, which is not here; dcgst reproduce arxiv says how.")
        named.remove(large)
    return named


def _begin(
    cells: list[Cell],
    todo: list[Cell],
    records: Records,
    device: str,
    workers: int | None,
    json: bool,
) -> None:
    """Say how much is there already and how much is to be run; for machines, what is there."""
    waiting = {cell.key for cell in todo}
    done = [records.by_key[cell.key] for cell in cells if cell.key not in waiting]
    if json:
        for record in done:
            print_json(record)
        return
    if done:
        where = sorted({str(record.get("device")) for record in done})
        errors.print(f"{len(done)} of {len(cells)} cells from {records.path} ({', '.join(where)}).")
    if todo:
        target = device_of(device)
        count = workers or workers_for(target)
        seconds = _total(todo, records, target.type == "cuda", count)
        errors.print(f"{len(todo)} cells to run, {count} at once, about {_time(seconds)}.")


def _total(todo: list[Cell], records: Records, gpu: bool, workers: int) -> float:
    """Seconds that cells will take; those that are timed run one by one."""
    return sum(estimate(c, records, gpu) / (1 if c.timed else workers) for c in todo)


def _run(
    todo: list[Cell],
    records: Records,
    device: str,
    workers: int | None,
    json: bool,
    quiet: bool,
) -> list[Finished]:
    """Run the cells with a bar that knows how much is left; the failed ones come back."""
    gpu = device_of(device).type == "cuda"
    ahead = {cell.key: estimate(cell, records, gpu) for cell in todo}
    total = sum(ahead.values())
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=errors,
        transient=True,
        disable=quiet or json or not errors.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=len(todo), left="")
        begun = bar.get_time()

        def report(finished: Finished) -> None:
            del ahead[finished.cell.key]
            if finished.record is not None and json:
                print_json(finished.record)
            rest = sum(ahead.values())
            left = (bar.get_time() - begun) * rest / max(total - rest, 1e-9)
            words = f"about {_time(left)} left"
            bar.update(task, advance=1, description=f"done: {finished.cell}", left=words)

        try:
            done = run_grid(todo, records, device=device, workers=workers, report=report)
        except KeyboardInterrupt:
            kept = len(todo) - len(missing(todo, records))
            errors.print(
                f"Interrupted; {kept} of {len(todo)} cells are in {records.path}, and the same "
                "command goes on."
            )
            raise typer.Exit(130) from None
    return [finished for finished in done if finished.record is None]


def _list(
    cells: list[Cell], records: Records, device: str, workers: int | None, json: bool
) -> None:
    """What would be run, and for how long."""
    target = device_of(device)
    left = missing(cells, records)
    waiting = {cell.key for cell in left}
    for cell in cells:
        todo = cell.key in waiting
        seconds = estimate(cell, records, target.type == "cuda") if todo else 0.0
        if json:
            print_json({"cell": str(cell), "done": not todo, "seconds": round(seconds, 1)})
        else:
            state = f"about {_time(seconds)}" if todo else "done"
            console.print(f"{cell}: {state}", highlight=False)
    if not json:
        count = workers or workers_for(target)
        total = _total(left, records, target.type == "cuda", count)
        console.print(
            f"\n{len(left)} of {len(cells)} cells to run, about {_time(total)} with {count} at "
            "once."
        )


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _tell(name: str, written: list[Path]) -> None:
    where = ", ".join(map(str, written)) or "not drawn, since cells are missing"
    console.print(f"{name}: {where}", highlight=False)


def _show(table: Table) -> None:
    shown = RichTable(title=table.title, box=None, title_justify="left")
    for header in table.headers:
        shown.add_column(header, overflow="fold")
    for row in table.rows:
        shown.add_row(*(re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/bold]", cell) for cell in row))
    console.print(shown)
    for note in table.notes:
        console.print(note, highlight=False)
    console.print()
