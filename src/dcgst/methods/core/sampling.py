"""Large graphs: a method is fitted to a sample of the nodes and applied to all in blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.device import resolve_device
from dcgst.engine.random import Purpose, derive
from dcgst.graph import UNKNOWN, Graph
from dcgst.numerics.columns import MOST_COLUMNS
from dcgst.numerics.graph_sample import NEIGHBORS, GraphSample, draw_sample
from dcgst.numerics.graph_tensors import Learned
from dcgst.numerics.large_graph import LargeGraph
from dcgst.numerics.matrix import open_workspace
from dcgst.numerics.propagation import DIMENSIONS, HOPS
from dcgst.numerics.views import FILTERS
from dcgst.splits import Split

if TYPE_CHECKING:
    from dcgst.methods.core.base import Method

LARGE = 50_000
"""Number of nodes from which a method is fitted to a sample."""

POOL_NODES = 50_000
GIVEN_NODES = 100_000
"""Most nodes of a sample: of those to predict, and of those with a given label."""

LABEL_MATRICES = 3
"""Matrices with a column per class that label propagation and Correct and Smooth need."""


@contextmanager
def sample_of(
    method: Method, graph: Graph, split: Split, checkpoint: Path | None, *, prepared: bool = False
) -> Iterator[GraphSample]:
    """A sample of the nodes of a large graph, with all or many of the given labels.

    Args:
        method: scales features, and has the seed.
        graph: the graph.
        split: one or several runs.
        checkpoint: folder for files; default a temporary one, if files are needed.
        prepared: whether the files are complete already, made by another process.
    """
    chosen = choose_nodes(graph, split, method.seed)
    reserved = _fit_memory(chosen.size, graph)
    folder = checkpoint and checkpoint / "matrices"
    with open_large(method, graph, reserved, folder=folder, prepared=prepared) as large:
        yield draw_sample(large, chosen)


@contextmanager
def open_large(
    method: Method,
    graph: Graph,
    reserved: int,
    *,
    folder: Path | None = None,
    prepared: bool = False,
    learned: Learned | None = None,
) -> Iterator[LargeGraph]:
    """A graph whose features are propagated in blocks.

    Args:
        method: scales features.
        graph: the graph.
        reserved: bytes of memory that are needed for something else.
        folder: for files; default a temporary one, if files are needed.
        prepared: whether the files are complete already, made by another process.
        learned: of the graph that a model was fitted on, if it is another one.
    """
    device = resolve_device(method.device)
    if learned is not None:
        device = learned.propagation.factor.device
    with open_workspace(
        graph.num_nodes,
        _columns(graph),
        folder,
        prepared=prepared,
        device=device,
        reserved=reserved,
    ) as workspace:
        yield LargeGraph(
            graph.features,
            graph.adjacency,
            method.scale_features,
            workspace,
            weighted=graph.weighted,
            device=device,
            learned=learned,
            columns_weighted=graph.columns_weighted,
        )


def _fit_memory(chosen: int, graph: Graph) -> int:
    """Approximate memory of a fit to a sample, its neighbors included, in bytes; measured."""
    nodes = min((1 + NEIGHBORS) * chosen, graph.num_nodes)
    return nodes * (6000 + 100 * graph.num_classes)


def _columns(graph: Graph) -> int:
    """Columns of all matrices that a fit keeps."""
    smoothed = 2 * len(FILTERS) * min(MOST_COLUMNS, graph.num_features)
    by_hops = (len(HOPS) + 1) * min(DIMENSIONS, graph.num_features)
    return smoothed + by_hops + LABEL_MATRICES * graph.num_classes


def restrict(split: Split, sample: GraphSample) -> Split:
    """The split of the nodes of a sample; nodes that are only neighbors have no role."""
    nodes = sample.positions
    train, val, pool = (
        mask[:, nodes] & sample.chosen for mask in (split.train, split.val, split.pool)
    )
    return dataclasses.replace(split, train=train, val=val, pool=pool)


def choose_nodes(graph: Graph, split: Split, seed: int) -> NDArray[np.int64]:
    """Nodes of a sample, sorted: at random, the same whatever the order of the rows in a file."""
    rng = np.random.default_rng(derive(seed, Purpose.SAMPLE))
    order = graph.id_order

    def some(mask: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
        nodes = order[mask[order]]
        return nodes if nodes.size <= most else rng.choice(nodes, most, replace=False)

    train = _some_of_each_class(order, np.asarray(split.train.any(axis=0)), graph.labels, rng)
    val = some(np.asarray(split.val.any(axis=0)), GIVEN_NODES)
    pool = some(np.asarray(split.pool.any(axis=0)), POOL_NODES)
    return np.unique(np.concatenate([train, val, pool]))


def some_labeled(graph: Graph, labels: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Nodes of known class ``(n,)``, -1 elsewhere, sorted; if there are many, some of them."""
    rng = np.random.default_rng(derive(seed, Purpose.SAMPLE))
    return np.sort(_some_of_each_class(graph.id_order, labels != UNKNOWN, labels, rng))


def _some_of_each_class(
    order: NDArray[np.int64],
    mask: NDArray[np.bool_],
    labels: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """At most ``GIVEN_NODES`` nodes at random; classes with few nodes keep all of them."""
    nodes = order[mask[order]]
    if nodes.size <= GIVEN_NODES:
        return nodes
    nodes = rng.permutation(nodes)
    codes = labels[nodes]
    num_classes = int(codes.max()) + 1
    by_class = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[by_class], np.arange(num_classes))
    rank = np.empty(nodes.size, dtype=np.int64)  # within the class, at random
    rank[by_class] = np.arange(nodes.size) - first[codes[by_class]]
    rare = rank < GIVEN_NODES // (2 * num_classes)
    others = nodes[~rare][: GIVEN_NODES - int(rare.sum())]
    return np.concatenate([nodes[rare], others])
