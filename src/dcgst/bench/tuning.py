"""Search for settings: the same number of trials for every method, never on reported runs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcgst.bench.protocol import Labels
from dcgst.datasets import load
from dcgst.errors import InputError, unknown_name
from dcgst.files import append_line, write_text
from dcgst.methods import method
from dcgst.train.executors import open_executor
from dcgst.train.random import Purpose, derive

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study

NUM_REPORTED_RUNS = 10
"""Runs 0 to 9 are reported. Tuning uses later runs."""

RANDOM_TRIALS = 8
"""Trials with random settings, after which the sampler models the good ones."""


@dataclass(frozen=True)
class Range:
    """An interval of numbers, sampled on a logarithmic scale if ``log`` is true."""

    low: float
    high: float
    log: bool = True


Settings = dict[str, Any]

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
        "class_balance": ("none", "uniform", "balanced"),
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
    "class_balance": ("none", "uniform", "balanced"),
    "ner_reduction": ("sum", "mean", "relative"),
    "representation": ("hidden", "softmax", "propagated"),
    "student_labels": ("last", "shift"),
    "hidden": (32, 64, 128),
    "dropout": (0.2, 0.5, 0.8),
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

    @property
    def space(self) -> Space:
        """The settings that are searched."""
        return space_of(self.method, self.preset)

    def preset_settings(self) -> Settings:
        """The searched settings in the preset, which are the first trial."""
        preset = method(self.method, self.preset).get_params()
        return {name: preset[name] for name in self.space}

    def count_right(self, settings: Settings, labels: Labels) -> tuple[int, int]:
        """Fit the runs of one label rate; count validation nodes predicted correctly, and all."""
        graph = load(self.dataset)
        split = labels.sample(graph)
        model = method(self.method, self.preset, **settings, device=self.device)
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


@dataclass(frozen=True)
class Trial:
    """Settings and their accuracy on the validation nodes, in percent."""

    settings: Settings
    score: float


Trials = dict[int, Trial]
"""Finished trials by number."""


def study_of(search: Search, trials: Mapping[int, Trial], seed: int = 0) -> Study:
    """The trials as a study of Optuna.

    Its sampler is the tree-structured Parzen estimator (TPE; Bergstra et al., NeurIPS 2011), a
    Bayesian search as in the paper.
    """
    optuna = import_optuna()
    distributions = distributions_of(search.space)
    sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed)
    study: Study = optuna.create_study(direction="maximize", sampler=sampler)
    for _, trial in sorted(trials.items()):
        study.add_trial(
            optuna.trial.create_trial(
                params=trial.settings, distributions=distributions, value=trial.score
            )
        )
    return study


def import_optuna() -> Any:
    """Optuna, which prints warnings only."""
    try:
        import optuna
    except ImportError as error:
        raise InputError("a search needs Optuna: pip install 'dcgst[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """A search space as distributions of Optuna."""
    optuna = import_optuna()
    found: dict[str, BaseDistribution] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            found[name] = optuna.distributions.FloatDistribution(
                values.low, values.high, log=values.log
            )
        else:
            found[name] = optuna.distributions.CategoricalDistribution(values)
    return found


def suggest(search: Search, number: int, finished: Mapping[int, Trial]) -> Settings:
    """Settings of a trial: those of the preset, or what the finished trials suggest.

    Args:
        search: the search.
        number: of the trial.
        finished: trials to learn from.
    """
    if number == 0:
        return search.preset_settings()
    study = study_of(search, finished, seed=derive(number, Purpose.TUNING) % 2**32)
    return dict(study.ask(distributions_of(search.space)).params)


def tune(
    search: Search,
    path: Path,
    trials: int,
    workers: int = 1,
    report: Callable[[int, float], None] = lambda *_: None,
    ray: str | None = None,
) -> dict[str, Any]:
    """Run the missing trials of a search. Trial 0 is the preset.

    Trials that run at the same time do not learn from each other.

    Args:
        search: Method, dataset and labels.
        path: File of trials, one per line; finished ones are not run again. The summary is written
            to the same path with suffix ``.json``.
        trials: Total number of trials, earlier ones included.
        workers: Trials that run in parallel.
        report: Called with the number of finished trials and the score of the last one.
        ray: Ray cluster to run on, as in :func:`open_executor`.

    Returns:
        The summary: best settings and their score, score of the preset, how much each setting
        mattered, and all trials.
    """
    search.check()
    finished = read_trials(path, search)
    missing = [number for number in range(trials) if number not in finished]
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        executor = None
        if ray is not None or (workers > 1 and len(missing) * len(search.labels) > 1):
            executor = stack.enter_context(open_executor(workers, ray))
            stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        for first in range(0, len(missing), workers):
            batch = missing[first : first + workers]
            settings = {number: suggest(search, number, finished) for number in batch}
            for number, score in _scores(search, settings, executor):
                finished[number] = Trial(settings[number], round(score, 2))
                line = {"trial": number, **vars(finished[number])}
                append_line(path, json.dumps(line))
                report(len(finished), score)
    summary = summarize(search, {number: finished[number] for number in range(trials)})
    write_text(path.with_suffix(".json"), json.dumps(summary, indent=1) + "\n")
    return summary


def _scores(
    search: Search, settings: Mapping[int, Settings], executor: Any
) -> Iterator[tuple[int, float]]:
    """Accuracy on the validation nodes of all runs and rates, in percent, as trials finish."""
    counts: dict[int, list[tuple[int, int]]] = {number: [] for number in settings}
    for number, count in _counts(search, settings, executor):
        counts[number].append(count)
        if len(counts[number]) == len(search.labels):
            right, total = np.sum(counts[number], axis=0)
            yield number, 100 * right / total


def _counts(
    search: Search, settings: Mapping[int, Settings], executor: Any
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Counts of every trial at every label rate as they finish."""
    tasks = [(number, own, labels) for number, own in settings.items() for labels in search.labels]
    if executor is None:
        yield from ((number, search.count_right(own, labels)) for number, own, labels in tasks)
        return
    pending = {executor.submit(search.count_right, *task[1:]): task[0] for task in tasks}
    for future in as_completed(pending):
        yield pending[future], future.result()


