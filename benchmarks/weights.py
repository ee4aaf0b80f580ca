"""Compare rules that weight the members of the ensemble, on stored predictions of each member.

    python benchmarks/weights.py draw FOLDER --runs 5 --first-run 10
    python benchmarks/weights.py fit FOLDER --out OUT --workers 13
    python benchmarks/weights.py compare OUT --members lp,em,gp --constant POWER=8
    python benchmarks/weights.py ablate OUT > results/ensemble.jsonl

``draw`` stores graphs and drawn labels, ``fit`` the predictions of all members for some nodes and
for left-out labels, so that ``compare`` can evaluate a rule in seconds. Rules are chosen on runs 10
to 29. ``fit`` needs no more libraries than PyTorch, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score

from dcgst.bench.experiments import RATES
from dcgst.bench.suite import FLOORS, GRAPHS, GROUPS
from dcgst.evaluate.calibration import expected_calibration_error
from dcgst.features.graph_tensors import GraphTensors
from dcgst.graph import UNKNOWN
from dcgst.methods import Ensemble, Method, method
from dcgst.methods.base import param
from dcgst.methods.ensemble import combination
from dcgst.methods.ensemble.combination import Evidence, combine, pseudo_labels
from dcgst.methods.ensemble.ensemble import DEFAULT
from dcgst.methods.ensemble.members import MemberFit, fit_member, fit_student
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result, results_without_stages
from dcgst.splits import Split
from dcgst.train.device import resolve_device
from dcgst.train.random import derive

MEMBERS = ("lp", "em", "gp", "gcn", "appnp", "mlp", "cs", "sign")
SAMPLERS = ("uniform", "degree", "ppr-s")
PAPER = {dataset: RATES[dataset] for dataset in ("cora", "citeseer", "pubmed")}
"""Label rates of the paper, with its biased labels and its number of validation labels."""
PER_CLASS = 10
VALIDATION = 20
RUNS = 5
"""Of those that were drawn, the first."""
NODES = 300
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
        arrays: Arrays = {
            "labels": graph.labels,
            "columns_weighted": np.array(graph.columns_weighted),
            "runs": np.arange(first_run, first_run + runs),
        }
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
            arrays |= masks_of(sampler, split)
        for rate in PAPER.get(name, ()):
            split = sample(graph, "released", rate=rate, runs=runs, first_run=first_run)
            arrays |= masks_of(f"paper {100 * rate:g}%", split)
        np.savez_compressed(path, allow_pickle=False, **arrays)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def masks_of(name: str, split: Split) -> Arrays:
    """The masks of a split."""
    return {f"{name}/train": split.train, f"{name}/val": split.val, f"{name}/pool": split.pool}


def samplers_of(graph: str) -> tuple[str, ...]:
    """Names of the labels that are drawn of a graph."""
    return (*SAMPLERS, *(f"paper {100 * rate:g}%" for rate in PAPER.get(graph, ())))


def parts_of(name: str, matrix: Any) -> Arrays:
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


def fit(
    folder: Path,
    out: Path,
    graphs: list[str],
    members: list[str],
    students: list[str],
    workers: int,
    folds: int,
) -> None:
    """Store the predictions of all members, one file per graph and sampler."""
    out.mkdir(parents=True, exist_ok=True)
    tasks = [
        (folder / f"{name}.npz", sampler, out) for name in graphs for sampler in samplers_of(name)
    ]
    tasks = sorted(tasks, key=lambda task: -task[0].stat().st_size)  # the longest first
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        for future in as_completed(
            [executor.submit(fit_labels, *task, members, students, folds) for task in tasks]
        ):
            print(future.result(), flush=True)


def fit_labels(
    path: Path, sampler: str, out: Path, members: list[str], students: list[str], folds: int
) -> str:
    """Fit all members to the labels of one sampler, all runs together."""
    torch.set_num_threads(1)
    target = out / f"{path.stem}-{sampler}.npz"
    if target.exists():
        return f"{target.stem}: there"
    start = time.perf_counter()
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    device = resolve_device("auto")
    weighted = bool(arrays["columns_weighted"])
    matrices = (matrix_of(name, arrays) for name in ("features", "adjacency"))
    features, adjacency = matrices
    tensors = GraphTensors.of(features, adjacency, device, columns_weighted=weighted)
    found = predictions(arrays, tensors, sampler, members, students, folds)
    np.savez_compressed(target, allow_pickle=False, **found)
    return f"{target.stem}: {time.perf_counter() - start:.1f} s"


def kinds_of(sampler: str) -> tuple[str, ...]:
    """How validation labels are used: not, trained on, as evidence, or also by the members."""
    return ("train", "all") if sampler in SAMPLERS else ("held", "seen")


@dataclass(eq=False, kw_only=True)
class Forest(Method):
    """A random forest on features of 0 to 3 hops, PageRank means and the degree."""

    name: ClassVar[str] = "forest"
    all_at_once: ClassVar[bool] = True

    trees: int = param(100, "number of trees", low=1)

    def solve(self, problem: Problem) -> list[Result]:
        blocks = problem.graph.propagated
        x = torch.cat(list(blocks.values()), 1).numpy(force=True)
        proba = np.zeros((problem.num_fits, len(x), problem.num_classes), dtype=np.float32)
        for fit, labels in enumerate(problem.train_labels.numpy(force=True)):
            nodes = np.flatnonzero(labels >= 0)
            forest = RandomForestClassifier(
                self.trees, class_weight="balanced", random_state=problem.seeds[fit] % 2**32
            )
            forest.fit(x[nodes], labels[nodes])
            proba[fit][:, forest.classes_] = forest.predict_proba(x)
        smoothed = torch.tensor(proba * self.trees + 1)
        smoothed = (smoothed / smoothed.sum(-1, keepdim=True)).to(problem.device)
        z = blocks["PageRank"].expand(problem.num_fits, -1, -1)
        return results_without_stages(problem, smoothed, z, ["forest"] * problem.num_fits)


def create(name: str) -> Method:
    """A member by name, or one of the candidates that were tried as members."""
    name = name.removesuffix("-student")
    if name == "forest":
        return Forest()
    if name == "sage":
        return method("gcn", backbone="sage")
    name, _, epochs = name.partition(":")  # such as gcn:100
    return method(name, epochs=int(epochs)) if epochs else method(name)


def predictions(
    arrays: Arrays,
    tensors: GraphTensors,
    sampler: str,
    members: list[str],
    students: list[str],
    folds: int,
) -> Arrays:
    """Predictions with and without the validation labels as further training labels."""
    truth = arrays["labels"]
    train, val, pool = (arrays[f"{sampler}/{part}"][:RUNS] for part in ("train", "val", "pool"))
    test = pool & (truth >= 0)
    shown = some_nodes(test)
    every = np.arange(len(shown))[:, None]
    seeds = [derive(0, int(run), 0) for run in arrays["runs"][:RUNS]]
    found: Arrays = {"truth": truth[shown], "shares": np.bincount(truth[truth >= 0])}
    for kind in kinds_of(sampler):
        problem = Problem.build(
            tensors,
            np.where(train, truth, UNKNOWN),
            int(truth.max()) + 1,
            val_labels=np.where(val & (kind != "train"), truth, UNKNOWN),
            pool=pool,
            seeds=seeds,
        )
        ensemble = Ensemble(train_on_validation=kind == "all", folds=folds)
        task = ensemble.make_task(problem)
        if kind == "seen":
            task = replace(task, problem=problem)
        evidence = ensemble.find_evidence(problem, task)
        found[f"{kind}/trust"] = problem.trust.numpy(force=True)
        for part in ("labels", "random", "counts", "belief"):
            found[f"{kind}/{part}"] = getattr(evidence, part).numpy(force=True)
        fits = {}
        for name in members:
            start = time.perf_counter()
            fits[name] = fit_member(name, create(name), task)
            found[f"{kind}/{name}/seconds"] = np.array(time.perf_counter() - start)
        if students:
            teachers = {name: fits[name] for name in DEFAULT.split(",")}
            combined = combine(teachers, evidence, problem.pool, ["em"])
            labels = pseudo_labels(combined.log_proba, problem.pool)
            for name in students:
                student = create(name)
                fits[f"{name}-student"] = fit_student(student, task, labels, combined.left_out)
        for name, own in fits.items():
            full = own.log_proba.numpy(force=True)
            key = f"{kind}/{name}"
            found[key] = full[every, shown].astype(np.float16)
            found[f"{key}/left_out"] = own.left_out.numpy(force=True).astype(np.float16)
            right = full.argmax(-1) == truth
            accuracy = [100 * right[run][mask].mean() for run, mask in enumerate(test)]
            found[f"{key}/accuracy"] = np.array(accuracy)
    return found


def some_nodes(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """``(R, m)`` some nodes of each mask ``(R, n)``, at random; repeated if there are too few."""
    rng = np.random.default_rng(0)
    chosen = [np.sort(rng.permutation(np.flatnonzero(mask))[:NODES]) for mask in masks]
    most = max(map(len, chosen))
    return np.stack([np.resize(own, most) for own in chosen])


@dataclass(frozen=True)
class Score:
    """Accuracy, calibration error and macro F1 of one rule on one graph, means over the runs."""

    accuracy: float
    gap: float
    f1_gap: float
    ece: float
    shares: float


def compare(
    folder: Path, members: list[str], graphs: list[str], **constants: float
) -> dict[str, Any]:
    """Mean and worst gap to the best floor by group of graphs and kind of labels.

    Args:
        folder: of stored predictions.
        members: of the ensemble; a student is called ``mlp-student``.
        graphs: to compare.
        **constants: of :mod:`dcgst.methods.ensemble.combination`, by name.
    """
    before = {name: getattr(combination, name) for name in constants}
    vars(combination).update(constants)
    found: dict[str, Any] = {}
    for validation, kind in ((0, "train"), (VALIDATION, "all")):
        scores = {
            (graph, sampler): score(folder / f"{graph}-{sampler}.npz", kind, members)
            for graph in graphs
            for sampler in SAMPLERS
            if (folder / f"{graph}-{sampler}.npz").exists()
        }
        for title, group in GROUPS.items():
            for sampler in SAMPLERS:
                gaps = [scores[g, sampler].gap for g in group if (g, sampler) in scores]
                if gaps:
                    key = f"{title} {sampler} {validation}"
                    found[key] = [round(float(np.mean(gaps)), 2), round(min(gaps), 1)]
        for quantity in ("gap", "f1_gap", "ece", "shares"):
            mean = float(np.mean([getattr(own, quantity) for own in scores.values()]))
            found[f"{quantity} {validation}"] = round(mean, 3)
    vars(combination).update(before)
    return found


CHOSEN = (*DEFAULT.split(","), "mlp-student")

VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    "the ensemble": (CHOSEN, {}),
    **{f"without {name}": (tuple(m for m in CHOSEN if m != name), {}) for name in CHOSEN[:-1]},
    "without gp and sign": (tuple(m for m in CHOSEN if m not in ("gp", "sign")), {}),
    "without student": (CHOSEN[:-1], {}),
    **{
        f"with {name}": ((*CHOSEN, name), {})
        for name in ("appnp", "cs", "forest", "gcn-student", "sign-student")
    },
    "cs instead of the student": ((*CHOSEN[:-1], "cs"), {}),
    "equal weights": (CHOSEN, {"POWER": 0}),
    "accuracy to the power of 2": (CHOSEN, {"POWER": 2}),
    "accuracy to the power of 8": (CHOSEN, {"POWER": 8}),
    "weight of EM for biased labels 1 instead of 20": (CHOSEN, {"WEIGHT_OF_CLUSTERS": 1}),
    "weight of EM for biased labels 10 instead of 20": (CHOSEN, {"WEIGHT_OF_CLUSTERS": 10}),
    "weight of EM for biased labels 50 instead of 20": (CHOSEN, {"WEIGHT_OF_CLUSTERS": 50}),
    "class shares not corrected": (CHOSEN, {"SHARE_LABELS": 1e9}),
}
"""What is compared: members and constants by name."""


def ablate(folder: Path, graphs: list[str]) -> None:
    """Print one JSON object for each variant of the ensemble."""
    for name, (members, constants) in VARIANTS.items():
        found = compare(folder, list(members), graphs, **constants)
        print(json.dumps({"variant": name, **found}), flush=True)


def score(path: Path, kind: str, members: list[str]) -> Score:
    """The score of the ensemble of some members."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    truth = arrays["truth"]
    parts = (torch.tensor(arrays[f"{kind}/{part}"]) for part in Evidence.__annotations__)
    fits = {name: member_fit(arrays, f"{kind}/{name}") for name in members}
    nodes = torch.ones(truth.shape, dtype=torch.bool)
    clusters = [name for name in members if create(name).models_all_nodes]
    proba = combine(fits, Evidence(*parts), nodes, clusters).log_proba.exp().numpy()
    floors = [arrays[f"{kind}/{name}"].argmax(-1) for name in FLOORS]
    found = quality(proba.argmax(-1), truth)
    best = np.max([quality(own, truth) for own in floors], axis=0)
    true = np.stack([np.bincount(own, minlength=proba.shape[-1]) / len(own) for own in truth])
    pairs = zip(proba, truth, strict=True)
    return Score(
        accuracy=found[0],
        gap=found[0] - best[0],
        f1_gap=found[1] - best[1],
        ece=float(np.mean([expected_calibration_error(p, t) for p, t in pairs])),
        shares=float(np.abs(proba.mean(1) - true).sum(1).mean() / 2),
    )


