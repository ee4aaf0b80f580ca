"""The protocol of every experiment: sample labels, fit several runs, measure accuracy."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score, recall_score

from dcgst.evaluate.calibration import calibrate, expected_calibration_error
from dcgst.evaluate.quality import accuracy, share_error
from dcgst.features.graph_tensors import GraphTensors
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods import METHODS, Method, Result
from dcgst.methods.dcgst.candidates import propagated_features
from dcgst.shift.cmd import cmd
from dcgst.splits import Split, sample
from dcgst.train.device import resolve_device
from dcgst.train.training import Callback
from dcgst.version import versions


@cache
def current_commit() -> str | None:
    """Return the commit of this source tree, with a plus sign if tracked files were modified.

    The environment variable ``DCGST_COMMIT`` overrides it, for a copy without a git repository.

    Returns:
        The abbreviated commit, or None outside a git repository.
    """
    if override := os.environ.get("DCGST_COMMIT"):
        return override
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        modified = git("status", "--porcelain", "--untracked-files=no", "--", str(folder.parent))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if modified else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def device_name(device: torch.device) -> str:
    """Return the name of the GPU, or the architecture and number of threads of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"


class PeakMemory:
    """Peak memory in use since the object was created.

    On a GPU, this is the memory of tensors. On a CPU, it is the resident memory of the process.
    If the operating system cannot reset that peak, it counts from the start of the process.

    Args:
        device: Device to measure.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        gc.collect()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)  # return free memory to the operating system
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM

    def mib(self) -> float:
        """Return the peak so far in MiB."""
        if self.device.type == "cuda":
            return round(torch.cuda.max_memory_allocated(self.device) / 2**20, 1)
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
        return float(round(psutil.Process().memory_info().rss / 2**20, 1))


@dataclass(frozen=True)
class Labels:
    """Label sampling: which labels are given to a method, and in which runs.

    Attributes:
        sampler: Name of the label sampler.
        rate: Number of labels as a fraction of all nodes.
        per_class: Number of labels per class, as an alternative to ``rate``.
        runs: Number of runs.
        first_run: Number of the first run.
        validation: Number of validation nodes; None for the share that the paper uses.
        validation_per_class: Number of validation nodes of each class, as an alternative to
            ``validation``.
        train_on_validation: Whether the validation nodes become training nodes after they were
            drawn. The test nodes are the same.
    """

    sampler: str = "released"
    rate: float | None = None
    per_class: int | None = None
    runs: int = 10
    first_run: int = 0
    validation: int | None = None
    validation_per_class: int | None = None
    train_on_validation: bool = False

    def sample(self, graph: Graph) -> Split:
        """Sample a split of a graph."""
        split = sample(
            graph,
            self.sampler,
            rate=self.rate,
            per_class=self.per_class,
            runs=self.runs,
            first_run=self.first_run,
            val_count=self.validation,
            val_per_class=self.validation_per_class,
        )
        if not self.train_on_validation:
            return split
        return replace(split, train=split.train | split.val, val=np.zeros_like(split.val))


@dataclass(frozen=True)
class Record:
    """Result of one cell, with its settings and its origin.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the method.
        backbone: Name of the backbone; None if the method has none.
        sampler: Name of the label sampler.
        rate: Requested number of labels as a fraction of all nodes.
        per_class: Number of labels per class; None if it differs between classes.
        runs: Number of runs.
        first_run: Number of the first run.
        preset: Name of the preset.
        accuracy: Test accuracy of each run in percent.
        mean: Mean of ``accuracy``.
        std: Population standard deviation of ``accuracy``.
        cmd_before: Mean CMD between labeled and other nodes before pseudo-labeling.
        cmd_after: Mean CMD between labeled and other nodes after pseudo-labeling.
        seconds: Time of all runs together.
        official: Whether the features are the official ones.
        settings: All settings of the method.
        device: Name of the device.
        peak_mib: Peak memory in MiB.
        commit: Commit of the code.
        versions: Versions of the libraries.
        stages: History of each run; None if it was not requested.
        validation: Requested number of validation nodes; None for the share that the paper uses.
        validation_per_class: Requested number of validation nodes of each class.
        train_on_validation: Whether the validation nodes were used as training nodes.
        balanced_accuracy: Mean over the runs of the mean recall of the classes, in percent.
        macro_f1: Mean over the runs of the unweighted mean F1 of the classes, in percent.
        ece: Mean over the runs of the expected calibration error.
        share_error: Mean over the runs of the error of the class shares, estimated by the mean
            probabilities.
    """

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
    validation: int | None = None
    validation_per_class: int | None = None
    train_on_validation: bool = False
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    ece: float | None = None
    share_error: float | None = None


def run_cell(
    graph: Graph,
    method: Method,
    labels: Labels,
    callbacks: Sequence[Callback] = (),
    *,
    stages: bool = False,
    split: Split | None = None,
) -> Record:
    """Fit all runs of a method and measure accuracy on the test nodes.

    Args:
        graph: Graph with true labels.
        method: Method to fit.
        labels: Label sampling.
        callbacks: Callbacks passed to the method.
        stages: Whether to store the history of each run.
        split: The sampled labels, if they were sampled before.

    Returns:
        The record; its preset is ``default``, and its dataset the name of the graph.
    """
    split = split or labels.sample(graph)
    device = resolve_device(method.device)
    memory = PeakMemory(device)
    start = time.perf_counter()
    results = method.fit_runs(graph, split, callbacks=callbacks)
    seconds = time.perf_counter() - start
    return Record(
        dataset=graph.name,
        method=METHODS.name_of(type(method)),
        backbone=method.config().get("backbone"),
        preset="default",
        **{field.name: getattr(labels, field.name) for field in fields(labels)}
        | {"per_class": _labels_per_class(graph, split, labels)},
        **_measures(graph, method, results, split),
        cmd_before=round(float(np.mean([r.cmd_before for r in results])), 4),
        cmd_after=round(float(np.mean([r.cmd_after for r in results])), 4),
        seconds=round(seconds, 3),
        official=graph.official,
        settings=method.config(),
        device=device_name(device),
        peak_mib=memory.mib(),
        commit=current_commit(),
        versions=versions(),
        stages=stage_histories(graph, split, results) if stages else None,
    )


def _measures(
    graph: Graph, method: Method, results: Sequence[Result], split: Split
) -> dict[str, Any]:
    """What a record says about the predictions of the test nodes."""
    test = split.test(graph)
    percent = [
        100 * accuracy(result.labels, graph.labels, mask)
        for result, mask in zip(results, test, strict=True)
    ]
    quality = [
        _quality(graph, result, mask, None if method.calibrated else val)
        for result, mask, val in zip(results, test, split.val, strict=True)
    ]
    balanced, macro_f1, ece, shares = np.mean(quality, axis=0).tolist()
    return {
        "accuracy": [round(value, 2) for value in percent],
        "mean": round(float(np.mean(percent)), 2),
        "std": round(float(np.std(percent)), 2),
        "balanced_accuracy": round(100 * balanced, 2),
        "macro_f1": round(100 * macro_f1, 2),
        "ece": round(ece, 4),
        "share_error": round(shares, 4),
    }


def _quality(
    graph: Graph, result: Result, test: NDArray[np.bool_], val: NDArray[np.bool_] | None
) -> tuple[float, float, float, float]:
    """Balanced accuracy, macro F1, calibration error and error of class shares of one run.

    They are measured on the test nodes. Classes without test nodes are left out.

    Args:
        graph: Graph with true labels.
        result: Result of the run.
        test: Test nodes.
        val: Validation nodes to calibrate with; None if the method calibrates itself.
    """
    truth, predicted, proba = graph.labels[test], result.labels[test], result.proba
    classes = np.unique(truth)
    if val is not None:
        proba = calibrate(proba, np.where(val, graph.labels, UNKNOWN)).apply(proba)
    return (
        float(recall_score(truth, predicted, labels=classes, average="macro")),
        float(f1_score(truth, predicted, labels=classes, average="macro")),
        expected_calibration_error(proba[test], truth),
        share_error(proba[test].mean(axis=0), truth),
    )


def stage_histories(
    graph: Graph, split: Split, results: Sequence[Result]
) -> list[list[dict[str, float]]]:
    """The history of each run, with what the method does not know.

    ``fixed_cmd`` is the shift in a space that is the same for all methods and stages, ``right`` the
    accuracy of the pseudo-labels.
    """
    tensors = GraphTensors.of(graph.features, graph.adjacency)
    z = propagated_features(tensors.x, tensors.normalized)
    histories = []
    for result, train, pool in zip(results, split.train, split.pool, strict=True):
        target, history = z[torch.tensor(pool)], []
        for record in result.history:
            labels = pseudo_labels_after(result, record)
            nodes = np.union1d(np.flatnonzero(train), labels["node"])
            own = {**record, "fixed_cmd": float(cmd(z[torch.tensor(nodes)], target, support=1.0))}
            if len(labels):
                own["right"] = float((labels["label"] == graph.labels[labels["node"]]).mean())
            history.append({key: round(value, 4) for key, value in own.items()})
        histories.append(history)
    return histories


def pseudo_labels_after(result: Result, record: Mapping[str, float]) -> NDArray[np.void]:
    """The rows of ``candidates`` that have pseudo-labels after a stage."""
    selected: NDArray[np.void] = result.candidates[result.candidates["selected"]]
    own: NDArray[np.void] = selected[selected["stage"] == record["stage"]]
    if "candidates" in record and len(own) + result.history[0]["labeled"] < record["labeled"]:
        own = selected[selected["stage"] <= record["stage"]]  # they are kept
    return own


def _labels_per_class(graph: Graph, split: Split, labels: Labels) -> int | None:
    """Return the number of training labels per class, or None if it differs between classes."""
    if labels.validation_per_class is not None:
        return labels.per_class  # drawn for every class, or the sampling raises
    counts = np.bincount(graph.labels[split.train[0]], minlength=graph.num_classes)
    return int(counts[0]) if (counts == counts[0]).all() else None
