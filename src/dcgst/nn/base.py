"""The base class of all backbones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dcgst.engine.random import Streams, derive
from dcgst.errors import InputError
from dcgst.nn.layers import drop_features, project
from dcgst.numerics.graph_tensors import GraphTensors, NodeTensors
from dcgst.numerics.normalize import Features
from dcgst.numerics.sparse import SparseMatrix
from dcgst.registry import Registry, subclass_of


@dataclass(frozen=True)
class Projected:
    """Features after dropout, multiplied by the first weights."""

    product: Tensor


@dataclass(frozen=True)
class Output:
    """Output of a backbone for every node."""

    embedding: Tensor
    """``(R, n, hidden)`` the last hidden layer: Z of the paper."""
    logits: Tensor
    """``(R, n, C)``, or ``(R, m, C)`` for m selected rows"""


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": nn.functional.elu,
    "tanh": torch.tanh,
}


class Backbone(nn.Module, ABC):
    """A graph neural network of which R independent replicas are computed together.

    The first axis of every parameter is the replica. The graph enters as an *operator*, which
    :meth:`operator` computes from the adjacency: once per graph, or once per step where edge
    weights are learned. It is differentiable in the edge weights; weight zero means no edge.

    A subclass defines :meth:`build`, :meth:`operator`, :meth:`forward` and ``hops``.

    Args:
        seeds: one per replica, for its initial parameters.
        num_features: number of feature columns.
        hidden: width of the hidden layer.
        num_classes: width of the output.
        dropout: dropout rate of inputs and hidden units.
        activation: of the hidden layer, one of :data:`ACTIVATIONS`; None for the default.
    """

    hops: ClassVar[int]
    """Number of edges over which a node can influence another."""
    default_activation: ClassVar[str] = "relu"
    weight1: nn.Parameter
    """``(R, d, width)``, the weights that the features are multiplied by."""

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
        self.activation_name = activation or self.default_activation
        self.activation = ACTIVATIONS[self.activation_name]
        self.build(Streams([derive(seed, 0) for seed in seeds]))

    @abstractmethod
    def build(self, streams: Streams) -> None:
        """Create the parameters, on the CPU so that they are the same on every device."""

    @staticmethod
    @abstractmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        """Compute the matrix for message passing; adjacency values are ``(E,)`` or ``(R, E)``."""

    def adapt(self, graph: GraphTensors) -> None:
        """Learn from the graph what :meth:`inputs` needs, before the training; default nothing."""

    def inputs(self, graph: NodeTensors) -> Features:
        """The features that :meth:`forward` takes on a graph; default those of the graph."""
        return graph.x

    @abstractmethod
    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        """Compute all replicas.

        Args:
            x: the result of :meth:`inputs`, or of :meth:`project_features`.
            operator: the result of :meth:`operator`.
            streams: random streams for dropout; None outside training.
            rows: nodes whose logits are needed; default all. The hidden layer is computed for every
                node in any case.
        """

    def project_features(
        self, x: Features | Projected, streams: Streams | None = None
    ) -> Projected:
        """Multiply the features, after dropout, by the first weights.

        The product does not depend on the graph: several graphs can share it.
        """
        if isinstance(x, Projected):
            return x
        return Projected(project(drop_features(x, self.dropout, streams), self.weight1))

    def config(self) -> dict[str, Any]:
        """Return everything that :meth:`from_config` needs to create the network again."""
        return {
            "backbone": BACKBONES.name_of(type(self)),
            "replicas": self.replicas,
            "num_features": self.num_features,
            "hidden": self.hidden,
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "activation": self.activation_name,
        }

    @staticmethod
    def from_config(config: Mapping[str, Any]) -> Backbone:
        """Create a network from :meth:`config`, with other parameters than the original's."""
        if config["activation"] not in ACTIVATIONS:
            raise InputError(f"unknown activation {config['activation']!r}")
        return BACKBONES.known(config["backbone"])(
            [0] * config["replicas"],
            config["num_features"],
            config["hidden"],
            config["num_classes"],
            config["dropout"],
            config["activation"],
        )

    def select_replica(self, replica: int) -> Backbone:
        """Return a network with the parameters of one replica only."""
        if self.replicas == 1:
            return self
        selected = type(self)(
            [0],
            self.num_features,
            self.hidden,
            self.num_classes,
            self.dropout,
            self.activation_name,
        )
        state = self.state_dict()
        for name, _ in self.named_parameters():
            state[name] = state[name][replica : replica + 1]
        selected.load_state_dict(state)
        return selected.to(next(self.parameters()).device)


BACKBONES: Registry[type[Backbone]] = Registry("backbone", "dcgst.backbones", subclass_of(Backbone))


def receptive_field(
    x: Features, operator: SparseMatrix, rows: Tensor, hops: int
) -> tuple[Features, SparseMatrix, Tensor]:
    """Restrict features and operator to the nodes that influence the outputs of ``rows``.

    Without dropout, a network computes the same outputs for these rows as on the whole graph.

    Returns:
        features, operator, and the positions of ``rows`` among the remaining nodes.
    """
    nodes = operator.reach(rows, hops)
    x = x.select_rows(nodes) if isinstance(x, SparseMatrix) else x[nodes]
    inner = operator.select_rows(nodes).select_columns(nodes)
    return x, inner, torch.searchsorted(nodes, rows)
