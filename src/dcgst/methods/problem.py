"""The input of a method: a graph, the labels of R fits, and known class shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError, unknown_name
from dcgst.features.columns import Features
from dcgst.features.graph_tensors import GraphTensors, NodeFunction, known_labels
from dcgst.features.matrix import empty_like, row_ranges
from dcgst.features.shares import every_kth, share_offsets
from dcgst.features.smoothing import Filter
from dcgst.features.sparse import SparseMatrix
from dcgst.graph import UNKNOWN
from dcgst.memory import forget
from dcgst.shift.concentration import concentration, representativeness
from dcgst.train.checkpoint import Checkpoint
from dcgst.train.training import Callback


def shares_of(
    prior: Mapping[str, float] | None, class_names: Sequence[str]
) -> NDArray[np.float32] | None:
    """``(C,)`` class shares from shares by name; None without a prior.

    Classes that are not named divide the rest equally.

    Example:
        >>> shares_of({"fraud": 0.1}, ("fraud", "ok")).tolist()
        [0.10000000149011612, 0.8999999761581421]
    """
    if prior is None:
        return None
    for name, share in prior.items():
        if name not in class_names:
            raise unknown_name("class in prior", name, class_names)
        try:
            valid = 0 < share < 1
        except TypeError:
            valid = False
        if not valid:
            raise InputError(f"prior: the share of {name} must be between 0 and 1, got {share}")
    total, missing = math.fsum(prior.values()), len(class_names) - len(prior)
    if missing and total >= 1:
        others = ", ".join(name for name in class_names if name not in prior)
        raise InputError(f"prior: the shares sum to {total:g}, which leaves nothing for {others}")
    if not missing and abs(total - 1) > 0.01:
        raise InputError(f"prior: the shares must sum to 1, got {total:g}")
    rest = (1 - total) / max(1, missing)
    shares = np.array([prior.get(name, rest) for name in class_names])
    normalized: NDArray[np.float32] = (shares / shares.sum()).astype(np.float32)
    return normalized


def follow_shares(
    proba: NDArray[np.float32], pool: NDArray[np.bool_], shares: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """``(n, C)`` probabilities whose mean over the pool is ``shares``; None: no change."""
    if shares is None:
        return proba
    rows = every_kth(torch.from_numpy(pool)[None]).numpy()
    some, target = torch.from_numpy(np.array(proba[rows])), torch.from_numpy(shares)[None]
    offset = share_offsets(_log(some)[None], torch.from_numpy(pool[rows])[None], target)[0]
    matched = empty_like(proba)
    for nodes in row_ranges(len(proba)):
        own = _log(torch.from_numpy(np.array(proba[nodes])))
        matched[nodes] = (own + offset).softmax(-1).numpy()
        forget(proba, matched)
    return matched


def _log(proba: Tensor) -> Tensor:
    return proba.clamp_min(1e-9).log()


@dataclass(frozen=True)
class Problem:
    """The input of R fits. Labels of pool nodes are not part of it.

    A fit is one replica of one run of a split. The fits are independent.

    On large graphs the node order differs from the user's. Results are arrays over all nodes; the
    runner converts them back.

    Attributes:
        graph: features and adjacency.
        train_labels: ``(R, n)`` class codes of training nodes, -1 elsewhere.
        val_labels: ``(R, n)`` class codes of validation nodes, -1 elsewhere.
        pool: ``(R, n)`` bool, nodes to predict: neither training nor validation nodes. A node stays
            in the pool when it gets a pseudo-label.
        seeds: one per fit.
        num_classes: number of classes C.
        shares: ``(C,)`` class shares in the pool if they are known, else None.
        callbacks: called with an event after each epoch and stage.
        checkpoint: stores expensive steps by name. Names must be unique, so a problem can be passed
            to ``solve`` only once.
    """

    graph: GraphTensors
    train_labels: Tensor
    val_labels: Tensor
    pool: Tensor
    seeds: tuple[int, ...]
    num_classes: int
    shares: Tensor | None = None
    callbacks: tuple[Callback, ...] = ()
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    @classmethod
    def build(
        cls,
        graph: GraphTensors,
        train_labels: NDArray[np.int64],
        num_classes: int,
        *,
        val_labels: NDArray[np.int64] | None = None,
        pool: NDArray[np.bool_] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Problem:
        """Create a problem from arrays, without known class shares, callbacks and checkpoint.

        Args:
            graph: features and adjacency.
            train_labels: ``(R, n)`` class codes of training nodes, -1 elsewhere.
            num_classes: number of classes.
            val_labels: likewise for validation nodes; default none.
            pool: ``(R, n)`` nodes to predict; default all nodes without a training label.
            seeds: one per fit; default 0.
        """
        if val_labels is None:
            val_labels = np.full_like(train_labels, UNKNOWN)
        if pool is None:
            pool = train_labels == UNKNOWN
        return cls(
            graph=graph,
            train_labels=torch.tensor(train_labels, device=graph.device),
            val_labels=torch.tensor(val_labels, device=graph.device),
            pool=torch.tensor(pool, device=graph.device),
            seeds=tuple(seeds) if seeds is not None else (0,) * len(train_labels),
            num_classes=num_classes,
        )

    @property
    def x(self) -> Features:
        return self.graph.x

    @property
    def adjacency(self) -> SparseMatrix:
        return self.graph.adjacency

    @property
    def num_fits(self) -> int:
        return len(self.seeds)

    @property
    def device(self) -> torch.device:
        return self.train_labels.device

    @property
    def has_validation(self) -> Tensor:
        """``(R,)`` bool, fits with validation nodes."""
        return (self.val_labels >= 0).any(1)

    @cached_property
    def trust(self) -> Tensor:
        """``(R,)`` how representative the training labels look, from zero to one."""
        labeled = (self.graph.in_graph(self.train_labels) >= 0).numpy(force=True)
        sets = [np.flatnonzero(own) for own in labeled]
        found = concentration(sets, self.graph.source.neighbors.adjacency)
        return representativeness(torch.tensor(found, dtype=torch.float32, device=self.device))

    def train_on_validation(self) -> Problem:
        """The same problem with the validation labels as training labels, and no validation."""
        labels = torch.maximum(self.train_labels, self.val_labels)
        nothing = torch.full_like(labels, UNKNOWN)
        return replace(self, train_labels=labels, val_labels=nothing)

    def one_hot(self) -> Tensor:
        """``(R, n, C)`` training labels; zero for other nodes."""
        labeled = (self.train_labels >= 0)[..., None]
        coded = torch.zeros(*self.train_labels.shape, self.num_classes, device=self.device)
        return coded.scatter_(-1, self.train_labels.clamp_min(0)[..., None], labeled.float())

    def given_labels(self) -> NodeFunction:
        """The training labels as function of nodes: one-hot rows, zero for other nodes."""
        return known_labels(self.graph.in_graph(self.train_labels), self.num_classes)

    def smooth(self, values: NodeFunction, by: Filter, name: str) -> NodeFunction:
        """Smooth values over the graph; ``name`` stands for the values within a method."""
        return self.graph.smooth(values, by, self.checkpoint.prefix + name)

    def label_counts(self) -> Tensor:
        """``(R, C)`` number of training labels of each class."""
        labeled = self.train_labels >= 0
        counts = torch.zeros(len(labeled), self.num_classes, device=self.device)
        return counts.scatter_add(1, self.train_labels.clamp_min(0), labeled.float())

    def class_shares(self) -> Tensor:
        """``(R, C)`` share of each class among the training labels."""
        counts = self.label_counts()
        return counts / counts.sum(1, keepdim=True)
