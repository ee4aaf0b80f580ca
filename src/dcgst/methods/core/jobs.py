"""Fits of all runs and replicas, in chunks that are computed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcgst.engine.checkpoint import Checkpoint
from dcgst.engine.random import derive
from dcgst.engine.threads import threads_for
from dcgst.engine.training import Callback
from dcgst.graph import UNKNOWN
from dcgst.methods.core.prior import follow_shares, shares_of
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result
from dcgst.methods.core.storage import stored
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import Split

if TYPE_CHECKING:
    from dcgst.methods.core.base import Method


Chunk = range
"""Numbers of fits that are computed together; fit k is replica k % R of run k // R."""


def chunks_of(method: Method, split: Split, *, gpu: bool) -> list[Chunk]:
    """All fits in one chunk on a GPU or with ``all_at_once``, else one at a time."""
    count = len(split) * method.replicas
    size = method.chunk_size or (count if gpu or method.all_at_once else 1)
    return [range(start, min(count, start + size)) for start in range(0, count, size)]


RESULTS = "results"
"""Name of the checkpoint step with the results of a chunk."""


def checkpoint_of(chunk: Chunk, folder: Path | None) -> Checkpoint:
    """Where the steps of a chunk are stored."""
    name = f"replica-{chunk.start:03d}-{len(chunk)}"
    return Checkpoint(folder and folder / name, f"{name}-")


@dataclass(frozen=True)
class Jobs:
    """The fits of all runs and replicas on the nodes of ``tensors``.

    Attributes:
        method: the method.
        tensors: features and adjacency.
        labels: ``(n,)`` known class codes, -1 elsewhere.
        class_names: the classes.
        split: the runs.
    """

    method: Method
    tensors: GraphTensors
    labels: NDArray[np.int64]
    class_names: Sequence[str]
    split: Split

    def run(
        self, chunk: Chunk, callbacks: Sequence[Callback], checkpoint: Path | None
    ) -> list[Result]:
        """Results of a chunk of fits of all nodes, computed together or loaded."""
        state = checkpoint_of(chunk, checkpoint)
        return stored(
            state, RESULTS, lambda: self.fit(chunk, callbacks, state), self.tensors.device
        )

    def fit(
        self, chunk: Chunk, callbacks: Sequence[Callback], checkpoint: Checkpoint
    ) -> list[Result]:
        """Fit a chunk; ``row_model`` of the results is for nodes outside a sample only."""
        method, split = self.method, self.split
        pairs = [divmod(number, method.replicas) for number in chunk]
        runs = [run for run, _ in pairs]
        shares = shares_of(method.prior, self.class_names)
        problem = Problem.build(
            self.tensors,
            np.where(split.train[runs], self.labels, UNKNOWN),
            len(self.class_names),
            val_labels=np.where(split.val[runs], self.labels, UNKNOWN),
            pool=split.pool[runs],
            seeds=[derive(method.seed, split.runs[run], replica) for run, replica in pairs],
            shares=shares,
            callbacks=callbacks,
            checkpoint=checkpoint,
        )
        results = []
        with threads_for(len(self.labels)):
            solved = method.solve(problem)
        for result, run in zip(solved, runs, strict=True):
            pool = split.pool[run]
            proba = follow_shares(result.proba, pool, shares)
            model = None if self.tensors.complete else result.row_model
            own = replace(result, proba=proba, row_model=model)
            results.append(own.with_truth(self.labels, pool))
        return results
