"""``dcgst tune``: choose settings on runs that are never reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import SPACES, Search, tune
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    check_file,
    console,
    errors,
    print_json,
)
from dcgst.datasets import load


def tune_command(
    method: Annotated[str, typer.Option(help=f"One of {', '.join(SPACES)}.")] = "dcgst",
    dataset: Annotated[str, typer.Option(help="The data set.")] = "digits",
    rate: Annotated[float | None, typer.Option(help="Labels as a share of all nodes.")] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Labels per class, instead of a rate.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="uniform, degree, ppr-s or released.")] = "ppr-s",
    runs: Annotated[int, typer.Option(min=1, help="Runs that each trial is tried on.")] = 5,
    first_run: Annotated[int, typer.Option(help="Number of the first; from 10 on.")] = 10,
    preset: Annotated[str, typer.Option(help="Where other settings come from.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="Trials of the study in all.")] = 20,
    studies: Annotated[
        Path, typer.Option(help="Folder of the studies; one that is there goes on.")
    ] = Path("results/studies"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for better settings of a method, by nodes held out from the pool."""
    if rate is None and per_class is None:
        per_class = 5
    search = Search(method, Labels(sampler, rate, per_class, runs, first_run), preset, device)
    search.check()
    graph = load(dataset)
    path = studies / graph.name / search.file_name
    check_file(path)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=quiet or json or not errors.is_terminal,
    )
    with bar:
        task = bar.add_task(f"{method} on {graph.name}", total=trials)

        def report(number: int, score: float) -> None:
            bar.update(task, completed=number + 1, description=f"{method}: last {score:.1f} %")

        outcome = tune(search, graph, path, trials, report)
    if json:
        print_json(outcome)
        return
    best, usual = outcome["best"], outcome["preset_score"]
    console.print(
        f"{len(outcome['trials'])} trials of {method} on {graph.name}, runs {first_run} to "
        f"{first_run + runs - 1}.\nBest {best['score']:.1f} % on held-out nodes; {preset} has "
        f"{usual:.1f} %.",
        highlight=False,
    )
    settings = " ".join(f"--set {key}={value}" for key, value in best["settings"].items())
    amount = f"--rate {rate}" if rate is not None else f"--per-class {per_class}"
    console.print(
        f"dcgst bench --dataset {dataset} --method {method} --preset {preset} {amount} "
        f"--sampler {sampler} {settings}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"\nAll trials: {path.with_suffix('.json')}", highlight=False)
