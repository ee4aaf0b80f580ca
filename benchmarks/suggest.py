"""Accuracy on Cora after adding labels chosen by `suggest`, at random or by confidence.

Each strategy adds the same number of labels, and the method is fitted again. The output is the
accuracy on the nodes that are still unlabeled: mean ± standard deviation over the runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dcgst import Split, load, method, sample
from dcgst.graph import Graph
from dcgst.insight.suggestion import suggest

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """What a strategy can use in one run.

    Attributes:
        graph: The graph.
        proba: Predicted probabilities, ``(n, C)``.
        labeled: Mask of the labeled nodes.
        pool: Nodes to choose from.
        run: Number of the run.
    """

    graph: Graph
    proba: NDArray[np.float32]
    labeled: NDArray[np.bool_]
    pool: Nodes
    run: int

    @property
    def confidence(self) -> NDArray[np.float32]:
        """Highest probability of each node of the pool."""
        confidence: NDArray[np.float32] = self.proba[self.pool].max(axis=1)
        return confidence


def choose_randomly(state: State, count: int) -> Nodes:
    """Choose nodes uniformly at random."""
    return np.random.default_rng(state.run).permutation(state.pool)[:count]


def choose_least_confident(state: State, count: int) -> Nodes:
    """Choose the nodes with the lowest confidence."""
    return state.pool[np.argsort(state.confidence)[:count]]


def choose_most_confident(state: State, count: int) -> Nodes:
    """Choose the nodes with the highest confidence."""
    return state.pool[np.argsort(-state.confidence)[:count]]


def choose_suggested(state: State, count: int) -> Nodes:
    """Choose the nodes that ``suggest`` returns."""
    suggestions = suggest(state.graph, state.proba, state.labeled, count).nodes
    return np.array([suggestion.node for suggestion in suggestions])


STRATEGIES: dict[str, Callable[[State, int], Nodes]] = {
    "random": choose_randomly,
    "least confident": choose_least_confident,
    "most confident": choose_most_confident,
    "suggest": choose_suggested,
}


def add_labels(split: Split, nodes: list[Nodes]) -> Split:
    """Move nodes of each run from the pool to the training set."""
    train, pool = split.train.copy(), split.pool.copy()
    for run, chosen in enumerate(nodes):
        train[run, chosen], pool[run, chosen] = True, False
    return replace(split, train=train, pool=pool)


def measure(name: str, graph: Graph, split: Split) -> list[float]:
    """Fit a method and return the accuracy on the pool of each run, in percent."""
    results = method(name).fit_runs(graph, split)
    return [
        100 * float((result.labels == graph.labels)[pool].mean())
        for result, pool in zip(results, split.pool, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="gcn,dcgst")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--counts", default="14,28")
    options = parser.parse_args()
    graph = load("cora")
    split = sample(graph, "released", rate=0.02, runs=options.runs, first_run=options.first_run)
    for name in options.methods.split(","):
        states = [
            State(
                graph,
                result.proba,
                split.train[run] | split.val[run],
                np.flatnonzero(split.pool[run] & (graph.labels >= 0)),
                split.runs[run],
            )
            for run, result in enumerate(method(name).fit_runs(graph, split))
        ]
        for count in map(int, options.counts.split(",")):
            for strategy, choose in STRATEGIES.items():
                extended = add_labels(split, [choose(state, count) for state in states])
                accuracies = measure(name, graph, extended)
                mean, std = np.mean(accuracies), np.std(accuracies)
                print(f"{name} +{count} {strategy}: {mean:.1f} ± {std:.1f}", flush=True)


if __name__ == "__main__":
    main()