def member_fit(arrays: Arrays, key: str) -> MemberFit:
    """The stored predictions of a member."""
    full, left_out = (torch.tensor(arrays[f"{key}{part}"]).float() for part in ("", "/left_out"))
    return MemberFit(full, left_out, None, None)


def quality(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> tuple[float, float]:
    """Mean accuracy and macro F1 of classes ``(R, m)``."""
    macro = [
        f1_score(own, guess, average="macro", labels=np.unique(own))
        for own, guess in zip(truth, predicted, strict=True)
    ]
    return 100 * float((predicted == truth).mean()), 100 * float(np.mean(macro))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("draw", "fit", "compare", "ablate"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(".weights"))
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--members", default=",".join(MEMBERS))
    parser.add_argument("--students", default="", help="methods that learn pseudo-labels, too")
    parser.add_argument("--first-run", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--constant", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    names, chosen = options.graphs.split(","), options.members.split(",")
    if options.action == "draw":
        draw(options.folder, names, options.first_run, options.runs)
    elif options.action == "fit":
        students = options.students.split(",") if options.students else []
        fit(options.folder, options.out, names, chosen, students, options.workers, options.folds)
    elif options.action == "ablate":
        ablate(options.folder, names)
    else:
        pairs = dict(pair.split("=") for pair in options.constant)
        constants = {key: float(value) for key, value in pairs.items()}
        print(json.dumps(compare(options.folder, chosen, names, **constants)))
