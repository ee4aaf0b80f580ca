"""Weights, temperature and class shares of an ensemble, from left-out labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.methods.core.row_models import Affine, RowModel
from dcgst.methods.core.storage import storable
from dcgst.methods.ensemble.members import MemberFit
from dcgst.numerics.graph_tensors import NodeTensors
from dcgst.numerics.shares import mean_probabilities, share_offsets

POWER = 4
"""The weight of a member is its left-out accuracy to this power."""

FACTORS = torch.logspace(-1, 1, 41)
"""Factors of log-probabilities that are compared on left-out labels."""

SHARE_LABELS = 40
"""With this many random labels, half of their deviation from the predicted shares is believed."""

SMALLEST_SHARE = 0.2
"""Class shares are not corrected to less than this part of the predicted ones."""


@dataclass(frozen=True)
class Evidence:
    """Labels that were left out, in R fits.

    Attributes:
        labels: ``(R, n)`` class codes, -1 elsewhere.
        counts: ``(R, n)`` how many labels each of them counts as.
    """

    labels: Tensor
    counts: Tensor

    def accuracy(self, log_proba: Tensor) -> Tensor:
        """``(R,)`` accuracy of predictions ``(R, n, C)``, as if one more was right and one wrong.

        Without evidence it is one half for all predictions.
        """
        right = (log_proba.argmax(-1) == self.labels).to(self.counts.dtype)
        return ((right * self.counts).sum(1) + 1) / (self.counts.sum(1) + 2)

    def log_likelihood(self, log_proba: Tensor) -> Tensor:
        """``(R,)`` of predictions ``(R, n, C)``."""
        of_label = log_proba.gather(-1, self.labels.clamp_min(0)[..., None]).squeeze(-1)
        return (of_label * self.counts).sum(1)


@dataclass(frozen=True)
class Pool:
    """Predictions of all members combined into one, in R fits.

    Attributes:
        log_proba: ``(R, n, C)`` of the fits to all labels.
        left_out: ``(R, n, C)``, for labeled nodes without their labels.
        scales: of each member.
        weights: ``(R,)`` by member; they sum to one.
        calibration: of the weighted mean.
        accuracy: ``(R,)`` on left-out labels, by member.
    """

    log_proba: Tensor
    left_out: Tensor
    scales: Mapping[str, Affine]
    weights: Mapping[str, Tensor]
    calibration: Affine
    accuracy: Mapping[str, Tensor]


def combine(
    members: Mapping[str, MemberFit],
    evidence: Evidence,
    nodes: Tensor,
    random: Tensor | None = None,
) -> Pool:
    """Combine the predictions of members.

    Each is scaled to the highest likelihood of the left-out labels and weighted by its accuracy on
    them. Their weighted mean is scaled in the same way.

    Args:
        members: the fitted members by name.
        evidence: the left-out labels.
        nodes: ``(R, n)`` bool, the nodes to predict.
        random: ``(R, n)`` labels of a random sample, -1 elsewhere, which correct the class shares.
    """
    scales = {name: Affine(fit_factor(fit.left_out, evidence)) for name, fit in members.items()}
    accuracy = {name: evidence.accuracy(fit.left_out) for name, fit in members.items()}
    weights = normalized({name: value**POWER for name, value in accuracy.items()})
    pooled, left_out = (
        log_pool({name: scales[name].apply(own) for name, own in predictions.items()}, weights)
        for predictions in (
            {name: fit.log_proba for name, fit in members.items()},
            {name: fit.left_out for name, fit in members.items()},
        )
    )
    calibration = Affine(fit_factor(left_out, evidence))
    if random is not None and bool((random >= 0).any()):
        shares = corrected_shares(
            calibration.apply(pooled), calibration.apply(left_out), nodes, random
        )
        offset = share_offsets(calibration.apply(pooled), nodes, shares)
        calibration = Affine(calibration.factor, offset)
    return Pool(
        calibration.apply(pooled),
        calibration.apply(left_out),
        scales,
        weights,
        calibration,
        accuracy,
    )


def normalized(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights ``(R,)`` by name, divided by their sum."""
    total = torch.stack(list(weights.values())).sum(0)
    return {name: own / total for name, own in weights.items()}


def log_pool(predictions: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Tensor:
    """``(R, n, C)`` weighted mean of log-probabilities by member, not normalized."""
    total: Tensor | None = None
    for name, log_proba in predictions.items():
        own = weights[name][:, None, None] * log_proba
        total = own if total is None else total.add_(own)
    assert total is not None
    return total


def fit_factor(log_proba: Tensor, evidence: Evidence) -> Tensor:
    """``(R,)`` factor of log-probabilities ``(R, n, C)`` with the highest posterior.

    The prior of its logarithm is normal with standard deviation one around zero.
    """
    rows = (evidence.counts > 0).any(0).nonzero().squeeze(1)
    known = Evidence(evidence.labels[:, rows], evidence.counts[:, rows])
    factors = FACTORS.to(log_proba)
    posterior = torch.stack(
        [
            known.log_likelihood((factor * log_proba[:, rows]).log_softmax(-1))
            - factor.log() ** 2 / 2
            for factor in factors
        ]
    )
    return factors[posterior.argmax(0)]


def corrected_shares(log_proba: Tensor, left_out: Tensor, nodes: Tensor, random: Tensor) -> Tensor:
    """``(R, C)`` class shares: predicted ones, moved towards those of a random sample.

    They change by the difference between the classes of the sample and the mean prediction for it
    without its labels, less if the sample is small.

    Args:
        log_proba: ``(R, n, C)``.
        left_out: ``(R, n, C)``, for labeled nodes without their labels.
        nodes: ``(R, n)`` bool, the nodes to predict.
        random: ``(R, n)`` labels of the sample, -1 elsewhere.
    """
    known = (random >= 0)[..., None].to(log_proba.dtype)
    classes = torch.nn.functional.one_hot(random.clamp_min(0), log_proba.shape[-1])
    difference = (known * (classes - left_out.exp())).sum(1) / (known.sum(1) + SHARE_LABELS)
    predicted = mean_probabilities(log_proba, nodes)
    shares = torch.maximum(predicted + difference, SMALLEST_SHARE * predicted)
    return shares / shares.sum(1, keepdim=True).clamp_min(1e-12)


@storable
@dataclass(frozen=True, eq=False)
class PooledModel:
    """The calibrated weighted mean of members as a model of the nodes of any graph, in R fits.

    Attributes:
        members: by name.
        scales: by name.
        weights: ``(R,)`` by name.
        calibration: of the weighted mean.
        smallest: smallest probability of a member.
    """

    members: Mapping[str, RowModel]
    scales: Mapping[str, Affine]
    weights: Mapping[str, Tensor]
    calibration: Affine
    smallest: float

    def __call__(self, nodes: NodeTensors) -> Tensor:
        """``(R, m, C)`` log-probabilities."""
        predictions = {
            name: self.scales[name].apply(model(nodes).softmax(-1).clamp_min(self.smallest).log())
            for name, model in self.members.items()
        }
        weights = normalized({name: self.weights[name] for name in self.members})
        return self.calibration.apply(log_pool(predictions, weights))

    def select(self, fit: int) -> PooledModel:
        """The model of one fit."""
        return PooledModel(
            {name: model.select(fit) for name, model in self.members.items()},
            {name: scale.select(fit) for name, scale in self.scales.items()},
            {name: weight[fit : fit + 1] for name, weight in self.weights.items()},
            self.calibration.select(fit),
            self.smallest,
        )
