"""Code shared by the benchmarks: graphs of a given size, and alternating time measurements."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.datasets import DATASETS, load, synthetic
from dcgst.graph import Graph

DENSITY = {"cora": 0.0127, "citeseer": 0.0085, "pubmed": 0.1}
"""Fraction of nonzero features, for datasets with bag-of-words features."""

Implementation = Callable[..., Callable[[int], Any]]
"""Set up with keyword arguments; returns a function that trains for a number of epochs."""


def load_or_generate(name: str) -> tuple[Graph, str]:
    """Load a dataset, or generate a synthetic graph of the same size if it is not available.

    Returns:
        The graph, and ``"real"`` or ``"synthetic"``.
    """
    entry = DATASETS[name]
    assert entry.nodes
    assert entry.edges
    assert entry.features
    assert entry.classes
    if entry.available():
        return load(name), "real"
    graph = synthetic(
        nodes=entry.nodes,
        classes=entry.classes,
        features=2 if name in DENSITY else entry.features,
        degree=2 * entry.edges / entry.nodes,
        labels_per_class=20,
        name=name,
    )
    if name in DENSITY:
        words = sp.random_array(
            (entry.nodes, entry.features), density=DENSITY[name], format="csr", rng=0
        )
        graph = replace(graph, features=words.astype(np.float32))
    return graph, "synthetic"


def time_alternately(
    implementations: dict[str, Implementation], rounds: int, epochs: int, **settings: Any
) -> dict[str, dict[str, Any]]:
    """Time implementations in alternation, so that system noise affects all of them equally.

    Each implementation runs in its own process. One named ``pyg`` runs without the huge pages that
    importing dcgst enables for large tensors, as in plain PyTorch.

    Args:
        implementations: Implementations by name.
        rounds: Number of measurements of each implementation.
        epochs: Number of epochs of each measurement.
        settings: Keyword arguments of every implementation.

    Returns:
        For each implementation, ``ms`` per epoch in the best round, the return ``value`` of the
        last round, and ``peak_mib`` of its process, libraries and data included.
    """
    context = mp.get_context("spawn")
    connections: dict[str, Connection] = {}
    processes = []
    for name, implementation in implementations.items():
        connection, remote = context.Pipe()
        arguments = (remote, implementation, settings)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        os.environ["THP_MEM_ALLOC_ENABLE"] = "0" if name == "pyg" else "1"
        process.start()
        connections[name] = connection
        processes.append(process)
        connection.recv()
    results: dict[str, dict[str, Any]] = {name: {"ms": float("inf")} for name in implementations}
    for _ in range(rounds):
        for name, connection in connections.items():
            connection.send(epochs)
            seconds, value, peak = connection.recv()
            best = min(results[name]["ms"], 1000 * seconds / epochs)
            results[name] = {"ms": best, "value": value, "peak_mib": peak}
    for connection in connections.values():
        connection.send(None)
    for process in processes:
        process.join()
    return results


def _serve(
    connection: Connection, implementation: Implementation, settings: dict[str, Any]
) -> None:
    """Set up an implementation, then time it for each number of epochs received."""
    train = implementation(**settings)
    train(1)
    connection.send("ready")
    while (epochs := connection.recv()) is not None:
        start = time.perf_counter()
        value = train(epochs)
        connection.send((time.perf_counter() - start, value, peak_mib()))


def peak_mib() -> float:
    """Return the peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print a record as one line of JSON or text."""
    if as_json:
        print(json.dumps(record), flush=True)
        return
    parts = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items()]
    print("  ".join(parts), file=sys.stdout, flush=True)
