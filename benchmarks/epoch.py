"""One epoch of GCN training: ours against the usual PyG model, in one run on the CPU.

Both have two layers, the same widths, dropout on input and hidden layer, and Adam. ``ratio`` is of
training steps alone; ``ratio_with_validation`` adds what one does after each step: the usual code
evaluates the whole graph, ours the part that the validation nodes depend on. ``loss_gap`` is the
largest difference between the two losses over ten steps without dropout from the same weights.

Importing dcgst also puts large tensors on huge pages, which the usual code does not.
``ratio_huge_pages_for_both`` gives them to PyG as well: what the engine alone is worth.

    python benchmarks/epoch.py --dataset cora --json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from _common import alternate, graph_of, show
from torch import Tensor

from dcgst.engine.locality import locality_order
from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.training import cross_entropy
from dcgst.graph import Graph
from dcgst.nn import GCN
from dcgst.nn.base import features_on, receptive_field
from dcgst.splits import Split, sample

PER_CLASS = 20
EPOCHS = {"cora": 30, "pubmed": 10, "ogbn-arxiv": 2}


def problem(dataset: str) -> tuple[Graph, Split]:
    graph, _ = graph_of(dataset)
    official = {"train", "val"} <= graph.masks.keys()
    sampler = "official" if official else "uniform"
    return graph, sample(graph, sampler, per_class=None if official else PER_CLASS, runs=1)


def tensors(graph: Graph, split: Split) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, training rows, validation rows."""
    rows = [torch.from_numpy(np.flatnonzero(mask[0])) for mask in (split.train, split.val)]
    return torch.tensor(graph.labels), rows[0], rows[1]


def ours(
    dataset: str, hidden: int, dropout: float, threads: int, validate: bool
) -> Callable[[int], list[float]]:
    torch.set_num_threads(threads)
    graph, split = problem(dataset)
    order = locality_order(graph.adjacency)
    if order is not None:
        graph, split = graph.reorder(order), split.reorder(order)
    labels, train, val = tensors(graph, split)
    x = features_on(graph.features)
    model = GCN([0], graph.num_features, hidden, graph.num_classes, dropout)
    operator = model.operator(SparseMatrix.from_scipy(graph.adjacency))
    x_val, operator_val, inside = receptive_field(x, operator, val, model.hops)
    streams = Streams([0])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def run(epochs: int) -> list[float]:
        losses = []
        for _ in range(epochs):
            optimiser.zero_grad()
            logits = model(x, operator, streams, train).logits
            loss = cross_entropy(logits, labels[None, train]).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
            if validate:
                with torch.no_grad():
                    logits = model(x_val, operator_val, rows=inside).logits
                    cross_entropy(logits, labels[None, val])
        return losses

    return run


def pyg(
    dataset: str, hidden: int, dropout: float, threads: int, validate: bool
) -> Callable[[int], list[float]]:
    from torch_geometric.nn import GCNConv

    torch.set_num_threads(threads)
    graph, split = problem(dataset)
    labels, train, val = tensors(graph, split)
    data = graph.to_pyg()
    start = GCN([0], graph.num_features, hidden, graph.num_classes)

    class Usual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = GCNConv(graph.num_features, hidden)
            self.conv2 = GCNConv(hidden, graph.num_classes)
            self.conv1.lin.weight.data = start.weight1[0].T.detach().clone()
            self.conv2.lin.weight.data = start.weight2[0].T.detach().clone()

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = F.dropout(x, p=dropout, training=self.training)
            x = self.conv1(x, edge_index).relu()
            x = F.dropout(x, p=dropout, training=self.training)
            out: Tensor = self.conv2(x, edge_index)
            return out

    model = Usual()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def run(epochs: int) -> list[float]:
        losses = []
        for _ in range(epochs):
            model.train()
            optimiser.zero_grad()
            loss = F.cross_entropy(model(data.x, data.edge_index)[train], labels[train])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
            if validate:
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(data.x, data.edge_index)[val], labels[val])
        return losses

    return run


def measure(dataset: str, hidden: int, threads: int, rounds: int) -> dict[str, Any]:
    sides = {"ours": ours, "pyg": pyg, "pyg_huge_pages": pyg}
    same: dict[str, Any] = {"dataset": dataset, "hidden": hidden, "threads": threads}
    epochs = EPOCHS.get(dataset, 20)
    exact = alternate(sides, 1, 10, dropout=0.0, validate=False, **same)
    gaps = np.abs(np.subtract(exact["ours"]["value"], exact["pyg"]["value"]))
    steps = alternate(sides, rounds, epochs, dropout=0.5, validate=False, **same)
    both = alternate(sides, rounds, epochs, dropout=0.5, validate=True, **same)
    ours_ms, pyg_ms = steps["ours"]["ms"], steps["pyg"]["ms"]
    return {
        "dataset": dataset,
        "data": graph_of(dataset)[1],
        "hidden": hidden,
        "threads": threads,
        "ours_ms": ours_ms,
        "pyg_ms": pyg_ms,
        "ratio": pyg_ms / ours_ms,
        "ratio_with_validation": both["pyg"]["ms"] / both["ours"]["ms"],
        "ratio_huge_pages_for_both": steps["pyg_huge_pages"]["ms"] / ours_ms,
        "loss_gap": float(gaps.max()),
        "ours_peak_mib": steps["ours"]["peak_mib"],
        "pyg_peak_mib": steps["pyg"]["peak_mib"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--dataset", default="cora,pubmed,ogbn-arxiv", help="comma-separated")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for dataset in options.dataset.split(","):
        show(measure(dataset, options.hidden, options.threads, options.rounds), options.json)


if __name__ == "__main__":
    main()
