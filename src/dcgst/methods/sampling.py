"""Large graphs: a method is fitted to a sample of the nodes and predicts all in blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcgst.features.columns import MOST_COLUMNS
from dcgst.features.graph_features import GraphFeatures, Learned
from dcgst.features.graph_tensors import NEIGHBORS, GraphTensors, draw_sample
from dcgst.features.matrix import Neighbors, new_file, open_workspace
from dcgst.features.smoothing import FILTERS, HOP_DIMENSIONS, HOPS
from dcgst.files import write_text
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import forget
from dcgst.methods.result import NOT_LABELED, TRAINING_LABEL, Result
from dcgst.methods.row_models import RowModel
from dcgst.methods.storage import RESULTS, stored
from dcgst.splits import Split
from dcgst.train.checkpoint import Checkpoint
from dcgst.train.device import resolve_device
from dcgst.train.executors import Shared, current_cluster
from dcgst.train.progress import Task
from dcgst.train.random import Purpose, derive

if TYPE_CHECKING:
    from dcgst.methods.base import Method


@dataclasses.dataclass(frozen=True)
class SampleSizes:
    """From how many nodes a graph is large, and the most nodes of a sample of it.

    Attributes:
        large: number of nodes from which a method is fitted to a sample.
        pool: most nodes to predict.
        given: most nodes with a given label.
    """

    large: int = 50_000
    pool: int = 50_000
    given: int = 100_000


SIZES = SampleSizes()


def is_large(num_nodes: int) -> bool:
    """Whether methods are fitted to a sample of the nodes of such a graph."""
    return num_nodes >= SIZES.large


LABEL_MATRICES = 3
"""Matrices with a column per class that label propagation and Correct and Smooth need."""


@contextmanager
def sample_of(
    method: Method, graph: Graph, split: Split, checkpoint: Path | None, *, prepared: bool = False
) -> Iterator[GraphTensors]:
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
        yield draw_sample(large, chosen, method.scale_features)


@contextmanager
def open_large(
    method: Method,
    graph: Graph,
    reserved: int,
    *,
    folder: Path | None = None,
    prepared: bool = False,
    learned: Learned | None = None,
) -> Iterator[GraphFeatures]:
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
        yield GraphFeatures(
            graph.features,
            Neighbors(graph.adjacency, graph.weighted, device),
            workspace,
            columns_weighted=graph.columns_weighted,
            learned=learned,
        )


def _fit_memory(chosen: int, graph: Graph) -> int:
    """Approximate memory of a fit to a sample, its neighbors included, in bytes; measured."""
    nodes = min((1 + NEIGHBORS) * chosen, graph.num_nodes)
    return nodes * (6000 + 100 * graph.num_classes)


def _columns(graph: Graph) -> int:
    """Columns of all matrices that a fit keeps."""
    smoothed = 2 * len(FILTERS) * min(MOST_COLUMNS, graph.num_features)
    by_hops = (len(HOPS) + 1) * min(HOP_DIMENSIONS, graph.num_features)
    return smoothed + by_hops + LABEL_MATRICES * graph.num_classes


def restrict(split: Split, sample: GraphTensors) -> Split:
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
    val = some(np.asarray(split.val.any(axis=0)), SIZES.given)
    pool = some(np.asarray(split.pool.any(axis=0)), SIZES.pool)
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
    """Not too many of the nodes, at random; classes with few nodes keep all of them."""
    nodes = order[mask[order]]
    if nodes.size <= SIZES.given:
        return nodes
    nodes = rng.permutation(nodes)
    codes = labels[nodes]
    num_classes = int(codes.max()) + 1
    by_class = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[by_class], np.arange(num_classes))
    rank = np.empty(nodes.size, dtype=np.int64)  # within the class, at random
    rank[by_class] = np.arange(nodes.size) - first[codes[by_class]]
    rare = rank < SIZES.given // (2 * num_classes)
    others = nodes[~rare][: SIZES.given - int(rare.sum())]
    return np.concatenate([nodes[rare], others])


def predict_all(
    sample: GraphTensors,
    fit: Callable[[], Sequence[Result]],
    runs: Sequence[Split],
    graph: Graph,
    checkpoint: Checkpoint,
) -> list[Result]:
    """Fit a sample and predict the whole graph.

    Nodes of the sample keep their predictions.

    Args:
        sample: the sample.
        fit: returns the results of fits that are computed together.
        runs: the run of each of them.
        graph: the whole graph.
        checkpoint: where the results are stored; its prefix names the file of probabilities.
    """
    ranges = list(sample.source.ranges())
    shape = len(runs), graph.num_nodes, graph.num_classes
    files = _Probabilities(sample.source.workspace.folder, checkpoint.prefix)
    proba, done = files.open(shape)

    def compute() -> list[Result]:
        results = fit()
        model = results[0].row_model
        assert model is not None
        _fill(proba, sample, model, ranges, done, files)
        return [dataclasses.replace(result, row_model=None) for result in results]

    # Stored when all nodes are predicted; what is stored is of the size of the sample.
    found = stored(checkpoint, RESULTS, compute, sample.source.device, reuse=done == len(ranges))
    return [
        _expand(result, own, sample, run, graph.labels)
        for result, own, run in zip(found, proba, runs, strict=True)
    ]


def _fill(
    proba: NDArray[np.float32],
    sample: GraphTensors,
    model: RowModel,
    ranges: Sequence[slice],
    done: int,
    files: _Probabilities,
) -> None:
    """Predict the ranges of nodes that are not done yet."""
    task = Task("prediction", len(ranges))
    task.advance(done)
    predicted = _predictions(sample, model, ranges[done:])
    for position, part in enumerate(ranges[done:], done + 1):
        proba[:, part] = next(predicted)
        forget(proba)
        files.mark(position)
        task.advance()


@dataclasses.dataclass(frozen=True)
class _Probabilities:
    """The file of the probabilities of a fit, and one that says how many ranges are complete.

    Attributes:
        folder: of the files; None keeps the probabilities in memory.
        prefix: of their names.
    """

    folder: Path | None
    prefix: str

    def open(self, shape: tuple[int, ...]) -> tuple[NDArray[np.float32], int]:
        """The array, and the number of ranges that an interrupted fit has filled."""
        if self.folder is None:
            return np.empty(shape, dtype=np.float32), 0
        path, marker = self.folder / f"{self.prefix}probabilities.f32", self._marker(self.folder)
        if marker.exists() and path.exists() and path.stat().st_size == 4 * int(np.prod(shape)):
            return np.memmap(path, np.float32, "r+", shape=shape), int(
                marker.read_text(encoding="utf-8")
            )
        marker.unlink(missing_ok=True)  # first: a marker must never stand for an empty file
        return new_file(path, shape), 0

    def mark(self, ranges: int) -> None:
        """Say how many ranges are complete."""
        if self.folder is not None:
            write_text(self._marker(self.folder), str(ranges))

    def _marker(self, folder: Path) -> Path:
        return folder / f"{self.prefix}probabilities.txt"


def _predictions(
    sample: GraphTensors, model: RowModel, ranges: Sequence[slice]
) -> Iterator[NDArray[np.float32]]:
    """``(R, m, C)`` probabilities of each range of nodes; on a cluster, each is a task."""
    cluster = current_cluster()
    if cluster is None or sample.source.workspace.folder is None:
        return (_predict_range(sample, model, part) for part in ranges)
    shared = cluster.share((sample, model))
    return cluster.map_in_order(_predict_shared, [(shared, part) for part in ranges])


def _predict_shared(
    shared: Shared[tuple[GraphTensors, RowModel]], nodes: slice
) -> NDArray[np.float32]:
    return _predict_range(*shared.get(), nodes)


def _predict_range(sample: GraphTensors, model: RowModel, nodes: slice) -> NDArray[np.float32]:
    found: NDArray[np.float32] = model(sample.at(nodes)).exp().numpy(force=True)
    return found


def _expand(
    result: Result,
    proba: NDArray[np.float32],
    sample: GraphTensors,
    run: Split,
    labels: NDArray[np.int64],
) -> Result:
    """The result of the whole graph, whose probabilities are in ``proba``."""
    count = sample.source.num_nodes
    nodes = sample.positions[sample.chosen]
    proba[nodes] = result.proba[sample.chosen]
    given = np.where(run.given[0], labels, UNKNOWN)
    stage = np.where(run.train[0], TRAINING_LABEL, NOT_LABELED)
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
