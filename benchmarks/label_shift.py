"""Shift of biased and of random training labels in propagated features, as a Markdown table.

    python benchmarks/label_shift.py

Released labels and random ones of runs 0 to 9, at the label rates of the paper. Nothing is trained.
"""

from __future__ import annotations

import torch

from dcgst.bench.experiments import RATES
from dcgst.datasets import load
from dcgst.features.columns import to_features
from dcgst.features.sparse import SparseMatrix, normalize_adjacency
from dcgst.methods.dcgst.candidates import propagated_features
from dcgst.shift.cmd import labeled_shift
from dcgst.splits import sample

RUNS = 10


def main() -> None:
    """Print one line for each data set and label rate."""
    print("| | rate | biased | random | difference ± standard error |\n|---|---|---|---|---|")
    for name in ("cora", "citeseer", "pubmed"):
        graph = load(name)
        operator = normalize_adjacency(SparseMatrix.from_scipy(graph.adjacency))
        z = propagated_features(to_features(graph.features), operator).expand(RUNS, -1, -1)
        for rate in RATES[name]:
            shift = []
            for sampler in ("released", "uniform"):
                split = sample(graph, sampler, rate=rate, runs=RUNS)
                train, pool = torch.tensor(split.train), torch.tensor(split.pool)
                shift.append(labeled_shift(z, train, pool, 1.0).double())
            change = shift[0] - shift[1]
            error = float(change.std()) / RUNS**0.5
            means = " | ".join(f"{float(own.mean()):.3f}" for own in shift)
            gap = f"{float(change.mean()):+.3f} ± {error:.3f}"
            print(f"| {name} | {100 * rate:g}% | {means} | {gap} |")


if __name__ == "__main__":
    main()
