"""Fits of all runs and replicas, in chunks that are computed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


@dataclass(frozen=True)
class Jobs:
    """The fits of all runs and replicas on the nodes of ``tensors``.

    Attributes:
        method: the method.
        tensors: features and adjacency.
        labels: ``(n,)`` known class codes, -1 elsewhere.
        class_names: the classes.
        split: the runs.
        folds: ``(runs, n)`` of :func:`validation_folds`.
    """

    method: Method
    tensors: GraphTensors
    labels: NDArray[np.int64]
    class_names: Sequence[str]
    split: Split
    folds: NDArray[np.int64]

    def run(
        self,
        chunks: Iterable[Chunk],
        callbacks: Sequence[Callback],
        checkpoint: Path | None,
    ) -> Iterator[list[Result]]:
        """Results of chunks of fits, each computed together."""
        with threads_for(len(self.labels)):
            for chunk in chunks:
                folder = checkpoint and checkpoint / f"replica-{chunk.start:03d}-{len(chunk)}"
                state = Checkpoint(folder, f"replica-{chunk.start:03d}-{len(chunk)}-")
                yield self.fit(chunk, callbacks, state)

    def fit(
        self, chunk: Chunk, callbacks: Sequence[Callback], checkpoint: Checkpoint
    ) -> list[Result]:
        """Fit a chunk; ``row_model`` of the results is for nodes outside a sample only."""
        method, split = self.method, self.split
        pairs = [divmod(number, method.replicas) for number in chunk]
        runs = [run for run, _ in pairs]
        left_out = np.stack([self.folds[run] == replica for run, replica in pairs])
        shares = shares_of(method.prior, self.class_names)
        problem = Problem.build(
            self.tensors,
            np.where(split.train[runs], self.labels, UNKNOWN),
            len(self.class_names),
            val_labels=np.where(split.val[runs] & ~left_out, self.labels, UNKNOWN),
            pool=split.pool[runs],
            seeds=[derive(method.seed, split.runs[run], replica) for run, replica in pairs],
            shares=shares,
            callbacks=callbacks,
            checkpoint=checkpoint,
        )
        results = []
        for result, run in zip(method.solve(problem), runs, strict=True):
            pool = split.pool[run]
            proba = follow_shares(result.proba, pool, shares)
            model = None if self.tensors.complete else result.row_model
            own = replace(result, proba=proba, row_model=model)
            results.append(own.with_truth(self.labels, pool))
        return results
