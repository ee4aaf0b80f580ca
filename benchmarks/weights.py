"""Compare rules that weight the members of the ensemble, on stored predictions of each member.

    python benchmarks/weights.py draw FOLDER --runs 10 --first-run 10
    python benchmarks/weights.py fit FOLDER --out OUT --workers 13
    python benchmarks/weights.py compare OUT

``draw`` stores graphs and drawn labels, ``fit`` the predictions of all members for some nodes and
for left-out labels, so that ``compare`` can evaluate a rule in seconds. Rules are chosen on runs 10
to 29. ``fit`` needs no more libraries than PyTorch, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from dcgst.engine.device import resolve_device
from dcgst.engine.random import derive
from dcgst.graph import UNKNOWN
from dcgst.methods import Method, method
from dcgst.methods.core.problem import Problem
from dcgst.methods.ensemble.members import fit_member, label_folds
from dcgst.numerics.graph_tensors import GraphTensors

MEMBERS = ("lp", "em", "gp", "gcn", "appnp", "mlp", "cs", "sign")
SAMPLERS = ("uniform", "degree", "ppr-s")
PER_CLASS = 10
VALIDATION = 20
NODES = 800
"""Nodes to predict whose predictions are stored."""

Arrays = dict[str, NDArray[Any]]


def draw(folder: Path, graphs: list[str], first_run: int, runs: int) -> None:
    """Store each graph with the labels that are drawn."""
    from dcgst.datasets import load
    from dcgst.splits import sample

    folder.mkdir(parents=True, exist_ok=True)
    for name in graphs:
        path = folder / f"{name}.npz"
        if path.exists():
            continue
        start = time.perf_counter()
        graph = load(name)
        arrays: Arrays = {"labels": graph.labels, "runs": np.arange(first_run, first_run + runs)}
        arrays |= parts_of("adjacency", graph.adjacency) | parts_of("features", graph.features)
        for sampler in SAMPLERS:
            split = sample(
                graph,
                sampler,
                per_class=PER_CLASS,
                runs=runs,
                first_run=first_run,
                val_count=VALIDATION,
            )
            arrays[f"{sampler}/train"], arrays[f"{sampler}/val"] = split.train, split.val
            arrays[f"{sampler}/pool"] = split.pool
        np.savez_compressed(path, allow_pickle=False, **arrays)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def parts_of(name: str, matrix: sp.csr_array | NDArray[Any]) -> Arrays:
    """The arrays of a sparse or dense matrix."""
    if not sp.issparse(matrix):
        return {name: matrix}
    return {
        f"{name}/data": matrix.data,
        f"{name}/indices": matrix.indices,
        f"{name}/indptr": matrix.indptr,
        f"{name}/shape": np.array(matrix.shape),
    }


def matrix_of(name: str, arrays: Arrays) -> Any:
    """The matrix of :func:`parts_of`."""
    if name in arrays:
        return arrays[name]
    parts = (arrays[f"{name}/{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_array(tuple(parts), shape=tuple(arrays[f"{name}/shape"]))


def fit(folder: Path, out: Path, graphs: list[str], members: list[str], workers: int) -> None:
    """Store the predictions of all members, one file per graph and sampler."""
    out.mkdir(parents=True, exist_ok=True)
    tasks = [(folder / f"{name}.npz", sampler, out) for name in graphs for sampler in SAMPLERS]
    tasks = sorted(tasks, key=lambda task: -task[0].stat().st_size)  # the longest first
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(fit_labels, *task, members) for task in tasks]):
            print(future.result(), flush=True)


def fit_labels(path: Path, sampler: str, out: Path, members: list[str]) -> str:
    """Fit all members to the labels of one sampler, all runs together."""
    torch.set_num_threads(1)
    target = out / f"{path.stem}-{sampler}.npz"
    if target.exists():
        return f"{target.stem}: there"
    start = time.perf_counter()
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    device = resolve_device("auto")
    tensors = GraphTensors(matrix_of("features", arrays), matrix_of("adjacency", arrays), device)
    found = predictions(arrays, tensors, sampler, members)
    np.savez_compressed(target, allow_pickle=False, **found)
    return f"{target.stem}: {time.perf_counter() - start:.1f} s"


def create(name: str) -> Method:
    """A member by name, or one of the candidates that were tried as members."""
    if name == "dcgst":
        return method("dcgst", experts=False, backbone="gcn")
    return method(name)


def predictions(arrays: Arrays, tensors: GraphTensors, sampler: str, members: list[str]) -> Arrays:
    """Predictions with and without the validation labels as further training labels."""
    truth, (train, val, pool) = (
        arrays["labels"],
        (arrays[f"{sampler}/{part}"] for part in ("train", "val", "pool")),
    )
    rng = np.random.default_rng(0)
    shown = [np.sort(rng.permutation(np.flatnonzero(own & (truth >= 0)))[:NODES]) for own in pool]
    most = max(map(len, shown))
    shown = np.stack([np.resize(own, most) for own in shown])
    seeds = [derive(0, int(run), 0) for run in arrays["runs"]]
    num_classes = int(truth.max()) + 1
    test = pool & (truth >= 0)
    found: Arrays = {"truth": truth[shown], "sizes": np.bincount(truth[truth >= 0])}
    for kind, given in (("train", train), ("all", train | val)):
        labels = np.where(given, truth, UNKNOWN)
        problem = Problem.build(tensors, labels, num_classes, pool=pool, seeds=seeds)
        folds = label_folds(problem.train_labels, 5, problem.seeds)
        rows = [np.flatnonzero(own) for own in given]
        width = max(map(len, rows))
        padded = np.stack([np.pad(own, (0, width - len(own)), mode="edge") for own in rows])
        real = np.stack([np.arange(width) < len(own) for own in rows])
        found[f"{kind}/labels"] = np.where(real, truth[padded], UNKNOWN)
        found[f"{kind}/random"] = np.take_along_axis(val, padded, 1) & real
        found[f"{kind}/folds"] = np.take_along_axis(folds.numpy(force=True), padded, 1)
        found[f"{kind}/representativeness"] = problem.trust.numpy(force=True)
        every = np.arange(len(labels))[:, None]
        for name in members:
            start = time.perf_counter()
            own = fit_member(name, create(name), problem, folds)
            full = own.log_proba.numpy(force=True)
            key = f"{kind}/{name}"
            found[key] = full[every, shown].astype(np.float16)
            left_out = own.left_out.numpy(force=True)
            found[f"{key}/left_out"] = left_out[every, padded].astype(np.float16)
            right = full.argmax(-1) == truth
            found[f"{key}/accuracy"] = np.array(
                [100 * right[run][mask].mean() for run, mask in enumerate(test)]
            )
            found[f"{key}/seconds"] = np.array(time.perf_counter() - start)
    return found


if __name__ == "__main__":
    from dcgst.bench.suite import GRAPHS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("draw", "fit"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(".weights"))
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--members", default=",".join(MEMBERS))
    parser.add_argument("--first-run", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    names = options.graphs.split(",")
    if options.action == "draw":
        draw(options.folder, names, options.first_run, options.runs)
    else:
        fit(options.folder, options.out, names, options.members.split(","), options.workers)
