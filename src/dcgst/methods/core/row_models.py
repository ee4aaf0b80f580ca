"""Fitted models that predict a node from its own row of features, whatever graph it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dcgst.nn.base import Backbone
from dcgst.numerics.graph_tensors import NodeFunction, NodeTensors


class RowModel(Protocol):
    """A fitted model of R fits."""

    def __call__(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` log-probabilities of m nodes, up to a constant per node."""


@dataclass(frozen=True, eq=False)
class NetworkRows:
    """Logits of a network without edges."""

    network: Backbone

    def __call__(self, nodes: NodeTensors) -> Tensor:
        with torch.no_grad():
            logits: Tensor = self.network(self.network.inputs(nodes), None).logits
        return logits

    def proba(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` probabilities."""
        return self(nodes).softmax(-1)


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """Logarithms of another model's probabilities, which are at least ``smallest``."""

    proba: NodeFunction
    smallest: float = 1e-6

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return self.proba(nodes).clamp_min(self.smallest).log()


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


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Another model's prediction after an affine map."""

    model: RowModel
    affine: Affine

    def __call__(self, nodes: NodeTensors) -> Tensor:
        return self.affine.apply(self.model(nodes))


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
