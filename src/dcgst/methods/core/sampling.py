"""Large graphs: a method is fitted to a sample of the nodes and applied to all in blocks."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.random import Purpose, derive
from dcgst.graph import Graph
from dcgst.memory import available_memory, forget
from dcgst.methods.core.result import Result
from dcgst.methods.core.trace import NOT_LABELED
from dcgst.numerics.columns import MOST_COLUMNS
from dcgst.numerics.graph_sample import GraphSample, draw_sample
from dcgst.numerics.large_graph import LargeGraph
from dcgst.numerics.matrix import NUMBER, Workspace
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

COPIES = 3
"""Copies of a block of columns that propagation needs."""

SHARE = 0.65
"""Share of the available memory for matrices; the rest is for what is computed from them."""

MOST_AT_ONCE = 64
AT_ONCE_IN_MEMORY = 16
"""Columns that are computed at a time: few, so that they fit into the cache of the CPU."""


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
    with _workspace(graph, checkpoint) as workspace:
        features, adjacency = graph.features, graph.adjacency
        large = LargeGraph(
            features, adjacency, method.scale_features, workspace, weighted=graph.weighted
        )
        yield draw_sample(large, choose_nodes(graph, split, method.seed))


@contextmanager
def _workspace(graph: Graph, checkpoint: Path | None) -> Iterator[Workspace]:
    """In memory if there is room for all matrices, else in files."""
    columns = 2 * len(FILTERS) * min(MOST_COLUMNS, graph.num_features)
    columns += (len(HOPS) + 1) * min(DIMENSIONS, graph.num_features)
    columns += COPIES * graph.num_classes
    memory = SHARE * available_memory() / (NUMBER * graph.num_nodes)  # in columns
    if columns < memory:
        yield Workspace(None, AT_ONCE_IN_MEMORY)
        return
    at_once = max(1, min(MOST_AT_ONCE, int(memory / COPIES)))
    at_once -= at_once % 16 if at_once > 16 else 0  # whole lines of the cache
    if checkpoint is not None:
        yield Workspace(checkpoint / "matrices", at_once)
        return
    with tempfile.TemporaryDirectory(prefix="dcgst-") as folder:
        yield Workspace(Path(folder), at_once)


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
    for part in large.ranges():
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
