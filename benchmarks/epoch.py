"""Time of one epoch of GCN training on the CPU, compared with a standard PyG model.

Both models have two layers, the same widths, dropout on the input and the hidden layer, and Adam.

- ``ratio`` compares training steps alone.
- ``ratio_with_validation`` adds a validation after each step. PyG evaluates the whole graph; our
  training loop evaluates the receptive field of the validation nodes.
- ``ratio_huge_pages_for_both`` enables huge pages for PyG as well. Importing dcgst enables them for
  large tensors, which standard PyG code does not.
- ``loss_gap`` is the largest difference between the two losses over ten steps without dropout,
  starting from the same weights.

    python benchmarks/epoch.py --dataset cora --json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from _common import load_or_generate, show, time_alternately
from torch import Tensor

from dcgst.features.columns import to_features
from dcgst.features.sparse import SparseMatrix
from dcgst.graph import Graph
from dcgst.nn import GCNBackbone
from dcgst.nn.backbones import receptive_field
from dcgst.splits import Split, sample
from dcgst.train.device import locality_order
from dcgst.train.random import Streams
from dcgst.train.training import cross_entropy

PER_CLASS = 20
EPOCHS = {"cora": 30, "pubmed": 10, "ogbn-arxiv": 2}

Train = Callable[[int], list[float]]
"""Train for a number of epochs and return the loss of each."""


def load_problem(dataset: str) -> tuple[Graph, Split]:
    """Load a graph with its official split, or with sampled labels if it has none."""
    graph, _ = load_or_generate(dataset)
    official = {"train", "val"} <= graph.masks.keys()
    sampler = "official" if official else "uniform"
    return graph, sample(graph, sampler, per_class=None if official else PER_CLASS, runs=1)


def to_tensors(graph: Graph, split: Split) -> tuple[Tensor, Tensor, Tensor]:
    """Return the labels, the training nodes and the validation nodes."""
    rows = [torch.from_numpy(np.flatnonzero(mask[0])) for mask in (split.train, split.val)]
    return torch.tensor(graph.labels), rows[0], rows[1]


def dcgst_gcn(dataset: str, hidden: int, dropout: float, threads: int, validate: bool) -> Train:
    """Set up a GCN of this package."""
    torch.set_num_threads(threads)
    graph, split = load_problem(dataset)
    order = locality_order(graph.adjacency)
    if order is not None:
        graph, split = graph.reorder(order), split.reorder(order)
    labels, train, val = to_tensors(graph, split)
    x = to_features(graph.features)
    model = GCNBackbone([0], graph.num_features, hidden, graph.num_classes, dropout)
    operator = model.operator(SparseMatrix.from_scipy(graph.adjacency))
    x_val, operator_val, val_rows = receptive_field(x, operator, val, model.hops)
    streams = Streams([0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def run(epochs: int) -> list[float]:
        losses = []
        for _ in range(epochs):
            optimizer.zero_grad()
            logits = model(x, operator, streams, train).logits
            loss = cross_entropy(logits, labels[None, train]).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
            if validate:
                with torch.no_grad():
                    logits = model(x_val, operator_val, rows=val_rows).logits
                    cross_entropy(logits, labels[None, val])
        return losses

    return run


class PyGGCN(torch.nn.Module):
    """A standard two-layer GCN of PyG with the initial weights of ours."""

    def __init__(self, start: GCNBackbone, dropout: float) -> None:
        from torch_geometric.nn import GCNConv

        super().__init__()
        _, num_features, hidden = start.weight1.shape
        num_classes = start.weight2.shape[-1]
        self.dropout = dropout
        self.conv1 = GCNConv(num_features, hidden)
        self.conv2 = GCNConv(hidden, num_classes)
        self.conv1.lin.weight.data = start.weight1[0].T.detach().clone()
        self.conv2.lin.weight.data = start.weight2[0].T.detach().clone()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Compute the logits of all nodes."""
        x = F.dropout(x, p=self.dropout, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=self.dropout, training=self.training)
        out: Tensor = self.conv2(x, edge_index)
        return out


def pyg_gcn(dataset: str, hidden: int, dropout: float, threads: int, validate: bool) -> Train:
    """Set up a GCN of PyG."""
    torch.set_num_threads(threads)
    graph, split = load_problem(dataset)
    labels, train, val = to_tensors(graph, split)
    data = graph.to_pyg()
    model = PyGGCN(GCNBackbone([0], graph.num_features, hidden, graph.num_classes), dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def run(epochs: int) -> list[float]:
        losses = []
        for _ in range(epochs):
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data.x, data.edge_index)[train], labels[train])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
            if validate:
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(data.x, data.edge_index)[val], labels[val])
        return losses

    return run


def measure(dataset: str, hidden: int, threads: int, rounds: int) -> dict[str, Any]:
    """Measure one dataset."""
    implementations = {"ours": dcgst_gcn, "pyg": pyg_gcn, "pyg_huge_pages": pyg_gcn}
    common: dict[str, Any] = {"dataset": dataset, "hidden": hidden, "threads": threads}
    epochs = EPOCHS.get(dataset, 20)
    exact = time_alternately(implementations, 1, 10, dropout=0.0, validate=False, **common)
    gaps = np.abs(np.subtract(exact["ours"]["value"], exact["pyg"]["value"]))
    steps = time_alternately(implementations, rounds, epochs, dropout=0.5, validate=False, **common)
    validated = time_alternately(
        implementations, rounds, epochs, dropout=0.5, validate=True, **common
    )
    ours_ms, pyg_ms = steps["ours"]["ms"], steps["pyg"]["ms"]
    return {
        "dataset": dataset,
        "data": load_or_generate(dataset)[1],
        "hidden": hidden,
        "threads": threads,
        "ours_ms": ours_ms,
        "pyg_ms": pyg_ms,
        "ratio": pyg_ms / ours_ms,
        "ratio_with_validation": validated["pyg"]["ms"] / validated["ours"]["ms"],
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
