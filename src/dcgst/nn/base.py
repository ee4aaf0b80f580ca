"""What every backbone has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, overload

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from dcgst.engine.random import Streams, derive, dropout
from dcgst.engine.sparse import SparseMatrix, spmm
from dcgst.graph import FeatureMatrix


@dataclass(frozen=True)
class Entered:
    """Features that have been through :meth:`Backbone.enter` already."""

    product: Tensor


Features = Tensor | SparseMatrix
"""``(n, d)`` node features shared by all replicas, dense or sparse."""


@dataclass(frozen=True)
class Output:
    """What a backbone computes for every node."""

    hidden: Tensor
    """``(R, n, hidden)`` the last hidden layer: Z of the paper."""
    logits: Tensor
    """``(R, n, C)``, or ``(R, m, C)`` for m chosen rows"""


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": nn.functional.elu,
    "tanh": torch.tanh,
}


class Backbone(nn.Module, ABC):
    """A graph neural network of which R independent replicas are computed together.

    Every parameter carries the replica axis first. The graph enters as an *operator*, which
    :meth:`operator` makes from the adjacency once per graph, or once per step where edge weights
    are learned: it is differentiable in them, and an edge of weight zero is no edge.

    Args:
        seeds: one per replica; decides its initial parameters.
        num_features: columns of the features.
        hidden: width of the hidden layer.
        num_classes: width of the output.
        dropout: share of inputs and hidden units dropped while training.
        activation: of the hidden layer, one of :data:`ACTIVATIONS`; its usual one by default.
    """

    hops: ClassVar[int]
    """How many edges away a node can be and still influence another."""
    usual_activation: ClassVar[str] = "relu"
    weight1: nn.Parameter
    """``(R, d, width)``, what the features are multiplied with."""

    def __init__(
        self,
        seeds: Sequence[int],
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float = 0.5,
        activation: str | None = None,
    ) -> None:
        super().__init__()
        self.replicas = len(seeds)
        self.num_features = num_features
        self.hidden = hidden
        self.num_classes = num_classes
        self.dropout = dropout
        self.activation = ACTIVATIONS[activation or self.usual_activation]
        self.build(Streams([derive(seed, 0) for seed in seeds]))

    @abstractmethod
    def build(self, streams: Streams) -> None:
        """Create the parameters. Drawn on the CPU: the same on every device."""

    @staticmethod
    @abstractmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        """What messages are multiplied with, from adjacency values ``(E,)`` or ``(R, E)``."""

    def enter(self, x: Features | Entered, streams: Streams | None = None) -> Entered:
        """The features with dropout times the first weights.

        Every network begins so, whatever the graph: one product can serve several graphs.
        """
        if isinstance(x, Entered):
            return x
        return Entered(project(drop_features(x, self.dropout, streams), self.weight1))

    @abstractmethod
    def forward(
        self,
        x: Features | Entered,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        """Compute all replicas.

        Args:
            x: the features, or what :meth:`enter` made of them.
            operator: made by :meth:`operator`.
            streams: drive the dropout; without them, that is outside training, there is none.
            rows: the nodes whose logits are wanted; all of them by default. Their hidden layer is
                computed for every node in any case.
        """


def glorot(streams: Streams, fan_in: int, fan_out: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±√(6 / (fan_in + fan_out)); the shape is both fans if left out."""
    return _within(sqrt(6 / (fan_in + fan_out)), streams, *(shape or (fan_in, fan_out)))


def fan_in_uniform(streams: Streams, fan_in: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±1/√fan_in, as linear layers commonly begin."""
    return _within(1 / sqrt(fan_in), streams, *shape)


def zeros(streams: Streams, *shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(len(streams), *shape))


def _within(bound: float, streams: Streams, *shape: int) -> nn.Parameter:
    return nn.Parameter((streams.uniform(*shape) * 2 - 1) * bound)


def features_on(matrix: FeatureMatrix, device: torch.device | str = "cpu") -> Features:
    """A graph's features as tensors: sparse ones stay sparse unless more than a fifth is set."""
    if not sp.issparse(matrix):
        return torch.tensor(matrix, device=device)
    if matrix.nnz > matrix.shape[0] * matrix.shape[1] / 5:
        return torch.tensor(matrix.toarray(), device=device)
    return SparseMatrix.from_scipy(matrix, device)


@overload
def drop_features(x: Tensor, rate: float, streams: Streams | None) -> Tensor: ...


@overload
def drop_features(x: SparseMatrix, rate: float, streams: Streams | None) -> SparseMatrix: ...


def drop_features(x: Features, rate: float, streams: Streams | None) -> Features:
    """Features with dropout, then one copy per replica; of sparse features only what is stored."""
    if streams is None:
        return x
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values.expand(len(streams), -1), rate, streams))
    return dropout(x.expand(len(streams), -1, -1), rate, streams)


def project(x: Features, weight: Tensor) -> Tensor:
    """``x @ weight`` for features of any kind or activations; weight ``(R, d, k)``."""
    if isinstance(x, SparseMatrix):
        return spmm(x, weight)
    if x.dim() == 3 and x.shape[0] == 1:  # a plain product is faster than a batch of one
        return torch.mm(x[0], weight[0]).unsqueeze(0)
    return torch.matmul(x, weight)


def receptive_field(
    x: Features, operator: SparseMatrix, rows: Tensor, hops: int
) -> tuple[Features, SparseMatrix, Tensor]:
    """The part of the graph that decides the outputs of ``rows``, and where they are in it.

    Without dropout a network computes on this part, for these rows, exactly what it computes on
    the whole graph: what an edge carries was settled when the operator was made.
    """
    nodes = operator.reach(rows, hops)
    x = x.select_rows(nodes) if isinstance(x, SparseMatrix) else x[nodes]
    inner = operator.select_rows(nodes).select_columns(nodes)
    return x, inner, torch.searchsorted(nodes, rows)
