"""Compare weights of the columns of tables, by the accuracy of methods with few labels.

    python benchmarks/columns.py --graphs counties_winner,german --runs 3 --json

``equal`` is what ``dcgst`` does. ``before`` is what it did: weights by the logarithm of the number
of features, and inverse document frequency once more in methods that compare rows. Rules are
compared on runs from 10 on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from _common import show
from numpy.typing import NDArray

from dcgst import read
from dcgst.bench.suite import PER_CLASS, SAMPLERS
from dcgst.datasets import load
from dcgst.datasets.source import locate
from dcgst.datasets.tables import FILES, SOURCE
from dcgst.features.sparse import random_walk
from dcgst.graph import Graph
from dcgst.methods import Ensemble, method
from dcgst.methods.gaussian_process import Kernel
from dcgst.splits import Split, sample

GRAPHS = ("counties_economy", "counties_winner", "german", "wikispeedia", "facebook", "DE")
METHODS = ("mlp", "gcn", "sign", "em", "gp")
FLOOR = 0.1
"""Variance of a column that is no smoother than chance; one has 1.1."""

Weights = NDArray[np.float64]
"""``(c,)`` factors of the columns."""


class Blocks:
    """The features of each column, of total variance one."""

    def __init__(self, name: str) -> None:
        self.graph = load(name)
        nodes, edges, _ = (locate(SOURCE, f"{name}/{file}") for file in FILES)
        data = read(nodes, edges, labels_needed=False)
        assert data.encoder
        self.encoder, columns = data.encoder, data.encoder.columns
        self.names = [column.name for column in columns]
        self.sizes = np.array([column.size for column in columns])
        self.blocks = [sp.csr_array(c.transform(data.table[c.name])) for c in columns]
        self.variance = np.array([self._variance(block) for block in self.blocks])

    @staticmethod
    def _variance(block: sp.csr_array) -> float:
        center = block.mean(axis=0)
        return float(block.multiply(block).sum() / block.shape[0] - center @ center)

    def weighted(self, factors: Weights, ignore: tuple[str, ...] = ()) -> Graph:
        """The graph with columns multiplied by factors."""
        parts = zip(self.names, self.blocks, factors, strict=True)
        used = [block * float(factor) for name, block, factor in parts if name not in ignore]
        return replace(self.graph, features=self.encoder.join(used), columns_weighted=True)

    def smoothness(self) -> Weights:
        """One minus the squared difference over edges, divided by that of random pairs."""
        matrix, degrees = self.graph.adjacency, self.graph.adjacency.sum(axis=0)
        total, found = degrees.sum(), []
        for block in self.blocks:
            squares = degrees @ block.multiply(block).sum(axis=1) / total
            center = degrees @ block / total
            product = block.multiply(matrix @ block).sum() / total
            found.append(1 - (squares - product) / (squares - center @ center))
        return np.array(found)

    def dimensions(self) -> Weights:
        """Effective number of dimensions: squared trace of the covariance over its squared norm."""
        found = []
        for block in self.blocks:
            center = block.mean(axis=0)
            covariance = (block.T @ block).toarray() / block.shape[0] - np.outer(center, center)
            found.append(np.trace(covariance) ** 2 / (covariance**2).sum())
        return np.array(found)

    def by_labels(self, split: Split) -> Weights:
        """Variances from the marginal likelihood of the labels; one kernel per column and hop."""
        labeled = np.flatnonzero(split.train[0])
        others = np.arange(0, self.graph.num_nodes, max(1, self.graph.num_nodes // 400))
        nodes = np.concatenate([labeled, others])
        walk = random_walk(self.graph.adjacency).T.tocsr()[nodes]
        targets = F.one_hot(torch.tensor(self.graph.labels[labeled])).double()
        blocks = {}
        for name, block in zip(self.names, self.blocks, strict=True):
            for hops, rows in enumerate((block[nodes], walk @ block)):
                dense = torch.tensor(rows.toarray(), dtype=torch.float32)
                blocks[f"{name} {hops}"] = dense - dense.mean(0)
        kernel = Kernel(blocks, torch.arange(len(labeled)))
        kernel.fit(targets - targets.mean(0), 60, 0.3)
        weights = kernel.log_weights.softmax(0).numpy().reshape(-1, 2).sum(axis=1)
        return np.asarray(weights * len(self.names))


Rule = Callable[[Split], Graph]


def rules_of(own: Blocks) -> dict[str, Rule]:
    """The graph with weights by each rule."""
    logarithm = np.sqrt(np.log2(1 + own.sizes) / np.log2(1 + own.sizes.max()))
    # The total variance of a column was not one before, but that of its raw features.
    before = logarithm / np.array([column.weight for column in own.encoder.columns])
    smooth = FLOOR + own.smoothness().clip(0)
    rules: dict[str, Weights] = {
        "equal": np.ones(len(own.names)),
        "logarithm": logarithm,
        "smooth": np.sqrt(smooth),
        "dimensions": own.dimensions() ** -0.25,
    }

    def fixed(factors: Weights) -> Rule:
        graph = own.weighted(factors)
        return lambda split: graph

    graph = replace(own.weighted(before), columns_weighted=False)
    found = {"before": lambda split: graph, **{name: fixed(rules[name]) for name in rules}}
    found["labels"] = lambda split: own.weighted(np.sqrt(own.by_labels(split)))
    found["both"] = lambda split: own.weighted(np.sqrt(smooth * own.by_labels(split)))
    if {"county", "state"} <= set(own.names):
        ignored = own.weighted(np.ones(len(own.names)), ("county", "state"))
        found["ignored"] = lambda split: ignored
    return found


def measure(own: Blocks, rule: Rule, split: Split, methods: list[str]) -> dict[str, list[float]]:
    """Accuracy of each run on the unlabeled nodes, by method."""
    found: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(len(split)):
        run = split[number]
        graph = rule(run)
        for name in methods:
            model = Ensemble() if name == "ensemble" else method(name)
            (result,) = model.fit_runs(graph, run)
            right = result.proba.argmax(axis=1) == own.graph.labels
            found[name].append(round(float(right[run.pool[0]].mean()), 4))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--methods", default=",".join(METHODS), help="or ensemble")
    parser.add_argument("--rules", default="", help="default: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--first-run", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        own = Blocks(name)
        rules = rules_of(own)
        chosen = [key for key in options.rules.split(",") if key in rules] or list(rules)
        for sampler in SAMPLERS:
            split = sample(
                own.graph,
                sampler,
                per_class=PER_CLASS,
                runs=options.runs,
                first_run=options.first_run,
                val_count=0,
            )
            for rule in chosen:
                start = time.perf_counter()
                accuracy = measure(own, rules[rule], split, options.methods.split(","))
                record: dict[str, Any] = {"graph": name, "sampler": sampler, "rule": rule}
                seconds = round(time.perf_counter() - start, 1)
                if options.json:
                    show({**record, "accuracy": accuracy, "seconds": seconds}, as_json=True)
                else:
                    means = {key: 100 * mean(values) for key, values in accuracy.items()}
                    show({**record, **means, "seconds": seconds}, as_json=False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
