"""Graphs with several relations: how much each says about the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.features.columns import to_features, unit_rows, weight_columns
from dcgst.features.sparse import SparseMatrix, random_walk
from dcgst.graph import UNKNOWN, FeatureMatrix, Graph
from dcgst.methods.gaussian_process import (
    KERNEL_LABELS,
    Kernel,
    scale_of_logits,
    spread_over_classes,
)

STEPS, STRENGTH = 60, 0.3
"""Steps of the fit of the kernel, and strength of the prior of its weights."""

OTHER_NODES = 400
"""Nodes besides the labeled ones, by which distances are scaled."""


@dataclass(frozen=True)
class LabelSample:
    """Labeled nodes and some others, in the order of their ids.

    Attributes:
        x: ``(n, d)`` weighted features of all nodes, in rows of length one.
        nodes: positions of the labeled nodes, then of the others.
        labels: ``(m,)`` class codes of the labeled nodes.
        num_classes: number of classes.
    """

    x: sp.csr_array
    nodes: NDArray[np.int64]
    labels: Tensor
    num_classes: int

    @classmethod
    def of(cls, graph: Graph, labeled: NDArray[np.bool_]) -> LabelSample:
        order = graph.id_order
        codes = torch.tensor(np.where(labeled, graph.labels, UNKNOWN)[order])
        chosen = order[spread_over_classes(codes, graph.num_classes, KERNEL_LABELS).numpy()]
        others = order[:: max(1, graph.num_nodes // OTHER_NODES)]
        weighted = weight_columns(to_features(graph.features), graph.columns_weighted)
        features = unit_rows(weighted)
        x = features.to_scipy() if isinstance(features, SparseMatrix) else features.numpy()
        nodes = np.concatenate([chosen, others])
        return cls(x, nodes, torch.tensor(graph.labels[chosen]), graph.num_classes)

    def log_likelihood(self, matrix: sp.csr_array | None) -> Tensor:
        """``(m,)`` of each label, predicted by a Gaussian process from all others.

        Args:
            matrix: the edges; None for features alone.
        """
        blocks = {"features": self.x[self.nodes]}
        degrees = None
        if matrix is not None:
            walk = random_walk(matrix).T.tocsr()  # rows sum to one
            step = walk[self.nodes]
            blocks |= {"1 hop": step @ self.x, "2 hops": (step @ walk) @ self.x}
            degrees = torch.tensor(np.log1p(np.diff(matrix.indptr)[self.nodes]))[:, None].float()
        dense = {name: _centered(block) for name, block in blocks.items()}
        if degrees is not None and float(degrees.std()) > 0:
            dense["degree"] = (degrees - degrees.mean()) / degrees.std()
        return self._left_out(dense)

    def log_likelihood_apart(self, relations: Mapping[str, sp.csr_array]) -> Tensor:
        """The same with separate features of the neighbors in each relation."""
        blocks = {"features": self.x[self.nodes]}
        for name, matrix in relations.items():
            blocks[f"relation {name}"] = random_walk(matrix).T.tocsr()[self.nodes] @ self.x
        return self._left_out({name: _centered(block) for name, block in blocks.items()})

    def _left_out(self, blocks: dict[str, Tensor]) -> Tensor:
        targets = F.one_hot(self.labels, self.num_classes).double()
        targets = targets - targets.mean(0)
        kernel = Kernel(blocks, torch.arange(len(self.labels)))
        kernel.fit(targets, STEPS, STRENGTH)
        inverse = kernel.matrix().inverse()
        left_out = targets - (inverse @ targets) / inverse.diagonal()[:, None]
        log_proba = (scale_of_logits(left_out, self.labels) * left_out).log_softmax(-1)
        return log_proba[torch.arange(len(self.labels)), self.labels]


def _centered(block: Any) -> Tensor:
    """Rows of length one after centering."""
    dense = block.toarray() if sp.issparse(block) else np.asarray(block)
    rows = torch.tensor(dense, dtype=torch.float32)
    return F.normalize(rows - rows.mean(0), dim=-1)


SMALLEST = 0.2
"""Relations with a smaller share of the largest weight are left out."""

ERRORS = 2.0
"""A gain in likelihood counts if it is so many standard errors above zero."""

FEW_LABELS = 20
"""With fewer labels, relations are not compared: differences by chance would look large."""

FEW_EDGES = 10
"""With fewer edges between labeled nodes, their homophily is not shown."""


@dataclass(frozen=True)
class Relation:
    """What is known about one relation.

    Attributes:
        name: its name.
        edges: number of edges.
        coverage: share of the nodes that have such an edge.
        homophily: share of the edges between labeled nodes that connect the same class; None
            without such edges.
        by_chance: the share that random edges with the same ends would have.
        labeled: number of edges between labeled nodes.
        weight: its part in the graph that is fitted; zero if it is left out, the largest is one.
        own_features: whether the mean features of its neighbors are features of their own.
        factor: of its edges in the graph that is fitted; None if it was not stored.
    """

    name: str
    edges: int
    coverage: float
    homophily: float | None
    by_chance: float | None
    labeled: int
    weight: float
    own_features: bool = False
    factor: float | None = None

    def describe(self) -> str:
        """One line for the user."""
        size = f"{self.edges:,} edges, {self.coverage:.0%} of the nodes"
        used = f"weight {self.weight:.2f}" if self.weight else "left out"
        if self.own_features:
            used = "separate features"
        if self.homophily is None or self.labeled < FEW_EDGES:
            return f"relation {self.name}: {size}, {used}"
        same = f"homophily {self.homophily:.2f} (by chance {self.by_chance:.2f})"
        return f"relation {self.name}: {size}, {same}, {used}"


def verdict(relations: Sequence[Relation]) -> str:
    """How the relations are used, in one sentence."""
    edges = sum(relation.edges for relation in relations)
    used = [relation for relation in relations if relation.weight]
    apart = [relation.name for relation in relations if relation.own_features]
    if apart:
        return (
            f"The relations {', '.join(apart)} have separate features: they predict "
            "left-out labels better than the features of all neighbors"
        )
    if all(relation.weight == 1 for relation in relations):
        alike = f"All {len(relations)} relations are used alike"
        return f"{alike}: the labels show no difference between them"
    names = ", ".join(relation.name for relation in used)
    count = sum(relation.edges for relation in used)
    return f"Of {edges:,} edges, {count:,} are used ({names}): they predict left-out labels better"


def weigh_relations(
    graph: Graph, relations: Mapping[str, sp.csr_array], labeled: NDArray[np.bool_]
) -> list[Relation]:
    """Weigh the relations of a graph by how much they help to predict the labels.

    A Gaussian process predicts each label from all others. It reads the features of a node, their
    means over its neighbors after one and two steps, and its number of neighbors, in one relation
    or in all of them together. The weight of a relation is its gain in log-likelihood over features
    alone. The weights are used only if the weighted edges are better than all edges by more than
    :data:`ERRORS` standard errors; else, and with few labels, all relations have weight one. If the
    relations that gain something are better with separate features, in the same sense, each gets
    features of its own.

    Args:
        graph: the graph, with the edges of all relations.
        relations: ``(n, n)`` symmetric adjacency of each relation.
        labeled: ``(n,)`` bool, nodes whose labels are used.
    """
    sample = LabelSample.of(graph, labeled)
    if len(sample.labels) < FEW_LABELS:
        return [
            replace(describe_relation(name, matrix, graph, labeled, 1.0), factor=1.0)
            for name, matrix in relations.items()
        ]
    alone, together = sample.log_likelihood(None), sample.log_likelihood(graph.adjacency)
    each = {name: sample.log_likelihood(matrix) for name, matrix in relations.items()}
    weights = _by_gain({name: own - alone for name, own in each.items()})
    used = {name: relations[name] for name, weight in weights.items() if weight > 0}
    combined = combine_relations(relations, weights)
    best = together if combined is None else sample.log_likelihood(combined)
    if not is_above(best, together):
        best, weights = together, dict.fromkeys(relations, 1.0)
    apart = len(used) > 1 and is_above(sample.log_likelihood_apart(used), best)
    factors = scale_factors(relations, weights)
    described = (
        describe_relation(name, matrix, graph, labeled, weights[name])
        for name, matrix in relations.items()
    )
    return [
        replace(
            relation,
            own_features=apart and relation.name in used,
            factor=factors.get(relation.name, 0.0),
        )
        for relation in described
    ]


def _by_gain(gains: Mapping[str, Tensor]) -> dict[str, float]:
    """Weights in proportion to the sums of gains ``(m,)``; zero if they may be chance."""
    totals = {name: float(gain.sum()) for name, gain in gains.items()}
    best = max(totals, key=lambda name: totals[name])
    weights = {
        name: round(total / totals[best], 2)
        if total >= SMALLEST * totals[best] > 0 and is_above(gains[name], 0 * gains[name])
        else 0.0
        for name, total in totals.items()
    }
    return {**weights, best: 1.0}


def is_above(left: Tensor, right: Tensor) -> bool:
    """Whether log-likelihoods ``(m,)`` of the same labels are higher, beyond chance."""
    difference = left - right
    error = float(difference.std()) * float(len(difference)) ** 0.5
    return bool(float(difference.sum()) > max(ERRORS * error, 1e-6))


def combine_relations(
    relations: Mapping[str, sp.csr_array],
    weights: Mapping[str, float],
    factors: Mapping[str, float] | None = None,
) -> sp.csr_array | None:
    """The weighted sum of adjacency matrices; None if all have the same weight.

    Args:
        relations: ``(n, n)`` adjacency of each relation.
        weights: of the relations of the fit by name; other relations are left out.
        factors: of the edges of each relation in the fit; default: see :func:`scale_factors`.
    """
    known = [relations[name] for name in relations if name in weights]
    if known and all(weights.get(name, 1.0) == 1.0 for name in relations):
        # As in the fit, edges keep their own weights, the largest if there are several.
        return None if len(known) == len(relations) else _union(known)
    used = {name: weights[name] for name in relations if weights.get(name, 0) > 0}
    if not used:
        raise InputError(
            f"none of the relations {', '.join(relations)} is one of those that the fit uses: "
            f"{', '.join(name for name, weight in weights.items() if weight > 0)}"
        )
    factors = scale_factors(relations, weights) if factors is None else factors
    total: sp.csr_array | None = None
    for name in used:
        factor = np.float32(factors[name])
        own = relations[name] if factor == 1 else relations[name] * factor
        total = own if total is None else total + own
    combined = sp.csr_array(total)
    combined.sort_indices()
    return combined.astype(np.float32)


def scale_factors(
    relations: Mapping[str, sp.csr_array], weights: Mapping[str, float]
) -> dict[str, float]:
    """Factors of the edges of each relation that is used.

    If the weights differ, relations are scaled to the mean weight of a node's edges in the relation
    of the largest weight. Arguments as in :func:`combine_relations`.
    """
    used = {name: weights[name] for name in relations if weights.get(name, 0) > 0}
    if all(weights.get(name, 1.0) == 1.0 for name in relations):
        return dict.fromkeys(used, 1.0)
    largest = max(used, key=lambda name: used[name])
    mean = _mean_degree(relations[largest])
    return {name: weight * mean / _mean_degree(relations[name]) for name, weight in used.items()}


def _union(matrices: Sequence[sp.csr_array]) -> sp.csr_array:
    """The edges of all matrices, each with its largest weight."""
    total = matrices[0]
    for matrix in matrices[1:]:
        total = sp.csr_array(total.maximum(matrix))
    total.sort_indices()
    return total


def _mean_degree(matrix: sp.csr_array) -> float:
    """Mean weight of the edges of a node that has any."""
    return float(matrix.sum()) / max(1, int((np.diff(matrix.indptr) > 0).sum()))


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
    edges, between = int(matrix.nnz // 2), int(known.sum() // 2)
    return Relation(name, edges, coverage, homophily, by_chance, between, weight)


def use_relations(
    graph: Graph, matrices: Mapping[str, sp.csr_array], relations: Sequence[Relation]
) -> Graph:
    """The graph with its relations weighted, and with the separate features of some of them.

    Args:
        graph: with the edges of all relations.
        matrices: ``(n, n)`` symmetric adjacency of each relation of this graph.
        relations: what was found about the relations in the fit.
    """
    combined = combine_relations(
        matrices, {own.name: own.weight for own in relations}, factors_of(relations)
    )
    empty = sp.csr_array(graph.adjacency.shape, dtype=np.float32)
    apart = {own.name: matrices.get(own.name, empty) for own in relations if own.own_features}
    features = add_relation_features(graph.features, apart) if apart else graph.features
    adjacency = graph.adjacency if combined is None else combined
    return replace(graph, adjacency=adjacency, features=features)


def factors_of(relations: Sequence[Relation]) -> dict[str, float] | None:
    """Factors of the edges of each relation in the fit; None if they are not known."""
    factors = {own.name: own.factor for own in relations if own.factor is not None}
    return factors if len(factors) == len(relations) else None


def add_relation_features(
    features: FeatureMatrix, relations: Mapping[str, sp.csr_array]
) -> FeatureMatrix:
    """Append the means of the features over the neighbors in each relation.

    Relations may contradict each other: friends are of the same class, buyers and sellers are
    not. Their sum is not informative, but methods can learn from separate features. Nothing is
    learned here, so another graph gets the same columns.

    Args:
        features: ``(n, d)``.
        relations: ``(n, n)`` symmetric adjacency of each relation.

    Returns:
        ``(n, d (1 + number of relations))``.
    """
    blocks = [features, *(random_walk(matrix).T @ features for matrix in relations.values())]
    if sp.issparse(features):
        return sp.csr_array(sp.hstack(blocks)).astype(np.float32)
    return np.hstack(blocks).astype(np.float32)
