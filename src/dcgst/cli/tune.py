"""``dcgst tune``: search for settings on runs that are never reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.bench.figures import draw_study
from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import Search, labels_by_rate, tune
from dcgst.cli.output import (
    JsonOption,
    QuietOption,
    RayOption,
    check_file,
    print_json,
    progress,
    say,
)
from dcgst.cli.settings import split_list
from dcgst.datasets import load
from dcgst.errors import InputError


def command(
    method: Annotated[str, typer.Option(help="The method, such as st or dcgst.")] = "dcgst",
    dataset: Annotated[str, typer.Option(help="Dataset or path of a graph.")] = "digits",
    rate: Annotated[
        str | None,
        typer.Option(help="Labels as a share of all nodes; comma-separated to tune on several."),
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Labels per class, instead of a rate.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="uniform, degree, ppr-s or released.")] = "ppr-s",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each trial.")] = 5,
    first_run: Annotated[int, typer.Option(help="Number of the first run, at least 10.")] = 10,
    preset: Annotated[str, typer.Option(help="Settings that are not searched.")] = "default",
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Trials to run in parallel.")] = 1,
    ray: RayOption = None,
    studies: Annotated[
        Path, typer.Option(help="Folder of studies; an existing study is continued.")
    ] = Path("results/studies"),
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw the trials, and which settings mattered.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for better settings of a method.

    The first trial is the preset, a few are random, and the others are suggested by Optuna's TPE.
    They are compared by accuracy on the validation nodes of all runs.
    """
    rates = tuple(_number(text) for text in split_list(rate))
    if not rates and per_class is None:
        per_class = 5
    labels = labels_by_rate(Labels(sampler, None, per_class, runs, first_run), rates)
    search = Search(dataset, method, labels, preset, device)
    search.check()
    graph = load(dataset)
    path = studies / graph.name / search.file_name
    check_file(path)
    with progress(f"{method} on {graph.name}", trials, quiet or json) as bar:

        def report(count: int, score: float) -> None:
            bar.describe(f"{count} trials, last {score:.1f}%")
            bar.advance_to(count)

        outcome = tune(search, path, trials, workers, report, ray)
    figures = draw_study(outcome, path.with_suffix("")) if plot else []
    if json:
        print_json(outcome)
        return
    best = outcome["best"]
    say(
        f"{len(outcome['trials'])} trials of {method} on {graph.name}, runs {first_run} to "
        f"{first_run + runs - 1}.\nBest: {best['score']:.1f}% on the validation nodes; {preset}: "
        f"{outcome['preset_score']:.1f}%."
    )
    settings = " ".join(f"--set {key}={value}" for key, value in best["settings"].items())
    amount = f"--rate {rates[0]}" if rates else f"--per-class {per_class}"
    say(
        f"dcgst bench --dataset {dataset} --method {method} --preset {preset} {amount} "
        f"--sampler {sampler} {settings}"
    )
    if outcome["importances"]:
        shares = [f"{name} {share:.0%}" for name, share in outcome["importances"].items()]
        say(f"\nShare of the variance that a setting explains: {', '.join(shares)}", wrap=True)
    say(f"\nAll trials: {path.with_suffix('.json')}")
    for figure in figures:
        say(f"Figure: {figure}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--rate must be numbers like 0.01,0.02; got {text!r}") from None
