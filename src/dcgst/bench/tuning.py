"""Search for settings: the same number of trials for every method, never on reported runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from dcgst.bench.protocol import Labels
from dcgst.datasets import load
from dcgst.engine.executors import open_pool
from dcgst.engine.random import Purpose, derive
from dcgst.errors import InputError, unknown_name
from dcgst.files import append_line, write_text
from dcgst.methods import method

NUM_REPORTED_RUNS = 10
"""Runs 0 to 9 are reported. Tuning uses later runs."""

CHANGED = 0.25
"""Share of settings that a trial changes, at least one. With few trials, most combinations of many
random settings would be worse than the preset."""


@dataclass(frozen=True)
class Range:
    """An interval of numbers, sampled on a logarithmic scale if ``log`` is true."""

    low: float
    high: float
    log: bool = True


Space = dict[str, Range | tuple[Any, ...]]
"""Search space: a range or a tuple of choices for each setting."""

NETWORK: Space = {"dropout": (0.2, 0.5, 0.8), "weight_decay": Range(1e-5, 1e-2)}
STAGES: Space = {"stages": (1, 2, 3, 5, 8)}
SPACES: dict[str, Space] = {
    "gcn": NETWORK,
    "st": {**NETWORK, **STAGES},
    "m3s": {**NETWORK, **STAGES, "clusters": (50, 100, 200, 400)},
    "drgst": {
        **NETWORK,
        "stages": (1, 2, 3, 5),
        "threshold": Range(0.3, 0.95, log=False),
        "beta": (1 / 3, 0.5, 2 / 3, 1.0),
        "gain": ("dropout", "dropedge"),
    },
    "srgnn": {**NETWORK, "cmd_weight": Range(0.03, 10.0), "weighting": ("none", "kmm")},
    "eerm": {**NETWORK, "risk_weight": Range(0.1, 10.0), "environments": (3, 5, 10)},
    "srgnn_st": {**NETWORK, **STAGES, "cmd_weight": Range(0.03, 10.0)},
    "dcgst": {
        **NETWORK,
        "ner_weight": Range(0.01, 1.0),
        "growth": (0.3, 0.5, 1.0),
        "stage_epochs": (10, 20, 40),
        "class_balance": ("uniform", "predicted", "balanced"),
    },
    "cs": {
        **NETWORK,
        "correct_alpha": (0.5, 0.8, 0.9, 0.99),
        "smooth_alpha": (0.5, 0.8, 0.9, 0.99),
    },
    "lp": {"alpha": (0.5, 0.8, 0.9, 0.95, 0.99)},
}
"""Search space of each method."""

UNSPECIFIED: Space = {
    "cmd_trains": ("predictor", "both"),
    "stage_epochs": (10, 20, 40, 100),
    "class_balance": ("none", "uniform", "predicted", "balanced"),
    "hidden": (32, 64, 128),
    "dropout": (0.2, 0.5, 0.8),
    "feature_norm": ("none", "row", "l2"),
    "edge_nodes": (100, 200, 400),
    "edge_pairs": (0, 1000, 3000),
    "accumulate": (False, True),
}
"""Details that the paper of DC-GST does not specify: search space of all its
presets but the default."""


def space_of(name: str, preset: str) -> Space:
    """The search space of a method; published settings stay as they are."""
    if name not in SPACES:
        raise unknown_name("method to tune", name, SPACES)
    return UNSPECIFIED if name == "dcgst" and preset != "default" else SPACES[name]


@dataclass(frozen=True)
class Search:
    """A search for settings of one method on one dataset.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the method.
        labels: Label sampling, once for each label rate. The runs must not be among the reported
            ones.
        preset: Preset of all settings outside the search space.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    """

    dataset: str
    method: str
    labels: tuple[Labels, ...]
    preset: str = "default"
    device: str = "auto"

    def check(self) -> None:
        """Check the search.

        Raises:
            InputError: If the method has no search space, or if reported runs are included.
        """
        space_of(self.method, self.preset)
        for labels in self.labels:
            if labels.first_run < NUM_REPORTED_RUNS:
                raise InputError(
                    f"first_run must be at least {NUM_REPORTED_RUNS} for tuning, got "
                    f"{labels.first_run}: runs 0 to {NUM_REPORTED_RUNS - 1} are the reported runs"
                )

    def settings(self, trial: int) -> dict[str, Any]:
        """The settings of a trial: those of the preset, or with some of them drawn again.

        They depend on the number of the trial only, so trials can run in any order.
        """
        space = space_of(self.method, self.preset)
        preset = method(self.method, self.preset).get_params()
        settings = {name: preset[name] for name in space}
        if trial == 0:
            return settings
        rng = np.random.default_rng(derive(trial, Purpose.TUNING))
        drawn = rng.random(len(space)) < CHANGED
        drawn[rng.integers(len(space))] = True
        for name, values in compress(space.items(), drawn):
            settings[name] = draw(values, rng, settings[name])
        return settings

    def count_right(self, trial: int, labels: Labels) -> tuple[int, int]:
        """Fit the runs of one label rate; count validation nodes predicted correctly, and all."""
        graph = load(self.dataset)
        split = labels.sample(graph)
        model = method(self.method, self.preset, **self.settings(trial), device=self.device)
        right = total = 0
        for result, val in zip(model.fit_runs(graph, split), split.val, strict=True):
            right += int((result.proba.argmax(axis=1) == graph.labels)[val].sum())
            total += int(val.sum())
        return right, total

    @property
    def file_name(self) -> str:
        """Name of the file of trials, unique for each search on the same dataset."""
        first = self.labels[0]
        amounts = "-".join(
            f"{100 * x.rate:g}" if x.rate is not None else str(x.per_class) for x in self.labels
        )
        unit = "percent" if first.rate is not None else "per-class"
        runs = f"runs-{first.first_run}-{first.first_run + first.runs - 1}"
        preset = self.preset.replace("/", "-")
        return f"{self.method}-{preset}-{first.sampler}-{amounts}-{unit}-{runs}.jsonl"


def draw(values: Range | tuple[Any, ...], rng: np.random.Generator, current: Any) -> Any:
    """Draw a value of a setting; from choices, another than the current one."""
    if isinstance(values, Range):
        if values.log:
            return float(np.exp(rng.uniform(np.log(values.low), np.log(values.high))))
        return float(rng.uniform(values.low, values.high))
    others = [value for value in values if value != current]
    return others[int(rng.integers(len(others)))]


def tune(
    search: Search,
    path: Path,
    trials: int,
    workers: int = 1,
    report: Callable[[int, float], None] = lambda *_: None,
    ray: str | None = None,
) -> dict[str, Any]:
    """Run the missing trials of a search. Trial 0 is the preset.

    Args:
        search: Method, dataset and labels.
        path: File of trials, one per line; finished ones are not run again. The summary is written
            to the same path with suffix ``.json``.
        trials: Total number of trials, earlier ones included.
        workers: Fits that run in parallel.
        report: Called with the number of finished trials and the score of the last one.
        ray: Ray cluster to run on, as in :func:`open_pool`.

    Returns:
        The summary: best settings and their score, score of the preset, and all trials.
    """
    search.check()
    scores = read_trials(path, search)
    missing = [trial for trial in range(trials) if trial not in scores]
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for trial, score in _scores(search, missing, workers, ray, stack):
            scores[trial] = round(score, 2)
            line = {"trial": trial, "settings": search.settings(trial), "score": scores[trial]}
            append_line(path, json.dumps(line))
            report(len(scores), score)
    summary = summarize(search, {trial: scores[trial] for trial in range(trials)})
    write_text(path.with_suffix(".json"), json.dumps(summary, indent=1) + "\n")
    return summary


def _scores(
    search: Search, trials: list[int], workers: int, ray: str | None, stack: ExitStack
) -> Iterator[tuple[int, float]]:
    """Accuracy on the validation nodes of all runs and rates, in percent, as trials finish."""
    counts: dict[int, list[tuple[int, int]]] = {trial: [] for trial in trials}
    for trial, count in _counts(search, trials, workers, ray, stack):
        counts[trial].append(count)
        if len(counts[trial]) == len(search.labels):
            right, total = np.sum(counts[trial], axis=0)
            yield trial, 100 * right / total


def _counts(
    search: Search, trials: list[int], workers: int, ray: str | None, stack: ExitStack
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Counts of every trial at every label rate as they finish."""
    tasks = [(trial, labels) for trial in trials for labels in search.labels]
    if ray is None and (workers == 1 or len(tasks) < 2):
        yield from ((trial, search.count_right(trial, labels)) for trial, labels in tasks)
        return
    pool = stack.enter_context(open_pool(min(workers, len(tasks)), ray))
    pending = {pool.submit(search.count_right, *task): task[0] for task in tasks}
    stack.callback(pool.shutdown, wait=False, cancel_futures=True)
    for future in as_completed(pending):
        yield pending[future], future.result()


