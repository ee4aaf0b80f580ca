"""Fits of all runs and replicas, in chunks that are computed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def run(self, callbacks: Sequence[Callback], checkpoint: Path | None) -> Iterator[list[Result]]:
        """Results of chunks of fits: all on a GPU or with ``all_at_once``, else one at a time."""
        method, split = self.method, self.split
        jobs = [(run, replica) for run in range(len(split)) for replica in range(method.replicas)]
        together = self.tensors.device.type == "cuda" or method.all_at_once
        size = method.chunk_size or (len(jobs) if together else 1)
        with threads_for(len(self.labels)):
            for start in range(0, len(jobs), size):
                chunk = jobs[start : start + size]
                folder = checkpoint and checkpoint / f"replica-{start:03d}-{len(chunk)}"
                state = Checkpoint(folder, f"replica-{start:03d}-")
                yield self.fit(chunk, callbacks, state)

    def fit(
        self,
        chunk: Sequence[tuple[int, int]],
        callbacks: Sequence[Callback],
        checkpoint: Checkpoint,
    ) -> list[Result]:
        """Fit pairs of run and replica together."""
        method, split = self.method, self.split
        runs = [run for run, _ in chunk]
        left_out = np.stack([self.folds[run] == replica for run, replica in chunk])
        shares = shares_of(method.prior, self.class_names)
        problem = Problem.build(
            self.tensors,
            np.where(split.train[runs], self.labels, UNKNOWN),
            len(self.class_names),
            val_labels=np.where(split.val[runs] & ~left_out, self.labels, UNKNOWN),
            pool=split.pool[runs],
            seeds=[derive(method.seed, split.runs[run], replica) for run, replica in chunk],
            shares=shares,
            callbacks=callbacks,
            checkpoint=checkpoint,
        )
        results = []
        for result, run in zip(method.solve(problem), runs, strict=True):
            pool = split.pool[run]
            proba = follow_shares(result.proba, pool, shares)
            results.append(replace(result, proba=proba).with_truth(self.labels, pool))
        return results
