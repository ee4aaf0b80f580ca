"""PyG ``HeteroData`` with one labeled type of nodes becomes a graph with several relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import FeatureMatrix, Graph
from dcgst.graph.cleaning import clean_edges, clean_mask, features_from_tensor
from dcgst.io.input import Input
from dcgst.numerics.spectral import spectral_features

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

NUM_SPECTRAL_FEATURES = 64
MOST_SHARING = 100
"""A node of another type connects its neighbors if there are at most so many."""

REVERSE = "rev_"
"""Prefix of the types of edges that ``ToUndirected`` of PyG adds."""


def is_hetero(data: Any) -> bool:
    """Whether an object is PyG ``HeteroData``."""
    return hasattr(data, "node_types") and hasattr(data, "edge_types")


def read_hetero(data: HeteroData, target: str | None = None) -> Input:
    """A graph of the labeled nodes.

    Edges between labeled nodes are relations. Nodes of another type connect labeled nodes that
    share them: they are a relation, and the mean of their features is added to those of the
    labeled nodes.

    Args:
        data: exactly one of its node types has ``y``.
        target: the type to predict; default the one with ``y``.

    Example:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> data = HeteroData()
        >>> data["paper"].x, data["paper"].y = torch.eye(3), torch.tensor([0, 1, -1])
        >>> data["author"].num_nodes = 2
        >>> data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
        >>> data["author", "wrote", "paper"].edge_index = torch.tensor([[0, 0, 1], [1, 2, 2]])
        >>> found = read_hetero(data)
        >>> {name: matrix.nnz // 2 for name, matrix in found.relations.items()}
        {'cites': 1, 'wrote (author)': 1}
    """
    target = _labeled_type(data) if target is None else target
    if target not in data.node_types:
        raise InputError(f"the data has no nodes of type {target!r}, which the model predicts")
    try:
        return _read(data, target)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the HeteroData cannot be read: {error}") from error


def _read(data: HeteroData, target: str) -> Input:
    count = int(data[target].num_nodes)
    within, between, notes = _edges_of(data, target)
    relations = {
        name: clean_edges(pairs, _weights(data[target, name, target]), count)[0]
        for name, pairs in within.items()
    }
    blocks = [] if data[target].get("x") is None else [features_from_tensor(data[target].x)]
    for (name, other), pairs in between.items():
        incidence = _incidence(pairs, count, int(data[other].num_nodes))
        relations[f"{name} ({other})"] = _sharing(incidence)
        if data[other].get("x") is not None:
            blocks.append(_means(incidence, features_from_tensor(data[other].x)))
            notes.append(f"features of {other}: means over {name}")
    relations = {name: matrix for name, matrix in relations.items() if matrix.nnz}
    if not relations:
        raise InputError(f"the data has no edge that connects two nodes of type {target!r}")
    return _to_input(data[target], target, blocks, relations, notes)


def _edges_of(
    data: HeteroData, target: str
) -> tuple[dict[str, NDArray[Any]], dict[tuple[str, str], NDArray[Any]], list[str]]:
    """Edges between nodes to predict by name; those to nodes of another type; and notes."""
    within: dict[str, NDArray[Any]] = {}
    between: dict[tuple[str, str], NDArray[Any]] = {}
    notes = [f"labeled nodes: {target}"]
    for source, name, end in sorted(data.edge_types, key=lambda kind: kind[1]):
        if (end, name.removeprefix(REVERSE), source) in data.edge_types and name.startswith(
            REVERSE
        ):
            continue
        if target not in (source, end):
            notes.append(f"edges {source} {name} {end}: not used")
            continue
        pairs = data[source, name, end].edge_index.numpy(force=True)
        if source == end:
            within[name] = pairs
            continue
        key = name, end if source == target else source
        pairs = pairs if source == target else pairs[::-1]
        between[key] = np.concatenate([between[key], pairs], axis=1) if key in between else pairs
    return within, between, notes


def _weights(edges: Any) -> NDArray[np.float64] | None:
    """``edge_weight`` of a type of edges, if it has any."""
    found = edges.get("edge_weight")
    return None if found is None else found.double().flatten().numpy(force=True)


def _to_input(
    store: Any,
    name: str,
    blocks: list[Any],
    relations: dict[str, sp.csr_array],
    notes: list[str],
) -> Input:
    total = sum(relations.values(), sp.csr_array(next(iter(relations.values())).shape))
    adjacency = sp.csr_array(total).tocoo()
    pairs = np.stack(adjacency.coords).astype(np.int64)
    if blocks:
        sparse = all(sp.issparse(block) for block in blocks)
        dense = [b.toarray() if sp.issparse(b) and not sparse else b for b in blocks]
        features = sp.csr_array(sp.hstack(dense)) if sparse else np.hstack(dense)
    else:
        matrix = sp.csr_array(adjacency)
        features = spectral_features(matrix.astype(np.float32), NUM_SPECTRAL_FEATURES)
        notes.append(f"no x: {features.shape[1]} spectral features are computed from the graph")
    labels = None if store.get("y") is None else store.y.numpy(force=True)
    masks = {
        key: clean_mask(mask if mask.dim() == 1 else mask[:, 0], f"{key}_mask")
        for key in ("train", "val", "test")
        if (mask := store.get(f"{key}_mask")) is not None
    }
    graph = Graph.from_edges(
        pairs,
        features.astype(np.float32),
        labels,
        weights=adjacency.data,
        masks=masks,
        name=name,
    )
    return Input(graph, spectral=not blocks, notes=tuple(notes), relations=relations)


def _labeled_type(data: HeteroData) -> str:
    labeled = [name for name in data.node_types if data[name].get("y") is not None]
    if len(labeled) != 1:
        found = ", ".join(labeled) or "none"
        raise InputError(
            f"exactly one node type must have labels (y), found {found}; the node types are: "
            f"{', '.join(data.node_types)}"
        )
    return str(labeled[0])


def _incidence(pairs: NDArray[np.int64], rows: int, columns: int) -> sp.csr_array:
    ones = np.ones(pairs.shape[1], dtype=np.float32)
    matrix = sp.csr_array(sp.coo_array((ones, (pairs[0], pairs[1])), shape=(rows, columns)))
    matrix.data[:] = 1  # repeated edges count once
    return matrix


def _means(incidence: sp.csr_array, x: FeatureMatrix) -> FeatureMatrix:
    """``(n, d)`` means of the features ``(m, d)`` of neighbors of another type."""
    degrees = np.maximum(np.asarray(incidence.sum(axis=1)), 1).astype(np.float32)
    scaled = sp.csr_array(incidence / degrees.reshape(-1, 1))
    return scaled @ x


def _sharing(incidence: sp.csr_array) -> sp.csr_array:
    """``(n, n)`` shared neighbors, each divided among those that share it; no self-loops."""
    sizes = np.asarray(incidence.sum(axis=0)).ravel()
    factor = np.where((sizes > 1) & (sizes <= MOST_SHARING), 1 / np.maximum(sizes - 1, 1), 0)
    shared = (incidence * factor[None].astype(np.float32)) @ incidence.T
    shared = sp.csr_array(shared)
    shared.setdiag(0)
    shared.eliminate_zeros()
    shared.sort_indices()
    return shared.astype(np.float32)
