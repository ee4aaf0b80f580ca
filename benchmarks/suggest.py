"""Does `suggest` choose better than chance and doubt? Labels are added on Cora, and it is refitted.

Prints accuracy on the nodes still without a label, mean over the runs, for every way to choose.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dcgst import Split, load, method, sample
from dcgst.graph import Graph
from dcgst.suggestions import suggest

Nodes = NDArray[np.int64]
Choose = Callable[[Graph, NDArray[np.float32], NDArray[np.bool_], Nodes, int, int], Nodes]


def at_random(graph, proba, labeled, pool, count, run):  # type: ignore[no-untyped-def]
    return np.random.default_rng(run).permutation(pool)[:count]


def least_confident(graph, proba, labeled, pool, count, run):  # type: ignore[no-untyped-def]
    return pool[np.argsort(proba[pool].max(axis=1))[:count]]


def most_confident(graph, proba, labeled, pool, count, run):  # type: ignore[no-untyped-def]
    return pool[np.argsort(-proba[pool].max(axis=1))[:count]]


def suggested(graph, proba, labeled, pool, count, run):  # type: ignore[no-untyped-def]
    return np.array([s.node for s in suggest(graph, proba, labeled, count).nodes])


WAYS: dict[str, Choose] = {
    "random": at_random,
    "least confident": least_confident,
    "most confident": most_confident,
    "suggest": suggested,
}


def add(split: Split, chosen: list[Nodes]) -> Split:
    """The split with more labels in each run."""
    train, pool = split.train.copy(), split.pool.copy()
    for run, nodes in enumerate(chosen):
        train[run, nodes], pool[run, nodes] = True, False
    return replace(split, train=train, pool=pool)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="gcn,dcgst")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--counts", default="14,28")
    options = parser.parse_args()
    graph = load("cora")
    split = sample(graph, "released", rate=0.02, runs=options.runs, first_run=options.first_run)
    for name in options.methods.split(","):
        before = method(name).fit_runs(graph, split)
        for count in map(int, options.counts.split(",")):
            for way, choose in WAYS.items():
                chosen = [
                    choose(
                        graph,
                        result.proba,
                        split.train[run] | split.val[run],
                        np.flatnonzero(split.pool[run] & (graph.labels >= 0)),
                        count,
                        split.runs[run],
                    )
                    for run, result in enumerate(before)
                ]
                more = add(split, chosen)
                hits = [
                    100 * (result.labels == graph.labels)[pool].mean()
                    for result, pool in zip(
                        method(name).fit_runs(graph, more), more.pool, strict=True
                    )
                ]
                print(
                    f"{name} +{count} {way}: {np.mean(hits):.1f} ± {np.std(hits):.1f}", flush=True
                )
