"""Separate features of a node's neighbors in each kind of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dcgst.graph import FeatureMatrix, Graph
from dcgst.methods.relations import Relation, combine_relations
from dcgst.numerics.normalize import random_walk


def use_relations(
    graph: Graph, matrices: Mapping[str, sp.csr_array], relations: Sequence[Relation]
) -> Graph:
    """The graph with its kinds of edges weighted, and with the separate features of some of them.

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

    Kinds of edges may contradict each other: friends are of the same class, buyers and sellers are
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