def read_trials(path: Path, search: Search) -> Trials:
    """Finished trials by number.

    Lines whose writing was interrupted, and trials of another search space, are ignored.
    """
    found: Trials = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            stored = json.loads(line)
            settings, score = dict(stored["settings"]), float(stored["score"])
            if is_in_space(settings, search.space):
                found[int(stored["trial"])] = Trial(settings, score)
        except (json.JSONDecodeError, KeyError, TypeError, ValueError):
            continue
    return found


def is_in_space(settings: Settings, space: Space) -> bool:
    """Whether settings have the names and values of a search space."""
    return settings.keys() == space.keys() and all(
        values.low <= settings[name] <= values.high
        if isinstance(values, Range)
        else settings[name] in values
        for name, values in space.items()
    )


def importances(search: Search, trials: Mapping[int, Trial]) -> dict[str, float]:
    """Share of the variance of the score that each setting explains (fANOVA), largest first.

    (Hutter et al., ICML 2014.) Empty with too few trials, or if all have the same score.
    """
    if len({trial.score for trial in trials.values()}) < 2:
        return {}
    study = study_of(search, trials)
    evaluator = import_optuna().importance.FanovaImportanceEvaluator(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental
        found = import_optuna().importance.get_param_importances(study, evaluator=evaluator)
    return {name: round(float(share), 3) for name, share in found.items()}


def summarize(search: Search, trials: Trials) -> dict[str, Any]:
    """The result of a search; the earliest of equally good trials is the best."""
    best = max(trials, key=lambda number: (trials[number].score, -number))
    return {
        "method": search.method,
        "preset": search.preset,
        "dataset": search.dataset,
        "labels": [vars(labels) for labels in search.labels],
        "objective": "accuracy on the validation nodes of all runs",
        "best": vars(trials[best]),
        "preset_score": trials[0].score,
        "importances": importances(search, trials),
        "trials": [vars(trial) for _, trial in sorted(trials.items())],
    }


def labels_by_rate(labels: Labels, rates: tuple[float, ...]) -> tuple[Labels, ...]:
    """The same label sampling for several rates; without rates, as it is."""
    return tuple(replace(labels, rate=rate) for rate in rates) or (labels,)
