"""Choosing settings: the same number of trials for every method, never on the reported runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcgst.bench.protocol import Labels
from dcgst.engine.random import derive
from dcgst.errors import InputError, unknown
from dcgst.evaluate.metrics import accuracy
from dcgst.graph import Graph
from dcgst.methods import method
from dcgst.splits import Split

if TYPE_CHECKING:
    from optuna import Study, Trial

REPORTED = 10
"""Runs 0 to 9 are reported; settings are chosen on later ones."""

HELD_OUT = 0.2
"""Share of the pool that is held out as a second validation set."""


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, by default on a logarithmic scale."""

    low: float
    high: float
    log: bool = True


Space = dict[str, Range | tuple[Any, ...]]
"""What may be tried: a range, or a list of values."""

NETWORK: Space = {"dropout": (0.2, 0.5, 0.8), "weight_decay": Range(1e-5, 1e-2)}
ROUNDS: Space = {"stages": (1, 2, 3, 5, 8)}
SPACES: dict[str, Space] = {
    "gcn": NETWORK,
    "st": {**NETWORK, **ROUNDS},
    "m3s": {**NETWORK, **ROUNDS, "clusters": (50, 100, 200, 400)},
    "drgst": {
        **NETWORK,
        "stages": (1, 2, 3, 5),
        "threshold": Range(0.3, 0.95, log=False),
        "beta": (1 / 3, 0.5, 2 / 3, 1.0),
        "gain": ("dropout", "dropedge"),
    },
    "srgnn": {**NETWORK, "cmd_weight": Range(0.03, 10.0), "weighting": ("none", "kmm")},
    "eerm": {**NETWORK, "risk_weight": Range(0.1, 10.0), "environments": (3, 5, 10)},
    "srgnn_st": {**NETWORK, **ROUNDS, "cmd_weight": Range(0.03, 10.0)},
    "dcgst": {
        **NETWORK,
        "ner_weight": Range(0.01, 1.0),
        "growth": (0.3, 0.5, 1.0),
        "stage_epochs": (10, 20, 40),
        "quota": ("uniform", "predicted", "balanced"),
    },
    "cs": {
        **NETWORK,
        "correct_alpha": (0.5, 0.8, 0.9, 0.99),
        "smooth_alpha": (0.5, 0.8, 0.9, 0.99),
    },
    "lp": {"alpha": (0.5, 0.8, 0.9, 0.95, 0.99)},
}


@dataclass(frozen=True)
class Search:
    """What is to be tuned, on which labels.

    Attributes:
        method: its name.
        labels: the runs to choose on; none of the reported ones.
        preset: where the settings that are not tried come from.
        device: where to compute.
    """

    method: str
    labels: Labels
    preset: str = "default"
    device: str = "auto"

    def check(self) -> None:
        """Raise if the method has no space, or the runs are among those that are reported."""
        if self.method not in SPACES:
            raise unknown("method to tune", self.method, SPACES)
        if self.labels.first_run < REPORTED:
            raise InputError(
                f"settings are chosen on runs from {REPORTED} on, got {self.labels.first_run}: "
                f"runs 0 to {REPORTED - 1} are the ones reported"
            )

    @property
    def preset_settings(self) -> dict[str, Any]:
        """What the preset has of the settings that are tried."""
        settings = method(self.method, self.preset).get_params()
        return {name: settings[name] for name in SPACES[self.method]}

    @property
    def file_name(self) -> str:
        """What tells this study's journal from every other's, but for the data set."""
        labels = self.labels
        rate = f"{100 * labels.rate:g}-percent" if labels.rate else f"{labels.per_class}-per-class"
        runs = f"runs-{labels.first_run}-{labels.first_run + labels.runs - 1}"
        preset = self.preset.replace("/", "-")
        return f"{self.method}-{preset}-{labels.sampler}-{rate}-{runs}.journal"

    def score(self, graph: Graph, split: Split, settings: dict[str, Any]) -> float:
        """Mean accuracy on nodes held out from the pool, in percent."""
        seen, held_out = hold_out(split, HELD_OUT)
        model = method(self.method, self.preset, **settings, device=self.device)
        results = model.fit_runs(graph, seen)
        hits = [
            accuracy(result.labels, graph.labels, mask)
            for result, mask in zip(results, held_out & (graph.labels >= 0), strict=True)
        ]
        return 100 * float(np.mean(hits))


def hold_out(split: Split, share: float) -> tuple[Split, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The split with a random share of each run's pool taken out, and what was, ``(R, n)``."""
    taken = np.zeros_like(split.pool)
    for run, number in enumerate(split.runs):
        pool = np.flatnonzero(split.pool[run])
        rng = np.random.default_rng(derive(number, 1))
        taken[run, rng.permutation(pool)[: round(share * pool.size)]] = True
    return replace(split, pool=split.pool & ~taken), taken


def tune(
    search: Search,
    graph: Graph,
    path: Path,
    trials: int,
    report: Callable[[int, float], None] = lambda *_: None,
) -> dict[str, Any]:
    """Try settings until the study has so many trials; the first are the preset's own.

    The study lies in a journal at ``path`` and goes on where it stopped. Beside it, as JSON, its
    outcome.

    Returns:
        What was found: the best settings, their score and that of the preset, every trial.
    """
    search.check()
    study = _study(search, graph.name, path)
    split = search.labels.sample(graph)
    finished = len(study.get_trials(deepcopy=False, states=_complete()))
    if _preset_trial(search, study) is None:
        study.enqueue_trial(search.preset_settings)

    def objective(trial: Trial) -> float:
        return search.score(graph, split, suggest(trial, SPACES[search.method]))

    study.optimize(
        objective,
        n_trials=max(0, trials - finished),
        callbacks=[lambda _, trial: report(trial.number, float(trial.values[0]))],
    )
    outcome = _outcome(search, graph.name, study)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path.with_suffix(".json"))
    return outcome


def suggest(trial: Trial, space: Space) -> dict[str, Any]:
    """A value for every setting of the space."""
    found: dict[str, Any] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            found[name] = trial.suggest_float(name, values.low, values.high, log=values.log)
        else:
            found[name] = trial.suggest_categorical(name, values)
    return found


def _study(search: Search, dataset: str, path: Path) -> Study:
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
        sampler=optuna.samplers.TPESampler(seed=_trials_in(path)),
        direction="maximize",
        load_if_exists=True,
    )


def _trials_in(path: Path) -> int:
    """A seed that goes on where a study stopped: lines of its journal."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _preset_trial(search: Search, study: Study) -> Any:
    """The finished trial of the preset's own settings, if there is one."""
    done = study.get_trials(deepcopy=False, states=_complete())
    return next((trial for trial in done if trial.params == search.preset_settings), None)


def _complete() -> Any:
    from optuna.trial import TrialState

    return (TrialState.COMPLETE,)


def _outcome(search: Search, dataset: str, study: Study) -> dict[str, Any]:
    done = study.get_trials(deepcopy=False, states=_complete())
    return {
        "method": search.method,
        "preset": search.preset,
        "dataset": dataset,
        "labels": vars(search.labels),
        "objective": f"accuracy on {HELD_OUT:.0%} of the pool, held out",
        "best": {"settings": study.best_params, "score": round(study.best_value, 2)},
        "preset_score": round(float(_preset_trial(search, study).values[0]), 2),
        "trials": [
            {"settings": trial.params, "score": round(float(trial.values[0]), 2)} for trial in done
        ],
    }
