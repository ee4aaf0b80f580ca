"""Fitted models that predict nodes of any graph from what :class:`NodeTensors` holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from dcgst.methods.core.storage import storable
from dcgst.nn.base import Backbone
from dcgst.numerics.graph_tensors import NodeFunction, NodeTensors, Scale


class RowModel(Protocol):
    """A fitted model of R fits: a dataclass, marked by ``storable`` if it can be stored."""

    def __call__(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` log-probabilities of m nodes, up to a constant per node."""

    def select(self, fit: int) -> Self:
        """The model of one fit."""


@storable
@dataclass(frozen=True, eq=False)
class NetworkRows:
    """Logits of a network; if it uses edges, the nodes must be all nodes of a graph."""

    network: Backbone

    def __call__(self, nodes: NodeTensors) -> Tensor:
        operator = self.network.operator(nodes.adjacency) if self.network.hops else None
        with torch.no_grad():
            logits: Tensor = self.network(self.network.inputs(nodes), operator).logits
        return logits

    def select(self, fit: int) -> NetworkRows:
        return NetworkRows(self.network.select_replica(fit))


@storable
@dataclass(frozen=True, eq=False)
class Affine:
    """Log-probabilities times a factor plus a constant per class, normalized.

    Attributes:
        factor: ``(R,)``.
        offset: ``(R, C)``; None for zero.
    """

    factor: Tensor
    offset: Tensor | None = None

    def apply(self, log_proba: Tensor) -> Tensor:
        """``(R, m, C)``."""
        scaled = self.factor[:, None, None] * log_proba
        if self.offset is not None:
            scaled = scaled + self.offset[:, None]
        return scaled.log_softmax(-1)

    def select(self, fit: int) -> Affine:
        """The map of one fit."""
        offset = None if self.offset is None else self.offset[fit : fit + 1]
        return Affine(self.factor[fit : fit + 1], offset)


@storable
@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Another model's prediction after an affine map."""

    model: RowModel
    affine: Affine

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return self.affine.apply(self.model(nodes))

    def select(self, fit: int) -> ScaledRows:
        return ScaledRows(self.model.select(fit), self.affine.select(fit))


@storable
@dataclass(frozen=True, eq=False)
class MeanRows:
    """The weighted mean of other models' log-probabilities.

    Attributes:
        models: the other models.
        weights: ``(R,)`` for each of them.
    """

    models: Sequence[RowModel]
    weights: Sequence[Tensor]

    def __call__(self, nodes: NodeTensors) -> Tensor:
        total: Tensor | None = None
        for model, weight in zip(self.models, self.weights, strict=True):
            if not bool(weight.any()):
                continue
            own = weight[:, None, None] * model(nodes)
            total = own if total is None else total.add_(own)
        assert total is not None
        return total

    def select(self, fit: int) -> MeanRows:
        models = [model.select(fit) for model in self.models]
        return MeanRows(models, [weight[fit : fit + 1] for weight in self.weights])


@dataclass(frozen=True, eq=False)
class OwnFeatures:
    """Another model, which reads features scaled by its method.

    It belongs to one method and cannot be stored.
    """

    model: RowModel
    scale: Scale

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return self.model(nodes.scaled_by(self.scale))

    def select(self, fit: int) -> OwnFeatures:
        return OwnFeatures(self.model.select(fit), self.scale)


@dataclass(frozen=True, eq=False)
class ProbabilityRows:
    """Logarithms of probabilities ``(R, m, C)`` that a function of nodes returns.

    It belongs to one graph and cannot be stored.
    """

    proba: NodeFunction

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return self.proba(nodes).log()

    def select(self, fit: int) -> ProbabilityRows:
        return ProbabilityRows(lambda nodes: self.proba(nodes)[fit : fit + 1])
