"""Graphs with several kinds of edges: how much each kind says about the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN, Graph
from dcgst.methods.gaussian_process import (
    KERNEL_LABELS,
    Kernel,
    scale_of_logits,
    spread_over_classes,
)
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.numerics.propagation import DEGREE, HOPS

STEPS, STRENGTH = 60, 0.3
"""Steps of the fit of the kernel, and strength of the prior of its weights."""

SMALLEST = 0.2
"""Relations with a smaller share of the largest weight are left out."""

SMALLEST_GAIN = 1.0
"""A smaller gain in log-likelihood of all labels is noise."""


@dataclass(frozen=True)
class Relation:
    """What is known about one kind of edges.

    Attributes:
        name: its name.
        edges: number of edges.
        coverage: share of the nodes that have such an edge.
        homophily: share of the edges between labeled nodes that connect the same class; None
            without such edges.
        by_chance: the share that random edges with the same ends would have.
        weight: its part in the graph that is fitted; zero if it is left out, the largest is one.
    """

    name: str
    edges: int
    coverage: float
    homophily: float | None
    by_chance: float | None
    weight: float

    def describe(self) -> str:
        """One line for the user."""
        same = "no edges between labeled nodes"
        if self.homophily is not None and self.by_chance is not None:
            same = f"homophily {self.homophily:.2f} (by chance {self.by_chance:.2f})"
        used = f"weight {self.weight:.2f}" if self.weight else "left out"
        size = f"{self.edges:,} edges, {self.coverage:.0%} of the nodes"
        return f"relation {self.name}: {size}, {same}, {used}"


def weigh_relations(
    graph: Graph, relations: Mapping[str, sp.csr_array], labeled: NDArray[np.bool_]
) -> list[Relation]:
    """Weigh the relations of a graph by how much they help to predict the labels.

    The weight of a relation is the gain in log-likelihood of left-out labels, when a Gaussian
    process reads, besides the features of a node, their means over its neighbors and its number of
    neighbors. If no relation gains anything, all have the same weight.

    Args:
        graph: the graph; its adjacency is not used.
        relations: ``(n, n)`` symmetric adjacency of each relation.
        labeled: ``(n,)`` bool, nodes whose labels are used.
    """
    gains = _gains(graph, relations, labeled)
    largest = max(gains.values())
    kept = dict.fromkeys(relations, 1.0)
    if largest > SMALLEST_GAIN:
        shares = {name: gain / largest for name, gain in gains.items()}
        kept = {name: share if share >= SMALLEST else 0.0 for name, share in shares.items()}
    return [
        describe_relation(name, matrix, graph, labeled, kept[name])
        for name, matrix in relations.items()
    ]


def combine_relations(
    relations: Mapping[str, sp.csr_array], weights: Mapping[str, float]
) -> sp.csr_array:
    """The weighted sum of adjacency matrices, each divided by its mean degree.

    Args:
        relations: ``(n, n)`` adjacency of each relation.
        weights: of some relations by name; others are left out.
    """
    used = {name: weights[name] for name in relations if weights.get(name, 0) > 0}
    if not used:
        raise InputError(
            f"none of the relations {', '.join(relations)} is one of those of the fit: "
            f"{', '.join(name for name, weight in weights.items() if weight > 0)}"
        )
    if len(used) == 1:
        (name,) = used
        return relations[name]
    total: sp.csr_array | None = None
    for name, weight in used.items():
        matrix = relations[name]
        connected = int((np.diff(matrix.indptr) > 0).sum())
        own = matrix * np.float32(weight * connected / max(float(matrix.sum()), 1e-30))
        total = own if total is None else total + own
    assert total is not None
    combined = sp.csr_array(total.astype(np.float32))
    combined.sort_indices()
    return combined


def describe_relation(
    name: str, matrix: sp.csr_array, graph: Graph, labeled: NDArray[np.bool_], weight: float
) -> Relation:
    """Count the edges of a relation, and compare the classes at their ends."""
    labels = np.where(labeled, graph.labels, UNKNOWN)
    coo = matrix.tocoo()
    left, right = labels[coo.row], labels[coo.col]
    known = (left != UNKNOWN) & (right != UNKNOWN)
    homophily = by_chance = None
    if known.any():
        homophily = float((left == right)[known].mean())
        shares = np.bincount(left[known], minlength=graph.num_classes) / known.sum()
        by_chance = float((shares**2).sum())
    coverage = float((np.diff(matrix.indptr) > 0).mean())
    return Relation(name, int(matrix.nnz // 2), coverage, homophily, by_chance, weight)


def _gains(
    graph: Graph, relations: Mapping[str, sp.csr_array], labeled: NDArray[np.bool_]
) -> dict[str, float]:
    """Log-likelihood of left-out labels with each relation, minus that with features alone."""
    labels = torch.tensor(np.where(labeled, graph.labels, UNKNOWN))
    nodes = spread_over_classes(labels, graph.num_classes, KERNEL_LABELS)
    alone: float | None = None
    gains = {}
    for name, matrix in relations.items():
        blocks = GraphTensors(graph.features, matrix).propagated
        if alone is None:
            features = {HOPS[0]: blocks[HOPS[0]]}
            alone = left_out_log_likelihood(features, nodes, labels, graph.num_classes)
        own = {block: blocks[block] for block in (*HOPS[:3], DEGREE)}
        gains[name] = left_out_log_likelihood(own, nodes, labels, graph.num_classes) - alone
    return gains


def left_out_log_likelihood(
    blocks: dict[str, Tensor], nodes: Tensor, labels: Tensor, num_classes: int
) -> float:
    """Log-likelihood of labels, each predicted by a Gaussian process from all others.

    Args:
        blocks: ``(n, d)`` features by name; their weights in the kernel are learned.
        nodes: labeled nodes.
        labels: ``(n,)`` class codes.
        num_classes: number of classes.
    """
    own = labels[nodes]
    targets = F.one_hot(own, num_classes).double()
    targets = targets - targets.mean(0)
    kernel = Kernel(blocks, nodes)
    kernel.fit(targets, STEPS, STRENGTH)
    inverse = kernel.matrix().inverse()
    left_out = targets - (inverse @ targets) / inverse.diagonal()[:, None]
    log_proba = (scale_of_logits(left_out, own) * left_out).log_softmax(-1)
    return float(log_proba[torch.arange(len(own)), own].sum())
