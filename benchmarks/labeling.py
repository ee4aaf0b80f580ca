"""Simulated labelers: coverage of the estimated accuracy, and what suggested labels gain.

The true classes answer every question.

Coverage: DC-GST with five replicas is fitted to few labels and an audit of randomly chosen nodes.
How often does the 95% interval contain the true accuracy, and how wide is it compared with an
interval from the audit alone?

Gain: 20 audit and 30 suggested labels are compared with 50 random ones in the same runs.

    python benchmarks/labeling.py coverage --graphs cora_ml,citeseer --runs 40
    python benchmarks/labeling.py gain --graphs cora_ml,citeseer --runs 10
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcgst import DCGST, Graph, Split, load, sample, suggest
from dcgst.evaluate.quality import estimate_share, wilson

GRAPHS = "cora_ml,citeseer,amazon_photo,facebook,digits"
FIRST_RUN = 10
"""Runs 0 to 9 are those of the reported results."""


def with_audit(graph: Graph, split: Split, count: int, seed: int) -> Split:
    """Move randomly chosen pool nodes of known class to the validation nodes."""
    val, pool = split.val.copy(), split.pool.copy()
    for row, run in enumerate(split.runs):
        rng = np.random.default_rng([seed, run])
        nodes = rng.choice(np.flatnonzero(pool[row] & (graph.labels >= 0)), count, replace=False)
        val[row, nodes], pool[row, nodes] = True, False
    return replace(split, val=val, pool=pool)


def accuracies(
    graph: Graph, proba: list[NDArray[np.float32]], nodes: NDArray[np.bool_]
) -> list[float]:
    return [
        float((p.argmax(1) == graph.labels)[own & (graph.labels >= 0)].mean())
        for p, own in zip(proba, nodes, strict=True)
    ]


@dataclass(frozen=True)
class Audited:
    """A fit with an audit: what the estimate is made of, and the true accuracy."""

    right: NDArray[np.bool_]
    confidence: NDArray[np.float32]
    pool_confidence: NDArray[np.float32]
    accuracy: float

    def row(self) -> dict[str, float]:
        found = estimate_share(self.right, self.confidence, self.pool_confidence, calibrated=True)
        low, high = wilson(float(self.right.mean()), len(self.right))
        return {
            "accuracy": self.accuracy,
            "estimate": found.value,
            "covered": found.low <= self.accuracy <= found.high,
            "width": found.high - found.low,
            "plain": float(self.right.mean()),
            "plain_covered": low <= self.accuracy <= high,
            "plain_width": high - low,
        }


def fit_with_audit(task: tuple[str, int, int], options: argparse.Namespace) -> list[Audited]:
    """Fit some runs of a graph to few labels and an audit; ``task``: graph, first run, runs."""
    name, start, size = task
    graph = load(name)
    split = sample(graph, options.sampler, per_class=10, runs=size, first_run=start, val_rate=0)
    split = with_audit(graph, split, options.audit, seed=1)
    model = DCGST(replicas=options.replicas, device=options.device)
    results = model.fit_runs(graph, split)
    truth = accuracies(graph, [r.proba for r in results], split.pool)
    return [
        Audited(
            right=result.proba[val].argmax(1) == graph.labels[val],
            confidence=result.proba[val].max(1),
            pool_confidence=result.proba[pool].max(1),
            accuracy=accuracy,
        )
        for result, val, pool, accuracy in zip(results, split.val, split.pool, truth, strict=True)
    ]


def coverage(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Intervals from an audit compared with the true accuracy, for each graph."""
    blocks = range(0, options.runs, options.block)
    tasks = [
        (name, options.first_run + start, min(options.block, options.runs - start))
        for name in names
        for start in blocks
    ]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as processes:
        found = processes.map(partial(fit_with_audit, options=options), tasks)
        for name in names:
            rows = [fit.row() for _ in blocks for fit in next(found)]
            yield {"graph": name, **{k: float(np.mean([r[k] for r in rows])) for k in rows[0]}}


def gain(name: str, options: argparse.Namespace) -> dict[str, object]:
    """Accuracy with 20 audit and 30 suggested labels, and with 50 random ones."""
    graph = load(name)
    split = sample(graph, options.sampler, per_class=10, runs=options.runs,
                   first_run=options.first_run, val_rate=0)  # fmt: skip
    model = DCGST(replicas=1, device=options.device)
    first = with_audit(graph, split, 20, seed=1)
    suggested = first.train.copy()
    for row, result in enumerate(model.fit_runs(graph, first)):
        known = first.given[row] | (graph.labels < 0)  # nobody can label those
        nodes = [s.node for s in suggest(graph, result.proba, known, 30).nodes]
        suggested[row, nodes] = True
    ours = replace(first, train=suggested, pool=first.pool & ~suggested)
    random = with_audit(graph, split, 50, seed=1)
    both = ours.pool & random.pool
    found = {
        key: accuracies(graph, [r.proba for r in model.fit_runs(graph, own)], both)
        for key, own in (("before", split), ("suggested", ours), ("random", random))
    }
    means = {key: float(np.mean(values)) for key, values in found.items()}
    difference = np.array(found["suggested"]) - np.array(found["random"])
    error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    return {"graph": name, **means, "difference": float(difference.mean()), "error": error}


def gains(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Compare suggested with random labels, for each graph."""
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as processes:
        yield from processes.map(partial(gain, options=options), names)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("coverage", "gain"))
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--sampler", default="degree", help="of the first labels")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first-run", type=int, default=FIRST_RUN)
    parser.add_argument("--block", type=int, default=10, help="runs fitted together")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--audit", type=int, default=30, help="number of randomly chosen nodes")
    parser.add_argument("--replicas", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="append the results as JSON lines")
    options = parser.parse_args()
    names = options.graphs.split(",")
    rows = coverage(names, options) if options.what == "coverage" else gains(names, options)
    for found in rows:
        found |= {"what": options.what, "sampler": options.sampler, "runs": options.runs}
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}, flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
