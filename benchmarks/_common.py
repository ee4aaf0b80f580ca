"""What the benchmarks share: graphs of a given size, and sides that are timed in turns."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import scipy.sparse as sp

from dcgst.datasets import CATALOGUE, load, synthetic
from dcgst.graph import Graph

DENSITY = {"cora": 0.0127, "citeseer": 0.0085, "pubmed": 0.1}
"""Share of features that are set, where they are bags of words."""

Side = Callable[..., Callable[[int], Any]]
"""Set up with keyword arguments, then called with a number of epochs; what it returns is kept."""


def graph_of(name: str) -> tuple[Graph, str]:
    """The data set if it is here, else a synthetic graph of the same size."""
    entry = CATALOGUE[name]
    if entry.present(name):
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


def alternate(
    sides: dict[str, Side], rounds: int, epochs: int, **settings: Any
) -> dict[str, dict[str, Any]]:
    """Time the sides in turns, each in a process of its own, so that noise falls on all alike.

    A side of the name ``pyg`` runs as plain PyTorch does, without the huge pages that importing
    dcgst turns on for large tensors.

    Returns for each side: ``ms`` per epoch (the best round), ``value`` of the last round and
    ``peak_mib`` of its process, libraries and data included.
    """
    context = mp.get_context("spawn")
    pipes: dict[str, Connection] = {}
    processes = []
    for name, side in sides.items():
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, side, settings), daemon=True)
        os.environ["THP_MEM_ALLOC_ENABLE"] = "0" if name == "pyg" else "1"
        process.start()
        pipes[name] = ours
        processes.append(process)
        ours.recv()
    results: dict[str, dict[str, Any]] = {name: {"ms": float("inf")} for name in sides}
    for _ in range(rounds):
        for name, pipe in pipes.items():
            pipe.send(epochs)
            seconds, value, peak = pipe.recv()
            best = min(results[name]["ms"], 1000 * seconds / epochs)
            results[name] = {"ms": best, "value": value, "peak_mib": peak}
    for pipe in pipes.values():
        pipe.send(None)
    for process in processes:
        process.join()
    return results


def _serve(pipe: Connection, side: Side, settings: dict[str, Any]) -> None:
    import time

    run = side(**settings)
    run(1)
    pipe.send("ready")
    while (epochs := pipe.recv()) is not None:
        start = time.perf_counter()
        value = run(epochs)
        pipe.send((time.perf_counter() - start, value, peak_mib()))


def peak_mib() -> float:
    """The most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(record: dict[str, Any], as_json: bool) -> None:
    """One line for machines, or one for people."""
    if as_json:
        print(json.dumps(record), flush=True)
        return
    parts = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items()]
    print("  ".join(parts), file=sys.stdout, flush=True)
