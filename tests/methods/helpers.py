"""Small problems and networks that several test files use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dcgst.features.graph_tensors import GraphTensors
from dcgst.features.sparse import normalize_adjacency, spmm
from dcgst.graph import Graph
from dcgst.methods import DCGST
from dcgst.methods.problem import Problem
from dcgst.methods.result import Selection
from dcgst.nn import Backbone, Output
from dcgst.nn.backbones import glorot, project
from dcgst.splits import Split
from dcgst.train.training import EpochEnd


class LinearBackbone(Backbone):
    """A custom backbone without activation: ``Z = A X W1``, ``logits = Z W2``."""

    hops = 1

    def build(self, streams):
        self.weight1 = glorot(streams, self.num_features, self.hidden)
        self.weight2 = glorot(streams, self.hidden, self.num_classes)

    @staticmethod
    def operator(adjacency):
        return normalize_adjacency(adjacency)

    def forward(self, x, operator, streams=None, rows=None):
        hidden = spmm(operator, self.project_features(x, streams).product)
        logits = project(hidden, self.weight2)
        return Output(hidden, logits if rows is None else logits[:, rows])


def ring(nodes: int) -> sp.csr_array:
    """Adjacency of nodes in a ring."""
    rows = np.arange(nodes)
    step = sp.csr_array((np.ones(nodes), (rows, (rows + 1) % nodes)), shape=(nodes, nodes))
    return sp.csr_array(step + step.T).astype(np.float32)


def path(labels) -> Graph:
    """Nodes in a row with one-hot features; label -1 means unknown."""
    n = len(labels)
    steps = np.stack([np.arange(n - 1), np.arange(1, n)])
    return Graph.from_edges(steps, np.eye(n, dtype=np.float32), labels)


def ring_problem(labels, num_classes=2, *, features=None, callbacks=(), **more) -> Problem:
    """Runs on nodes in a ring; labels ``(n,)`` or ``(R, n)``, default features one-hot."""
    labels = np.atleast_2d(labels)
    n = labels.shape[1]
    features = np.eye(n, dtype=np.float32) if features is None else features
    problem = Problem.build(GraphTensors.of(features, ring(n)), labels, num_classes, **more)
    return replace(problem, callbacks=tuple(callbacks))


def problem_of(graph: Graph, split: Split, seeds=None) -> Problem:
    """The problem of a graph and a split, with the features as they are."""
    return Problem.build(
        GraphTensors.of(graph.features, graph.adjacency),
        np.where(split.train, graph.labels, -1),
        graph.num_classes,
        val_labels=np.where(split.val, graph.labels, -1),
        pool=split.pool,
        seeds=seeds,
    )


def selection_of(predicted, selected, candidates=None, **more) -> Selection:
    """A selection with confidence .50, .51, … and rank 0, 1, … by node number."""
    predicted, selected = torch.tensor(predicted), torch.tensor(selected, dtype=torch.bool)
    candidates = selected if candidates is None else torch.tensor(candidates, dtype=torch.bool)
    number = torch.arange(predicted.shape[1]).expand_as(predicted)
    return Selection(
        predicted=predicted,
        confidence=0.5 + number / 100,
        candidates=candidates,
        rank=number,
        selected=selected,
        **more,
    )


def first_losses(events) -> list[float]:
    """Of the events passed to a callback, the loss of each training's first epoch; one run."""
    return [float(e.loss) for e in events if isinstance(e, EpochEnd) and e.number == 0]


def draw(seed: int, *shape: int) -> Tensor:
    """Normal random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def normalized(adjacency) -> np.ndarray:
    """``D^-1/2 (A + I) D^-1/2`` of a dense or sparse matrix, dense."""
    dense = adjacency.toarray() if sp.issparse(adjacency) else np.asarray(adjacency)
    loops = dense + np.eye(len(dense))
    scale = loops.sum(axis=1) ** -0.5
    return loops * scale[:, None] * scale


def cmd_by_hand(source, target, support: float) -> float:
    """Central moment discrepancy up to the fifth moment, for arrays ``(m, d)`` and ``(k, d)``."""
    means = [np.mean(z, axis=0) for z in (source, target)]
    total = np.linalg.norm(means[0] - means[1]) / support
    for k in range(2, 6):
        moments = [
            ((z - m) ** k).mean(axis=0) for z, m in zip((source, target), means, strict=True)
        ]
        total += np.linalg.norm(moments[0] - moments[1]) / support**k
    return float(total)


def quick_dcgst(**settings: Any) -> DCGST:
    """DC-GST with few epochs and stages, by default on a network without edges."""
    few = {"hidden": 8, "epochs": 6, "stage_epochs": 3, "student_epochs": 2, "max_stages": 3}
    network = {"backbone": "sign", "edge_predictor": False}
    return DCGST(**{**few, **network, **settings})
