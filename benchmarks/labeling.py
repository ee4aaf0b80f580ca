"""Simulated labelers: coverage of the estimated accuracy, and what suggested labels gain.

The true classes answer every question.

Coverage: DC-GST with five replicas is fitted to few labels and an audit of randomly chosen nodes.
How often does the 95 % interval contain the true accuracy, and how wide is it compared with an
interval from the audit alone?

Gain: 20 audit and 30 suggested labels are compared with 50 random ones in the same runs.

    python benchmarks/labeling.py coverage --graphs cora_ml,citeseer --runs 40
    python benchmarks/labeling.py gain --graphs cora_ml,citeseer --runs 10
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcgst import DCGST, Graph, Split, load, sample, suggest
from dcgst.evaluate.estimate import estimate_share, wilson

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


def coverage(name: str, options: argparse.Namespace) -> dict[str, object]:
    """Intervals from an audit, and the true accuracy, in several runs."""
    graph = load(name)
    rows = []
    for start in range(0, options.runs, options.block):
        size = min(options.block, options.runs - start)
        split = sample(graph, options.sampler, per_class=10, runs=size,
                       first_run=FIRST_RUN + start, val_rate=0)  # fmt: skip
        split = with_audit(graph, split, options.audit, seed=1)
        model = DCGST(replicas=options.replicas, device=options.device)
        results = model.fit_runs(graph, split)
        truth = accuracies(graph, [r.proba for r in results], split.pool)
        for result, val, pool, true in zip(results, split.val, split.pool, truth, strict=True):
            confidence = result.proba.max(1)
            right = result.proba[val].argmax(1) == graph.labels[val]
            found = estimate_share(right, confidence[val], confidence[pool])
            low, high = wilson(float(right.mean()), len(right))
            rows.append(
                {
                    "accuracy": true,
                    "estimate": found.value,
                    "covered": found.low <= true <= found.high,
                    "width": found.high - found.low,
                    "plain_covered": low <= true <= high,
                    "plain_width": high - low,
                }
            )
    return {"graph": name, **{key: float(np.mean([r[key] for r in rows])) for key in rows[0]}}


def gain(name: str, options: argparse.Namespace) -> dict[str, object]:
    """Accuracy with 20 audit and 30 suggested labels, and with 50 random ones."""
    graph = load(name)
    split = sample(graph, options.sampler, per_class=10, runs=options.runs,
                   first_run=FIRST_RUN, val_rate=0)  # fmt: skip
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("coverage", "gain"))
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--sampler", default="degree", help="of the first labels")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--block", type=int, default=10, help="runs fitted together")
    parser.add_argument("--audit", type=int, default=30, help="number of randomly chosen nodes")
    parser.add_argument("--replicas", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="append the results as JSON lines")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        found = {"coverage": coverage, "gain": gain}[options.what](name, options)
        found |= {"what": options.what, "sampler": options.sampler, "runs": options.runs}
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}, flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
