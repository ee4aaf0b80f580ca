"""``dcgst reproduce``: the paper's tables and figures with our results and the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.bench.experiments import EXPERIMENTS, Experiment, cells_of, select_experiments
from dcgst.bench.figures import FIGURES, draw, import_matplotlib
from dcgst.bench.grid import (
    estimate_seconds,
)
from dcgst.bench.pages import make_tables, render_page
from dcgst.bench.records import Records
from dcgst.cli.grid import (
    Plan,
    announce,
    describe_time,
    report_failures,
    run_missing,
    show_table,
)
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    RayOption,
    check_file,
    check_folder,
    errors,
    print_json,
    say,
)
from dcgst.cli.settings import split_list
from dcgst.datasets import DATASETS
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
    ray: RayOption = None,
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
    plan = Plan(cells_of(experiments, runs), records, device, workers, ray)
    if dry_run:
        _list(plan, json)
        return
    announce(plan, json)
    failed = run_missing(plan, "reproduce", json, quiet) if plan.missing else []
    if not json:
        for table in make_tables(experiments, records, runs):
            show_table(table)
    for experiment in experiments:
        if experiment.name in FIGURES:
            files = draw(experiment.name, records, figures, runs)
            if not json:
                where = ", ".join(map(str, files)) or "not drawn, because cells are missing"
                say(f"{experiment.name}: {where}")
    if page_path is not None:
        write_text(page_path, render_page(records, runs))
    report_failures(failed, plan)


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


def _list(plan: Plan, json: bool) -> None:
    """List all cells with their estimated time."""
    for cell in plan.cells:
        todo = cell.key in plan.missing_keys
        seconds = estimate_seconds(cell, plan.records, plan.gpu) if todo else 0.0
        if json:
            print_json({"cell": str(cell), "done": not todo, "seconds": round(seconds, 1)})
        else:
            say(f"{cell}: {f'about {describe_time(seconds)}' if todo else 'done'}")
    if not json:
        total = sum(plan.seconds(cell) for cell in plan.missing)
        say(
            f"\n{len(plan.missing)} of {len(plan.cells)} cells to run, about "
            f"{describe_time(total)} with {plan.workers} in parallel."
        )
