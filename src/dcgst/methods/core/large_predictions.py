"""Predictions of all nodes of a large graph, in blocks, by a model of a sample of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.checkpoint import Checkpoint
from dcgst.engine.executors import Shared, current_cluster
from dcgst.engine.progress import Task
from dcgst.files import write_text
from dcgst.graph import UNKNOWN, Graph
from dcgst.memory import forget
from dcgst.methods.core.jobs import RESULTS
from dcgst.methods.core.result import Result
from dcgst.methods.core.row_models import RowModel
from dcgst.methods.core.storage import stored
from dcgst.methods.core.trace import NOT_LABELED, TRAINING_LABEL
from dcgst.numerics.arrays import new_file
from dcgst.numerics.graph_sample import GraphSample
from dcgst.numerics.large_graph import LargeGraph
from dcgst.splits import Split


def predict_all(
    sample: GraphSample,
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
    ranges = list(sample.graph.ranges())
    shape = len(runs), graph.num_nodes, graph.num_classes
    files = _Probabilities(sample.graph.workspace.folder, checkpoint.prefix)
    proba, done = files.open(shape)

    def compute() -> list[Result]:
        results = fit()
        model = results[0].row_model
        assert model is not None
        _fill(proba, sample.graph, model, ranges, done, files)
        return [dataclasses.replace(result, row_model=None) for result in results]

    # Stored when all nodes are predicted; what is stored is of the size of the sample.
    found = stored(checkpoint, RESULTS, compute, sample.graph.device, reuse=done == len(ranges))
    return [
        _expand(result, own, sample, run, graph.labels)
        for result, own, run in zip(found, proba, runs, strict=True)
    ]


def _fill(
    proba: NDArray[np.float32],
    large: LargeGraph,
    model: RowModel,
    ranges: Sequence[slice],
    done: int,
    files: _Probabilities,
) -> None:
    """Predict the ranges of nodes that are not done yet."""
    task = Task("prediction", len(ranges))
    task.advance(done)
    predicted = _predictions(large, model, ranges[done:])
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
    large: LargeGraph, model: RowModel, ranges: Sequence[slice]
) -> Iterator[NDArray[np.float32]]:
    """``(R, m, C)`` probabilities of each range of nodes; on a cluster, each is a task."""
    cluster = current_cluster()
    if cluster is None or large.workspace.folder is None:
        return (_predict_range(large, model, part) for part in ranges)
    shared = cluster.share((large, model))
    return cluster.map_in_order(_predict_shared, [(shared, part) for part in ranges])


def _predict_shared(
    shared: Shared[tuple[LargeGraph, RowModel]], nodes: slice
) -> NDArray[np.float32]:
    return _predict_range(*shared.get(), nodes)


def _predict_range(large: LargeGraph, model: RowModel, nodes: slice) -> NDArray[np.float32]:
    found: NDArray[np.float32] = model(large.rows(nodes)).exp().numpy(force=True)
    return found


def _expand(
    result: Result,
    proba: NDArray[np.float32],
    sample: GraphSample,
    run: Split,
    labels: NDArray[np.int64],
) -> Result:
    """The result of the whole graph, whose probabilities are in ``proba``."""
    count = sample.graph.num_nodes
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
