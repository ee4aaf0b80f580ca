"""Networks with a replica axis: GCN, GAT, GraphSAGE, APPNP, MLP and SIGN."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import Any, ClassVar, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dcgst.errors import InputError
from dcgst.features.columns import Features
from dcgst.features.graph_tensors import GraphTensors, NodeRows
from dcgst.features.smoothing import HOP_DIMENSIONS, HOPS, Filter, Propagation
from dcgst.features.sparse import Pattern, SparseMatrix, narrow_product, normalize_adjacency, spmm
from dcgst.registry import Registry, subclass_of
from dcgst.train.random import Streams, derive, dropout


def glorot(streams: Streams, fan_in: int, fan_out: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±√(6 / (fan_in + fan_out)); default shape (fan_in, fan_out)."""
    return _uniform(sqrt(6 / (fan_in + fan_out)), streams, *(shape or (fan_in, fan_out)))


def fan_in_uniform(streams: Streams, fan_in: int, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` uniform in ±1/√fan_in, as in ``torch.nn.Linear``."""
    return _uniform(1 / sqrt(fan_in), streams, *shape)


def zeros(streams: Streams, *shape: int) -> nn.Parameter:
    """``(R, *shape)`` zeros."""
    return nn.Parameter(torch.zeros(len(streams), *shape))


def _uniform(bound: float, streams: Streams, *shape: int) -> nn.Parameter:
    return nn.Parameter((streams.uniform(*shape) * 2 - 1) * bound)


@overload
def drop_features(x: Tensor, rate: float, streams: Streams | None) -> Tensor: ...


@overload
def drop_features(x: SparseMatrix, rate: float, streams: Streams | None) -> SparseMatrix: ...


def drop_features(x: Features, rate: float, streams: Streams | None) -> Features:
    """Apply dropout to features, separately for each replica; of sparse ones, to stored values."""
    if streams is None:
        return x
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values.expand(len(streams), -1), rate, streams))
    return dropout(x.expand(len(streams), -1, -1), rate, streams)


def project(x: Features, weight: Tensor) -> Tensor:
    """``x @ weight`` for features or activations; weight ``(R, d, k)``."""
    if isinstance(x, SparseMatrix):
        return spmm(x, weight)
    if x.dim() == 3 and x.shape[0] == 1:  # a plain product is faster than a batch of one
        return narrow_product(x.squeeze(0), weight.squeeze(0)).unsqueeze(0)
    return torch.matmul(x, weight)


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

    Example:
        >>> from dcgst import GCN, load
        >>> model = GCN(backbone="sage", epochs=5).fit(load("synthetic"))
        >>> isinstance(model.result_.models[0], Backbone)
        True
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

    def inputs(self, graph: NodeRows) -> Features:
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


class TwoLayers(Backbone):
    """A backbone of two layers with an activation between them.

    A subclass defines :meth:`first` and :meth:`second`, and creates the biases.
    """

    bias1: nn.Parameter
    bias2: nn.Parameter

    @abstractmethod
    def first(
        self, x: Features | Projected, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        """``(R, n, hidden)`` the first layer, without bias and activation."""

    @abstractmethod
    def second(
        self, h: Tensor, operator: SparseMatrix, streams: Streams | None, rows: Tensor | None
    ) -> Tensor:
        """``(R, m, C)`` the second layer for some rows, without bias."""

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        hidden = self.activation(self.first(x, operator, streams) + self.bias1)
        dropped = dropout(hidden, self.dropout, streams)
        return Output(hidden, self.second(dropped, operator, streams, rows) + self.bias2)


class GATBackbone(TwoLayers):
    """Two attention layers with ELU between them: eight concatenated heads, then one head.

    Edge weights multiply the attention before it is normalized.
    """

    hops = 2
    default_activation = "elu"
    heads: ClassVar[int] = 8

    def build(self, streams: Streams) -> None:
        if self.hidden % self.heads:
            raise InputError(
                f"hidden must be a multiple of {self.heads} for gat, got {self.hidden}"
            )
        d, h, c, heads = self.num_features, self.hidden, self.num_classes, self.heads
        self.weight1 = glorot(streams, d, h)
        # Attention vectors of source and target for every head: (R, 2, heads, width)
        self.attention1 = glorot(streams, heads, h // heads, 2, heads, h // heads)
        self.bias1 = zeros(streams, 1, h)
        self.weight2 = glorot(streams, h, c)
        self.attention2 = glorot(streams, 1, c, 2, 1, c)
        self.bias2 = zeros(streams, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return adjacency.with_loops()

    def first(
        self, x: Features | Projected, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        product = self.project_features(x, streams).product
        return self._attend(product, self.attention1, operator, streams)

    def second(
        self, h: Tensor, operator: SparseMatrix, streams: Streams | None, rows: Tensor | None
    ) -> Tensor:
        found = self._attend(project(h, self.weight2), self.attention2, operator, streams)
        return found if rows is None else found.index_select(1, rows)

    def _attend(
        self, h: Tensor, attention: Tensor, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        replicas, n, _ = h.shape
        heads, width = attention.shape[2:]
        by_head = h.view(replicas, n, heads, width).transpose(1, 2)  # (R, heads, n, width)
        source, target = torch.einsum("rhnw,rshw->srhn", by_head, attention)
        pattern = operator.pattern
        scores = F.leaky_relu(source[..., pattern.indices] + target[..., pattern.rows], 0.2)
        edge_weights = operator.values if operator.values.dim() == 1 else operator.values[:, None]
        alpha = _softmax(pattern, scores, edge_weights)
        if operator.values.dim() == 1:
            # Not if each replica has its own edges: these vary anyway, and the number of draws
            # would depend on the edges of the other replicas.
            alpha = dropout(alpha, self.dropout, streams)
        mixed = spmm(
            SparseMatrix(pattern, alpha.flatten(0, 1)), by_head.reshape(replicas * heads, n, width)
        )
        return mixed.view(replicas, heads, n, width).transpose(1, 2).reshape(replicas, n, -1)


def _softmax(pattern: Pattern, scores: Tensor, edge_weights: Tensor) -> Tensor:
    """Softmax of ``(R, heads, E)`` over the entries of each row, weighted."""
    rows = pattern.rows.expand_as(scores)
    lowest = scores.new_full((*scores.shape[:-1], pattern.num_rows), float("-inf"))
    # An edge of weight zero must neither set the maximum nor overflow beyond it.
    present = scores.detach().masked_fill(edge_weights <= 0, float("-inf"))
    highest = lowest.scatter_reduce(-1, rows, present, "amax").gather(-1, rows)
    weighted = torch.exp((scores - highest).clamp_max(0)) * edge_weights
    return weighted / pattern.row_sums(weighted)[..., pattern.rows]


class GCNBackbone(TwoLayers):
    r"""Two layers, :math:`\hat A\,\mathrm{ReLU}(\hat A X W_1 + b_1) W_2 + b_2`."""

    hops = 2

    def build(self, streams: Streams) -> None:
        self.weight1 = glorot(streams, self.num_features, self.hidden)
        self.bias1 = zeros(streams, 1, self.hidden)
        self.weight2 = glorot(streams, self.hidden, self.num_classes)
        self.bias2 = zeros(streams, 1, self.num_classes)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return normalize_adjacency(adjacency)

    def first(
        self, x: Features | Projected, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        if isinstance(x, torch.Tensor) and x.shape[-1] <= 2 * self.hidden:
            # Â(XW) = (ÂX)W, and X needs no gradient: the backward pass needs no sparse product.
            return project(spmm(operator, drop_features(x, self.dropout, streams)), self.weight1)
        return spmm(operator, self.project_features(x, streams).product)

    def second(
        self, h: Tensor, operator: SparseMatrix, streams: Streams | None, rows: Tensor | None
    ) -> Tensor:
        last = operator if rows is None else operator.select_rows(rows)
        return spmm(last, project(h, self.weight2))


class MLPBackbone(TwoLayers):
    r"""Two layers on the features, :math:`\mathrm{ReLU}(X W_1 + b_1) W_2 + b_2`."""

    hops = 0

    @property
    def num_inputs(self) -> int:
        """Number of columns of the inputs."""
        return self.num_features

    def build(self, streams: Streams) -> None:
        d, h, c = self.num_inputs, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return adjacency

    def first(
        self, x: Features | Projected, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        return self.project_features(x, streams).product

    def second(
        self, h: Tensor, operator: SparseMatrix, streams: Streams | None, rows: Tensor | None
    ) -> Tensor:
        return project(h if rows is None else h.index_select(1, rows), self.weight2)


class APPNPBackbone(MLPBackbone):
    r"""An MLP, then ten steps :math:`H \leftarrow .9\,\hat A H + .1\,H_0` on its logits."""

    hops = 10
    propagate: ClassVar[Filter] = Filter(teleport=0.1, hops=9)
    """All steps but the last, which is computed for the requested rows only."""

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        return normalize_adjacency(adjacency)

    def forward(
        self,
        x: Features | Projected,
        operator: SparseMatrix,
        streams: Streams | None = None,
        rows: Tensor | None = None,
    ) -> Output:
        mlp = super().forward(x, operator, streams)
        start = mlp.logits
        logits = self.propagate(operator, start)
        if rows is not None:
            operator, start = operator.select_rows(rows), start.index_select(1, rows)
        return Output(mlp.embedding, self.propagate.step(operator, logits, start))


class SAGEBackbone(TwoLayers):
    r"""Two layers of :math:`\bar A H W_{nbr} + H W_{self} + b` with ReLU between them.

    :math:`\bar A` averages over the neighbors, weighted by the edge weights.
    """

    hops = 2

    def build(self, streams: Streams) -> None:
        # Neighbor and self weights in one matrix: one product computes both.
        d, h, c = self.num_features, self.hidden, self.num_classes
        self.weight1 = fan_in_uniform(streams, d, d, 2 * h)
        self.bias1 = fan_in_uniform(streams, d, 1, h)
        self.weight2 = fan_in_uniform(streams, h, h, 2 * c)
        self.bias2 = fan_in_uniform(streams, h, 1, c)

    @staticmethod
    def operator(adjacency: SparseMatrix) -> SparseMatrix:
        """Rows that sum to one, or to zero for a node without neighbors."""
        sums = adjacency.pattern.row_sums(adjacency.values)
        inverse = torch.where(sums > 0, 1 / sums.clamp_min(torch.finfo(sums.dtype).tiny), 0.0)
        return adjacency.with_values(adjacency.values * inverse[..., adjacency.pattern.rows])

    def first(
        self, x: Features | Projected, operator: SparseMatrix, streams: Streams | None
    ) -> Tensor:
        return _mix(self.project_features(x, streams).product, operator)

    def second(
        self, h: Tensor, operator: SparseMatrix, streams: Streams | None, rows: Tensor | None
    ) -> Tensor:
        return _mix(project(h, self.weight2), operator, rows)


def _mix(both: Tensor, operator: SparseMatrix, rows: Tensor | None = None) -> Tensor:
    """Add the neighbor average of the first half of the columns and the second half."""
    from_neighbors, from_self = both.chunk(2, dim=-1)
    if rows is not None:
        operator, from_self = operator.select_rows(rows), from_self.index_select(1, rows)
    return spmm(operator, from_neighbors) + from_self


class SIGNBackbone(MLPBackbone):
    """Two layers on features of 0 to 3 hops, concatenated and computed before the training.

    The weights and the projection of the features are learned on the graph of the fit and stored
    with the parameters, so that the network can be applied to other graphs.
    """

    @property
    def num_inputs(self) -> int:
        return (len(HOPS) + 1) * min(HOP_DIMENSIONS, self.num_features) + 1

    def build(self, streams: Streams) -> None:
        super().build(streams)
        self._store(Propagation.empty(self.num_features))

    def adapt(self, graph: GraphTensors) -> None:
        self._store(graph.source.propagation)

    def inputs(self, graph: NodeRows) -> Tensor:
        tensors = {field.name: getattr(self, field.name) for field in fields(Propagation)}
        return torch.cat(list(graph.propagated_by(Propagation(**tensors)).values()), dim=1)

    def _store(self, propagation: Propagation) -> None:
        for field in fields(Propagation):
            self.register_buffer(field.name, getattr(propagation, field.name))
