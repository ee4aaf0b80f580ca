"""What a method is given, what it finds, and how the findings of replicas become one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.engine.memory import Memory
from dcgst.engine.sparse import SparseMatrix
from dcgst.engine.training import Callback
from dcgst.errors import InputError
from dcgst.methods.stages import AUDIT, NEVER, Stages
from dcgst.nn.base import Backbone, Features

T = TypeVar("T")

EDGES = np.dtype(
    [
        ("replica", np.int16),
        ("source", np.int64),
        ("target", np.int64),
        ("present", np.bool_),
        ("probability", np.float32),
    ]
)
"""One row per pair of nodes that may change: whether it is an edge, and how likely one should be.

Pairs are unordered: the smaller number comes first.
"""


@dataclass(frozen=True)
class Problem:
    """What a method may see of R runs: tensors on one device, labels only where they are allowed.

    The labels of pool nodes are not in here: no method can use them. On large graphs the nodes are
    in another order than the user's; whatever is said of nodes belongs into arrays over all nodes,
    which are put back into the user's order.
    """

    x: Features
    adjacency: SparseMatrix
    labels: Tensor  # (R, n) class codes of training nodes, -1 elsewhere
    val_labels: Tensor  # (R, n) class codes of validation nodes, -1 elsewhere
    pool: Tensor  # (R, n) bool
    seeds: tuple[int, ...]
    num_classes: int
    callbacks: tuple[Callback, ...] = ()
    shared: dict[str, Any] = dataclasses.field(default_factory=dict)
    memory: Memory = dataclasses.field(default_factory=Memory)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """What depends on graph and features alone, computed for the first of all runs."""
        if name not in self.shared:
            self.shared[name] = compute()
        value: T = self.shared[name]
        return value

    @property
    def has_validation(self) -> bool:
        return bool((self.val_labels >= 0).any())


@dataclass(frozen=True)
class Outcome:
    """What a method found in R runs.

    Attributes:
        proba: ``(R, n, C)``.
        stages: the book kept on the way; without pseudo-labels it says where the given ones stand.
        model: the network, if there is one that can be used on other graphs.
        edges: what an edge predictor would make of the graph, one table per run.
    """

    proba: Tensor
    stages: Stages
    model: Backbone | None = None
    edges: list[NDArray[np.void]] | None = None


@dataclass(frozen=True)
class Result:
    """What a method found in one run; see :class:`Method` for the meaning of each part."""

    proba: NDArray[np.float32]
    labels: NDArray[np.int64]
    labeled_stage: NDArray[np.int64]
    history: list[dict[str, float]]
    stop_reason: str
    agreement: NDArray[np.float32]
    audit: NDArray[np.void] = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=AUDIT))
    edges: NDArray[np.void] = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=EDGES))

    def reorder(self, order: NDArray[np.int64]) -> Result:
        """The same with nodes in another order: the first is now the one that was ``order[0]``."""
        audit, edges, place = self.audit.copy(), self.edges.copy(), np.argsort(order)
        audit["node"] = place[audit["node"]]
        audit.sort(order=["replica", "stage", "node"])
        ends = np.sort([place[self.edges["source"]], place[self.edges["target"]]], axis=0)
        edges["source"], edges["target"] = ends
        return dataclasses.replace(
            self,
            audit=audit,
            edges=edges,
            proba=self.proba[order],
            labels=self.labels[order],
            labeled_stage=self.labeled_stage[order],
            agreement=self.agreement[order],
        )

    @property
    def cmd_before(self) -> float:
        """Shift of the given labels alone against the pool, in the last stage's representation."""
        return self.history[-1].get("cmd_before", self.history[0]["cmd"])

    @property
    def cmd_after(self) -> float:
        """Shift of everything labeled in the end, in the last stage's representation."""
        return self.history[-1]["cmd"]


def results_of(outcome: Outcome, problem: Problem, truth: NDArray[np.int64]) -> list[Result]:
    """One result per run, with the given labels in place.

    The truth, -1 where unknown, is compared with what was found and changes none of it: where
    known, history gains each stage's ``accuracy`` on the pool, and the audit its ``truth``.
    """
    if not bool(outcome.proba.isfinite().all()):
        raise InputError("training diverged: probabilities are not finite; try a smaller lr")
    given = torch.maximum(problem.labels, problem.val_labels)
    labels = torch.where(given >= 0, given, outcome.proba.argmax(-1))
    results = []
    for run in range(len(problem.seeds)):
        history = [{"replica": 0, **record} for record in outcome.stages.history[run]]
        audit = outcome.stages.audit(run)
        audit["truth"] = truth[audit["node"]]
        known = problem.pool[run].numpy(force=True) & (truth >= 0)
        for record, predicted in zip(history[1:], outcome.stages.predictions[run], strict=True):
            if known.any():
                record["accuracy"] = float((predicted[known] == truth[known]).mean())
        results.append(
            Result(
                outcome.proba[run].numpy(force=True),
                labels[run].numpy(force=True),
                outcome.stages.joined[run].numpy(force=True),
                history,
                outcome.stages.reasons[run],
                np.ones(len(truth), dtype=np.float32),
                audit,
                np.zeros(0, dtype=EDGES) if outcome.edges is None else outcome.edges[run],
            )
        )
    return results


def average(replicas: list[Result]) -> Result:
    """The mean of the probabilities; a node counts as labeled if most replicas labeled it."""
    first = replicas[0]
    if len(replicas) == 1:
        return first
    proba = np.mean([r.proba for r in replicas], axis=0)
    # Where all agree, as they do on given labels, their label stands; elsewhere the mean decides.
    agreed = np.all([r.labels == first.labels for r in replicas], axis=0)
    labels = np.where(agreed, first.labels, proba.argmax(axis=1))
    return Result(
        proba,
        labels,
        majority_stage(np.stack([r.labeled_stage for r in replicas])),
        [{**rec, "replica": i} for i, r in enumerate(replicas) for rec in r.history],
        "; ".join(sorted({r.stop_reason for r in replicas})),
        np.mean([r.labels == labels for r in replicas], axis=0, dtype=np.float32),
        np.concatenate([_of_replica(r.audit, i) for i, r in enumerate(replicas)]),
        np.concatenate([_of_replica(r.edges, i) for i, r in enumerate(replicas)]),
    )


def _of_replica(table: NDArray[np.void], replica: int) -> NDArray[np.void]:
    table = table.copy()
    table["replica"] = replica
    return table


def majority_stage(stages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of ``(replicas, n)`` stages the lower median over those that labeled a node, if most did."""
    labeled = stages != NEVER
    count = labeled.sum(axis=0)
    by_stage = np.sort(np.where(labeled, stages, np.iinfo(np.int64).max), axis=0)
    middle = np.take_along_axis(by_stage, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    return np.where(count > len(stages) / 2, middle, NEVER)
