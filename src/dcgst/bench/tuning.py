"""Hyperparameter search: the same number of trials for every method, never on reported runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcgst.bench.protocol import Labels
from dcgst.engine.random import Purpose, derive
from dcgst.errors import InputError, unknown_name
from dcgst.evaluate.metrics import accuracy
from dcgst.files import write_text
from dcgst.graph import Graph
from dcgst.methods import method
from dcgst.splits import Split

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

NUM_REPORTED_RUNS = 10
"""Runs 0 to 9 are reported. Tuning uses later runs."""

HELD_OUT_FRACTION = 0.2
"""Fraction of the pool that is held out to score the trials."""


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


@dataclass(frozen=True)
class Search:
    """A hyperparameter search for one method.

    Attributes:
        method: Name of the method.
        labels: Label sampling. The runs must not be among the reported ones.
        preset: Preset of all settings outside the search space.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    """

    method: str
    labels: Labels
    preset: str = "default"
    device: str = "auto"

    def check(self) -> None:
        """Check the search.

        Raises:
            InputError: If the method has no search space, or if reported runs are included.
        """
        if self.method not in SPACES:
            raise unknown_name("method to tune", self.method, SPACES)
        if self.labels.first_run < NUM_REPORTED_RUNS:
            raise InputError(
                f"first_run must be at least {NUM_REPORTED_RUNS} for tuning, got "
                f"{self.labels.first_run}: runs 0 to {NUM_REPORTED_RUNS - 1} are the reported runs"
            )

    @property
    def preset_settings(self) -> dict[str, Any]:
        """Values of the preset for the settings in the search space."""
        settings = method(self.method, self.preset).get_params()
        return {name: settings[name] for name in SPACES[self.method]}

    @property
    def file_name(self) -> str:
        """Name of the journal file, unique for each search on the same dataset."""
        labels = self.labels
        rate = f"{100 * labels.rate:g}-percent" if labels.rate else f"{labels.per_class}-per-class"
        runs = f"runs-{labels.first_run}-{labels.first_run + labels.runs - 1}"
        preset = self.preset.replace("/", "-")
        return f"{self.method}-{preset}-{labels.sampler}-{rate}-{runs}.journal"

    def score(self, graph: Graph, split: Split, settings: dict[str, Any]) -> float:
        """Fit the method and return the mean accuracy on held-out pool nodes, in percent."""
        visible, held_out = hold_out(split, HELD_OUT_FRACTION)
        model = method(self.method, self.preset, **settings, device=self.device)
        results = model.fit_runs(graph, visible)
        accuracies = [
            accuracy(result.labels, graph.labels, mask)
            for result, mask in zip(results, held_out & (graph.labels >= 0), strict=True)
        ]
        return 100 * float(np.mean(accuracies))


def hold_out(split: Split, fraction: float) -> tuple[Split, NDArray[np.bool_]]:
    """Remove a random fraction of the pool of each run.

    Args:
        split: Split of several runs.
        fraction: Fraction of the pool to remove.

    Returns:
        The split without the removed nodes, and a mask of the removed nodes, ``(R, n)``.
    """
    held_out = np.zeros_like(split.pool)
    for i, run in enumerate(split.runs):
        pool = np.flatnonzero(split.pool[i])
        rng = np.random.default_rng(derive(run, Purpose.HELD_OUT_POOL))
        held_out[i, rng.permutation(pool)[: round(fraction * pool.size)]] = True
    return replace(split, pool=split.pool & ~held_out), held_out


def tune(
    search: Search,
    graph: Graph,
    path: Path,
    trials: int,
    report: Callable[[int, float], None] = lambda *_: None,
) -> dict[str, Any]:
    """Run a study until it has the requested number of trials. The first trial is the preset.

    Args:
        search: Method and labels to tune on.
        graph: Graph with true labels.
        path: Journal file of the study. An existing study continues. The summary is written to
            the same path with suffix ``.json``.
        trials: Total number of trials, earlier ones included.
        report: Called with the number and the score of each finished trial.

    Returns:
        The summary: best settings and their score, score of the preset, and all trials.
    """
    search.check()
    study = _open_study(search, graph.name, path)
    split = search.labels.sample(graph)
    num_finished = len(_finished_trials(study))
    if _preset_trial(search, study) is None:
        study.enqueue_trial(search.preset_settings)

    def objective(trial: Trial) -> float:
        return search.score(graph, split, suggest_settings(trial, SPACES[search.method]))

    study.optimize(
        objective,
        n_trials=max(0, trials - num_finished),
        callbacks=[lambda _, trial: report(trial.number, float(trial.values[0]))],
    )
    summary = _summarize(search, graph.name, study)
    write_text(path.with_suffix(".json"), json.dumps(summary, indent=1) + "\n")
    return summary


def suggest_settings(trial: Trial, space: Space) -> dict[str, Any]:
    """Let the trial suggest a value for each setting of the search space."""
    settings: dict[str, Any] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            settings[name] = trial.suggest_float(name, values.low, values.high, log=values.log)
        else:
            settings[name] = trial.suggest_categorical(name, values)
    return settings


def _open_study(search: Search, dataset: str, path: Path) -> Study:
    """Create a study, or load it if its journal exists."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise InputError("tuning needs optuna: pip install 'dcgst[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path.parent.mkdir(parents=True, exist_ok=True)
    return optuna.create_study(
        study_name=f"{search.method} {search.preset} {dataset} {search.labels}",
        storage=JournalStorage(JournalFileBackend(str(path))),
        sampler=optuna.samplers.TPESampler(seed=_num_lines(path)),
        direction="maximize",
        load_if_exists=True,
    )


def _num_lines(path: Path) -> int:
    """Count the lines of a journal: a seed that differs each time a study continues."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _finished_trials(study: Study) -> list[FrozenTrial]:
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _preset_trial(search: Search, study: Study) -> FrozenTrial | None:
    """Return the finished trial with the settings of the preset, or None."""
    finished = _finished_trials(study)
    return next((trial for trial in finished if trial.params == search.preset_settings), None)


def _summarize(search: Search, dataset: str, study: Study) -> dict[str, Any]:
    preset_trial = _preset_trial(search, study)
    assert preset_trial is not None  # the study begins with it
    return {
        "method": search.method,
        "preset": search.preset,
        "dataset": dataset,
        "labels": vars(search.labels),
        "objective": f"accuracy on {HELD_OUT_FRACTION:.0%} of the pool, held out",
        "best": {"settings": study.best_params, "score": round(study.best_value, 2)},
        "preset_score": _score(preset_trial),
        "trials": [
            {"settings": trial.params, "score": _score(trial)} for trial in _finished_trials(study)
        ],
    }


def _score(trial: FrozenTrial) -> float:
    return round(float(trial.values[0]), 2)
