"""``dcgst tune``: search for settings on runs that are never reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import Search, tune
from dcgst.cli.output import JsonOption, QuietOption, check_file, print_json, progress, say
from dcgst.datasets import load


def command(
    method: Annotated[str, typer.Option(help="The method, such as st or dcgst.")] = "dcgst",
    dataset: Annotated[str, typer.Option(help="Dataset or path of a graph.")] = "digits",
    rate: Annotated[float | None, typer.Option(help="Labels as a share of all nodes.")] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Labels per class, instead of a rate.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="uniform, degree, ppr-s or released.")] = "ppr-s",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each trial.")] = 5,
    first_run: Annotated[int, typer.Option(help="Number of the first run, at least 10.")] = 10,
    preset: Annotated[str, typer.Option(help="Settings that are not searched.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials.")] = 20,
    studies: Annotated[
        Path, typer.Option(help="Folder of studies; an existing study is continued.")
    ] = Path("results/studies"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for better settings of a method.

    Trials are compared by accuracy on nodes held out from the pool.
    """
    if rate is None and per_class is None:
        per_class = 5
    search = Search(method, Labels(sampler, rate, per_class, runs, first_run), preset, device)
    search.check()
    graph = load(dataset)
    path = studies / graph.name / search.file_name
    check_file(path)
    with progress(f"{method} on {graph.name}", trials, quiet or json) as bar:

        def report(number: int, score: float) -> None:
            bar.describe(f"trial {number + 1}, {score:.1f} %")
            bar.advance_to(number + 1)

        outcome = tune(search, graph, path, trials, report)
    if json:
        print_json(outcome)
        return
    best = outcome["best"]
    say(
        f"{len(outcome['trials'])} trials of {method} on {graph.name}, runs {first_run} to "
        f"{first_run + runs - 1}.\nBest: {best['score']:.1f} % on held-out nodes; {preset}: "
        f"{outcome['preset_score']:.1f} %."
    )
    settings = " ".join(f"--set {key}={value}" for key, value in best["settings"].items())
    amount = f"--rate {rate}" if rate is not None else f"--per-class {per_class}"
    say(
        f"dcgst bench --dataset {dataset} --method {method} --preset {preset} {amount} "
        f"--sampler {sampler} {settings}"
    )
    say(f"\nAll trials: {path.with_suffix('.json')}")
