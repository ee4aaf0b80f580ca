"""One cell of an experiment: a method on a data set, some labels, several runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcgst.bench.provenance import PeakMemory, commit, device_name
from dcgst.engine.training import Callback
from dcgst.evaluate.metrics import accuracy
from dcgst.graph import Graph
from dcgst.methods import Method
from dcgst.methods.base import device_of
from dcgst.splits import Split, sample
from dcgst.version import versions


@dataclass(frozen=True)
class Labels:
    """Which labels are given, how many, and in which runs."""

    sampler: str = "released"
    rate: float | None = None
    per_class: int | None = None
    runs: int = 10
    first_run: int = 0

    def sample(self, graph: Graph) -> Split:
        return sample(
            graph,
            self.sampler,
            rate=self.rate,
            per_class=self.per_class,
            runs=self.runs,
            first_run=self.first_run,
        )


@dataclass(frozen=True)
class Record:
    """What came out of one cell; accuracies in percent, one per run."""

    dataset: str
    method: str
    backbone: str | None
    sampler: str
    rate: float | None
    per_class: int | None
    runs: int
    first_run: int
    preset: str
    accuracy: list[float]
    mean: float
    std: float
    cmd_before: float
    cmd_after: float
    seconds: float
    official: bool
    settings: dict[str, Any]
    device: str
    peak_mib: float
    commit: str | None
    versions: dict[str, str]
    stages: list[list[dict[str, float]]] | None = None
    """The history of each run, where it was asked for."""


def run_cell(
    graph: Graph,
    method: Method,
    labels: Labels,
    preset: str = "default",
    callbacks: Sequence[Callback] = (),
    *,
    stages: bool = False,
) -> Record:
    """Fit all runs and measure accuracy on the pool; the standard deviation is over the runs.

    With ``stages`` the record also tells the history of every run.
    """
    split = labels.sample(graph)
    device = device_of(method.device)
    memory = PeakMemory(device)
    start = time.perf_counter()
    results = method.fit_runs(graph, split, callbacks=callbacks)
    seconds = time.perf_counter() - start
    test = split.test(graph)
    percent = [
        100 * accuracy(result.labels, graph.labels, mask)
        for result, mask in zip(results, test, strict=True)
    ]
    return Record(
        dataset=graph.name,
        method=method.name,
        backbone=getattr(method, "backbone", None),
        sampler=labels.sampler,
        rate=labels.rate,
        per_class=_per_class(graph, split),
        runs=labels.runs,
        first_run=labels.first_run,
        preset=preset,
        accuracy=[round(value, 2) for value in percent],
        mean=round(float(np.mean(percent)), 2),
        std=round(float(np.std(percent)), 2),
        cmd_before=round(float(np.mean([r.cmd_before for r in results])), 4),
        cmd_after=round(float(np.mean([r.cmd_after for r in results])), 4),
        seconds=round(seconds, 3),
        official=graph.official,
        settings=method.get_params(),
        device=device_name(device),
        peak_mib=memory.mib(),
        commit=commit(),
        versions=versions(),
        stages=[_rounded(result.history) for result in results] if stages else None,
    )


def _rounded(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{key: round(value, 4) for key, value in record.items()} for record in history]


def _per_class(graph: Graph, split: Split) -> int | None:
    """Labels per class, if all classes have equally many."""
    counts = np.bincount(graph.labels[split.train[0]], minlength=graph.num_classes)
    return int(counts[0]) if (counts == counts[0]).all() else None
