"""Compare rules that weight the members of the ensemble, on stored predictions of each member.

    python benchmarks/weights.py fit FOLDER --runs 3 --first-run 10 --graphs cora,digits
    python benchmarks/weights.py compare FOLDER

``fit`` stores the predictions of all members for all nodes and for left-out labels, so that
``compare`` can evaluate a rule in seconds. Rules are chosen on runs 10 to 29.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dcgst.bench.suite import GRAPHS, PER_CLASS, SAMPLERS
from dcgst.datasets import load
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods import method
from dcgst.methods.core.problem import Problem
from dcgst.methods.ensemble.members import fit_member, label_folds
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import Split, sample

MEMBERS = ("lp", "em", "gp", "gcn", "appnp", "mlp", "cs", "sign")


def fit(folder: Path, graphs: list[str], first_run: int, runs: int) -> None:
    """Store the predictions of all members, one file per graph, sampler and run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in graphs:
        graph = load(name)
        tensors = GraphTensors(graph.features, graph.adjacency)
        for sampler in SAMPLERS:
            for run in range(first_run, first_run + runs):
                path = folder / f"{name}-{sampler}-{run}.npz"
                if path.exists():
                    continue
                start = time.perf_counter()
                split = sample(
                    graph, sampler, per_class=PER_CLASS, runs=1, first_run=run, val_count=20
                )
                drawn = time.perf_counter()
                arrays = predictions(graph, tensors, split)
                done = time.perf_counter()
                np.savez(path, allow_pickle=False, **arrays)
                print(
                    f"{path.stem}: labels {drawn - start:.1f} s, members {done - drawn:.1f} s",
                    flush=True,
                )


def predictions(graph: Graph, tensors: GraphTensors, split: Split) -> dict[str, NDArray[Any]]:
    """Predictions with and without the validation labels as further training labels."""
    arrays = {
        "truth": graph.labels,
        "train": split.train[0],
        "val": split.val[0],
    }
    for kind, given in (("train", split.train), ("all", split.train | split.val)):
        labels = np.where(given, graph.labels, UNKNOWN)
        problem = Problem.build(tensors, labels, graph.num_classes, pool=split.pool)
        folds = label_folds(problem.train_labels, 5, problem.seeds)
        rows = np.flatnonzero(given[0])
        arrays[f"{kind}/folds"] = folds[0, rows].numpy()
        arrays[f"{kind}/representativeness"] = problem.trust.numpy()
        for name in MEMBERS:
            start = time.perf_counter()
            found = fit_member(name, method(name), problem, folds)
            arrays[f"{kind}/{name}"] = found.log_proba[0].numpy().astype(np.float16)
            arrays[f"{kind}/{name}/left_out"] = found.left_out[0, rows].numpy()
            arrays[f"{kind}/{name}/seconds"] = np.array(time.perf_counter() - start)
    return arrays


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("fit",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--first-run", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    fit(options.folder, options.graphs.split(","), options.first_run, options.runs)
