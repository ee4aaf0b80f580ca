"""Fitted models that predict nodes from their rows of features, and means of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from dcgst.features.graph_tensors import NodeFunction, NodeRows, Scale
from dcgst.features.shares import every_kth
from dcgst.methods.storage import storable
from dcgst.nn.backbones import Backbone


class RowModel(Protocol):
    """A fitted model of R fits: a dataclass, marked by ``storable`` if it can be stored."""

    def __call__(self, nodes: NodeRows) -> Tensor:
        """``(R, m, C)`` log-probabilities of m nodes, up to a constant per node."""

    def select(self, fit: int) -> Self:
        """The model of one fit."""


@storable
@dataclass(frozen=True, eq=False)
class NetworkRows:
    """Logits of a network; if it uses edges, the nodes must be all nodes of a graph."""

    network: Backbone

    def __call__(self, nodes: NodeRows) -> Tensor:
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

    def __call__(self, nodes: NodeRows) -> Tensor:
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

    def __call__(self, nodes: NodeRows) -> Tensor:
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

    def __call__(self, nodes: NodeRows) -> Tensor:
        return self.model(nodes.scaled_by(self.scale))

    def select(self, fit: int) -> OwnFeatures:
        return OwnFeatures(self.model.select(fit), self.scale)


@dataclass(frozen=True, eq=False)
class ProbabilityRows:
    """Logarithms of probabilities ``(R, m, C)`` that a function of nodes returns.

    It belongs to one graph and cannot be stored.
    """

    proba: NodeFunction

    def __call__(self, nodes: NodeRows) -> Tensor:
        return self.proba(nodes).log()

    def select(self, fit: int) -> ProbabilityRows:
        return ProbabilityRows(lambda nodes: self.proba(nodes)[fit : fit + 1])


SAMPLE = 1500
"""Number of nodes whose mean confidence is computed."""

CONFIDENCE = 0.75
"""Mean confidence to which the predictions of every model are tempered."""


@dataclass(frozen=True)
class Prediction:
    """Prediction of one model, or of an average of models, in R fits.

    Attributes:
        log_proba: ``(R, n, C)`` log-probabilities, up to a constant per node.
        log_likelihood: ``(R,)`` of the validation labels; zero without validation labels.
        log_prior: ``(R,)`` logarithm of the model's weight before validation.
        model: what predicts the same for the rows of any nodes; None if there is no such model.
    """

    log_proba: Tensor
    log_likelihood: Tensor
    log_prior: Tensor
    model: RowModel | None = None

    @classmethod
    def from_logits(
        cls,
        logits: Tensor,
        val_labels: Tensor,
        log_prior: Tensor | None = None,
        model: RowModel | None = None,
    ) -> Prediction:
        """Create a prediction tempered to the common mean confidence.

        Args:
            logits: ``(R, n, C)``.
            val_labels: ``(R, n)``, -1 elsewhere.
            log_prior: ``(R,)``; default zero.
            model: what predicts these logits from rows.
        """
        affine = Affine(temperature_scale(logits, CONFIDENCE))
        log_proba = affine.apply(logits)
        of_label = log_proba.gather(-1, val_labels.clamp_min(0)[..., None]).squeeze(-1)
        log_likelihood = (of_label * (val_labels >= 0)).sum(1)
        if log_prior is None:
            log_prior = torch.zeros_like(log_likelihood)
        tempered = None if model is None else ScaledRows(model, affine)
        return cls(log_proba, log_likelihood, log_prior, tempered)


def log_pool(predictions: Iterable[Prediction]) -> Prediction:
    """Weighted mean of log-probabilities; weights are prior times likelihood.

    The average counts as one model: its likelihood is the mean of its members' likelihoods,
    weighted by their priors, and its prior is one. Members are added one at a time, so that memory
    does not grow with their number.
    """
    members = iter(predictions)
    first = next(members)
    total, log_prior = first.log_prior + first.log_likelihood, first.log_prior
    log_proba, log_weights, models = first.log_proba, [total], [first.model]
    for member in members:
        own = member.log_prior + member.log_likelihood
        log_weights.append(own)
        models.append(member.model)
        before, total = total, torch.logaddexp(total, own)
        log_proba = _scale(log_proba, before - total) + _scale(member.log_proba, own - total)
        log_prior = torch.logaddexp(log_prior, member.log_prior)
    known = [model for model in models if model is not None]
    weights = [(own - total).exp() for own in log_weights]
    model = MeanRows(known, weights) if len(known) == len(models) else None
    return Prediction(log_proba, total - log_prior, torch.zeros_like(total), model)


def _scale(log_proba: Tensor, log_weight: Tensor) -> Tensor:
    return log_weight.exp()[:, None, None] * log_proba


def temperature_scale(logits: Tensor, confidence: float) -> Tensor:
    """``(R,)`` the factor of logits ``(R, n, C)`` that gives them the mean confidence."""
    return confidence_scale(logits, logits.new_full((len(logits),), confidence))


def confidence_scale(
    logits: Tensor, confidence: Tensor, nodes: Tensor | None = None, iterations: int = 20
) -> Tensor:
    """``(R,)`` the factor of logits ``(R, n, C)`` that gives them a mean confidence ``(R,)``.

    Args:
        logits: ``(R, n, C)``.
        confidence: ``(R,)``.
        nodes: ``(R, n)`` bool, over which the mean is taken; default all. On large graphs it is
            taken over every k-th of them.
        iterations: of the search.
    """
    if nodes is None:
        nodes = torch.ones(logits.shape[:2], dtype=torch.bool, device=logits.device)
    rows = every_kth(nodes, SAMPLE)
    sample, within = logits[:, rows], nodes[:, rows]
    below = sample - sample.amax(-1, keepdim=True)
    within = (within | ~within.any(1, keepdim=True)).to(logits.dtype)
    low, high = (torch.full_like(confidence, bound) for bound in (0.01, 100.0))
    for _ in range(iterations):
        middle = (low * high).sqrt()
        highest = 1 / (middle[:, None, None] * below).exp_().sum(-1)
        too_low = (highest * within).sum(1) / within.sum(1) < confidence
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return (low * high).sqrt()


def mean_confidence(log_proba: Tensor, nodes: Tensor) -> Tensor:
    """``(R,)`` mean probability of the predicted class.

    Args:
        log_proba: ``(R, n, C)``.
        nodes: ``(R, n)`` bool, over which the mean is taken; if there are none, over all. On large
            graphs it is taken over every k-th of them.
    """
    rows = every_kth(nodes, SAMPLE)
    within = nodes[:, rows]
    within = within | ~within.any(1, keepdim=True)
    highest = log_proba[:, rows].amax(-1).exp()
    return (highest * within).sum(1) / within.sum(1)