def read_trials(path: Path, search: Search) -> dict[int, float]:
    """Scores of finished trials by number.

    Lines whose writing was interrupted, and trials of another version with other settings, are
    ignored.
    """
    scores = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found = json.loads(line)
            trial = int(found["trial"])
            if found["settings"] == json.loads(json.dumps(search.settings(trial))):
                scores[trial] = float(found["score"])
        except (json.JSONDecodeError, KeyError, TypeError, ValueError):
            continue
    return scores


def summarize(search: Search, scores: dict[int, float]) -> dict[str, Any]:
    """The result of a search; the earliest of equally good trials is the best."""
    best = max(scores, key=lambda trial: (scores[trial], -trial))
    return {
        "method": search.method,
        "preset": search.preset,
        "dataset": search.dataset,
        "labels": [vars(labels) for labels in search.labels],
        "objective": "accuracy on the validation nodes of all runs",
        "best": {"settings": search.settings(best), "score": scores[best]},
        "preset_score": scores[0],
        "trials": [
            {"settings": search.settings(trial), "score": score}
            for trial, score in sorted(scores.items())
        ],
    }


def labels_by_rate(labels: Labels, rates: tuple[float, ...]) -> tuple[Labels, ...]:
    """The same label sampling for several rates; without rates, as it is."""
    return tuple(replace(labels, rate=rate) for rate in rates) or (labels,)
