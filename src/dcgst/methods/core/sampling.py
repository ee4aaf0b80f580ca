"""Large graphs: a method is fitted to a sample of the nodes and applied to all in blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.progress import counted
from dcgst.engine.random import Purpose, derive
from dcgst.graph import Graph
from dcgst.memory import forget
from dcgst.methods.core.result import Result
from dcgst.methods.core.trace import NOT_LABELED
from dcgst.numerics.columns import MOST_COLUMNS
from dcgst.numerics.graph_sample import GraphSample, draw_sample
from dcgst.numerics.large_graph import LargeGraph
from dcgst.numerics.matrix import open_workspace
from dcgst.numerics.propagation import DIMENSIONS, HOPS
from dcgst.numerics.smoothing import FILTERS
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
    method: Method, graph: Graph, split: Split, checkpoint: Path | None
) -> Iterator[GraphSample]:
    """A sample of the nodes of a large graph, with all or many of the given labels.

    Args:
        method: scales features, and has the seed.
        graph: the graph.
        split: one or several runs.
        checkpoint: folder for files; default a temporary one, if files are needed.
    """
    folder = checkpoint and checkpoint / "matrices"
    with open_workspace(graph.num_nodes, _columns(graph), folder) as workspace:
        features, adjacency = graph.features, graph.adjacency
        large = LargeGraph(
            features, adjacency, method.scale_features, workspace, weighted=graph.weighted
        )
        yield draw_sample(large, choose_nodes(graph, split, method.seed))


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

    given = some(np.asarray(split.given.any(axis=0)), GIVEN_NODES)
    pool = some(np.asarray(split.pool.any(axis=0)), POOL_NODES)
    return np.union1d(given, pool)


def predict_all(sample: GraphSample, results: Sequence[Result], number: int) -> list[Result]:
    """Results of fits of a sample as results of the whole graph.

    Nodes of the sample keep their predictions.

    Args:
        sample: the sample.
        results: of fits that were computed together.
        number: of this call, for the name of a file.
    """
    large, count = sample.graph, sample.graph.num_nodes
    nodes = sample.positions[sample.chosen]
    model = results[0].row_model
    assert model is not None
    shape = len(results), count, results[0].proba.shape[1]
    folder = large.workspace.folder
    proba: NDArray[np.float32] = (
        np.empty(shape, dtype=np.float32)
        if folder is None
        else np.memmap(folder / f"probabilities-{number}.f32", np.float32, "w+", shape=shape)
    )
    for part in counted("prediction", list(large.ranges())):
        proba[:, part] = model(large.rows(part)).exp().numpy()
        forget(proba)
    return [_expand(result, own, sample, nodes) for result, own in zip(results, proba, strict=True)]


def _expand(
    result: Result, proba: NDArray[np.float32], sample: GraphSample, nodes: NDArray[np.int64]
) -> Result:
    count = sample.graph.num_nodes
    proba[nodes] = result.proba[sample.chosen]
    given, stage = np.full(count, -1), np.full(count, NOT_LABELED)
    given[nodes], stage[nodes] = result.given[sample.chosen], result.labeled_stage[sample.chosen]
    candidates = result.candidates.copy()
    candidates["node"] = sample.positions[candidates["node"]]
    return dataclasses.replace(
        result,
        proba=proba,
        given=given,
        labeled_stage=stage,
        agreement=np.ones(count, dtype=np.float32),
        candidates=candidates,
        row_model=None,
    )
