"""The weighted mean of members' predictions: weights, confidence and class shares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dcgst.features.graph_tensors import NodeRows
from dcgst.features.shares import every_kth, mean_probabilities, share_offsets
from dcgst.graph import UNKNOWN
from dcgst.methods.ensemble.members import SMALLEST, STUDENT, MemberFit
from dcgst.methods.row_models import Affine, RowModel, confidence_scale
from dcgst.methods.storage import storable
from dcgst.shift.selection import ranks

POWER = 4
"""The weight of a member is its left-out accuracy to this power."""

WEIGHT_OF_CLUSTERS = 20
"""Weight of a member that models all nodes, if the labels say nothing about the others."""

ENOUGH_RANDOM = 5
"""With so many random labels, left-out labels are believed at least half."""

SHARE_LABELS = 40
"""With so many random labels, half of their deviation from the predicted shares is believed."""

SMALLEST_SHARE = 0.2
"""Class shares are not corrected to less than this part of the predicted ones."""

FACTORS = torch.logspace(-1, 1, 41)
"""Factors of log-probabilities that are compared on left-out labels."""

MAX_CONFIDENCE = 0.98
MAX_SCALE = 4.0
"""A prediction that is almost the same for all nodes is not scaled up to look confident."""


@dataclass(frozen=True)
class Evidence:
    """Labels that some fits of the members did not have, in R fits.

    Attributes:
        labels: ``(R, m)`` class codes, -1 elsewhere.
        random: ``(R, m)`` bool, those of randomly chosen nodes.
        counts: ``(R, m)`` how many labels each of them counts as: one if its node was chosen at
            random, else the representativeness of the training labels.
        belief: ``(R,)`` how far weights and confidence follow these labels, from zero to one.
    """

    labels: Tensor
    random: Tensor
    counts: Tensor
    belief: Tensor

    @classmethod
    def of(cls, labels: Tensor, random: Tensor, left_out: Tensor, trust: Tensor) -> Evidence:
        """The evidence of given labels.

        Args:
            labels: ``(R, m)`` class codes, -1 elsewhere.
            random: ``(R, m)`` bool, those of randomly chosen nodes.
            left_out: ``(R, m)`` bool, those that some fits did not have.
            trust: ``(R,)`` representativeness of the training labels, from zero to one.
        """
        counts = torch.where(random, 1.0, trust[:, None]) * left_out
        chosen = (random & left_out).sum(1)
        belief = trust + (1 - trust) * chosen / (chosen + ENOUGH_RANDOM)
        return cls(labels, random & left_out, counts, belief)

    def accuracy(self, log_proba: Tensor) -> Tensor:
        """``(R,)`` accuracy of predictions ``(R, m, C)``, as if one more was right and one wrong.

        Without evidence it is one half for all predictions.
        """
        right = (log_proba.argmax(-1) == self.labels).to(self.counts.dtype)
        return ((right * self.counts).sum(1) + 1) / (self.counts.sum(1) + 2)

    def best_factor(self, log_proba: Tensor) -> Tensor:
        """``(R,)`` factor of log-probabilities ``(R, m, C)`` with the highest posterior.

        The prior of its logarithm is normal with standard deviation one around zero.
        """
        factors = FACTORS.to(log_proba)
        posterior = torch.stack(
            [self.log_likelihood(factor * log_proba) - factor.log() ** 2 / 2 for factor in factors]
        )
        return factors[posterior.argmax(0)]

    def log_likelihood(self, logits: Tensor) -> Tensor:
        """``(R,)`` of the labels by logits ``(R, m, C)``."""
        of_label = logits.log_softmax(-1).gather(-1, self.labels.clamp_min(0)[..., None])
        return (of_label.squeeze(-1) * self.counts).sum(1)


@dataclass(frozen=True)
class Combination:
    """Predictions of all members combined into one, in R fits.

    Attributes:
        log_proba: ``(R, n, C)`` of the fits to all labels.
        left_out: ``(R, m, C)`` of the rows of the evidence, without their labels.
        scales: of each member.
        weights: ``(R,)`` by member; they sum to one.
        calibration: of the weighted mean.
        agreement: ``(R,)`` mean share of the nodes to predict for which two members predict the
            same class.
    """

    log_proba: Tensor
    left_out: Tensor
    scales: Mapping[str, Affine]
    weights: Mapping[str, Tensor]
    calibration: Affine
    agreement: Tensor


def combine(
    members: Mapping[str, MemberFit],
    evidence: Evidence,
    nodes: Tensor,
    clusters: Collection[str] = (),
) -> Combination:
    r"""Combine the predictions of members.

    With belief b, each prediction is scaled by :math:`f^b g^{1-b}`, where f maximizes the
    likelihood of the left-out labels and g makes its mean confidence equal to its agreement with
    the other members (1 if no two members were fitted without each other's predictions). The
    weighted mean is scaled by :math:`f^b` in the same way.

    Args:
        members: the fitted members by name.
        evidence: the left-out labels.
        nodes: ``(R, n)`` bool, the nodes to predict.
        clusters: members that model the distribution of all nodes. They depend least on where the
            labels are, and count more if left-out labels are not believed.
    """
    belief = evidence.belief
    agreement = agreements(members, nodes)
    several = len(members.keys() - {STUDENT}) > 1
    scales: dict[str, Affine] = {}
    weights: dict[str, Tensor] = {}
    for name, fit in members.items():
        factor = evidence.best_factor(fit.left_out)
        if not several:
            factor = factor**belief
        elif bool((belief < 1).any()):
            chance = 1 / fit.log_proba.shape[-1] + 0.01
            target = agreement[name].clamp(chance, MAX_CONFIDENCE)
            common = confidence_scale(fit.log_proba, target, nodes).clamp_max(MAX_SCALE)
            factor = factor**belief * common ** (1 - belief)
        scales[name] = Affine(factor)
        weights[name] = evidence.accuracy(fit.left_out) ** POWER
        if name in clusters:
            weights[name] = weights[name] * (1 + (WEIGHT_OF_CLUSTERS - 1) * (1 - belief))
    weights = normalized(weights)
    left_out = weighted_mean({n: scales[n].apply(m.left_out) for n, m in members.items()}, weights)
    log_proba = weighted_mean(
        {n: scales[n].apply(m.log_proba) for n, m in members.items()}, weights
    )
    calibration = Affine(evidence.best_factor(left_out) ** belief)
    if bool(evidence.random.any()):
        calibration = with_shares(calibration, log_proba, left_out, evidence, nodes)
    return Combination(
        calibration.apply(log_proba),
        replace(calibration, offset=None).apply(left_out),
        scales,
        weights,
        calibration,
        torch.stack(list(agreement.values())).mean(0),
    )


def pseudo_labels(log_proba: Tensor, nodes: Tensor) -> Tensor:
    """``(R, n)`` classes of the confident half of the nodes of each predicted class, else -1.

    Args:
        log_proba: ``(R, n, C)``.
        nodes: ``(R, n)`` bool, the nodes to predict.
    """
    confidence, classes = log_proba.max(-1)
    counts = torch.zeros_like(log_proba[:, 0]).scatter_add_(1, classes, nodes.to(log_proba.dtype))
    half = ranks(confidence, nodes, classes) < counts.gather(1, classes) / 2
    return classes.masked_fill(~(nodes & half), UNKNOWN)


def agreements(members: Mapping[str, MemberFit], nodes: Tensor) -> dict[str, Tensor]:
    """``(R,)`` mean share of the nodes for which another member predicts the same class."""
    rows = every_kth(nodes)
    within = nodes[:, rows]
    classes = torch.stack([fit.log_proba[:, rows].argmax(-1) for fit in members.values()])
    total = within.sum(1).clamp_min(1)
    if len(members) == 1:
        return {name: torch.ones_like(total, dtype=torch.float32) for name in members}
    found = {}
    for name, own in zip(members, classes, strict=True):
        others = ((classes == own) & within).sum((0, 2)) - within.sum(1)
        found[name] = others / total / (len(members) - 1)
    return found


def normalized(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights ``(R,)`` by name, divided by their sum."""
    total = torch.stack(list(weights.values())).sum(0)
    return {name: own / total for name, own in weights.items()}


def weighted_mean(predictions: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Tensor:
    """``(R, n, C)`` weighted mean of log-probabilities by member, not normalized."""
    total: Tensor | None = None
    for name, log_proba in predictions.items():
        own = weights[name][:, None, None] * log_proba
        total = own if total is None else total.add_(own)
    assert total is not None
    return total


def with_shares(
    calibration: Affine, log_proba: Tensor, left_out: Tensor, evidence: Evidence, nodes: Tensor
) -> Affine:
    """The calibration that also corrects the class shares by random labels.

    They change by the difference between the classes of the random labels and the mean prediction
    for their nodes, less if they are few.

    Args:
        calibration: without a correction.
        log_proba: ``(R, n, C)`` weighted mean.
        left_out: ``(R, m, C)``, of the rows of the evidence, without their labels.
        evidence: the left-out labels.
        nodes: ``(R, n)`` bool, the nodes to predict.
    """
    log_proba, left_out = calibration.apply(log_proba), calibration.apply(left_out)
    random = evidence.random[..., None].to(log_proba.dtype)
    classes = torch.nn.functional.one_hot(evidence.labels.clamp_min(0), log_proba.shape[-1])
    difference = (random * (classes - left_out.exp())).sum(1) / (random.sum(1) + SHARE_LABELS)
    predicted = mean_probabilities(log_proba, nodes)
    shares = torch.maximum(predicted + difference, SMALLEST_SHARE * predicted)
    shares = shares / shares.sum(1, keepdim=True).clamp_min(SMALLEST)
    offset = share_offsets(log_proba, nodes, shares)
    return Affine(calibration.factor, torch.where(evidence.random.any(1)[:, None], offset, 0.0))


@storable
@dataclass(frozen=True, eq=False)
class CombinedModel:
    """The calibrated weighted mean of members as a model of nodes, in R fits.

    Attributes:
        members: by name; None for those that need the labels of the graph that they predict.
        scales: by name.
        weights: ``(R,)`` by name; those of the members that are present are divided by their sum.
        calibration: of the weighted mean.
        label_counts: ``(R, C)`` number of training labels of each class in the fit.
    """

    members: Mapping[str, RowModel | None]
    scales: Mapping[str, Affine]
    weights: Mapping[str, Tensor]
    calibration: Affine
    label_counts: Tensor

    def __call__(self, nodes: NodeRows) -> Tensor:
        """``(R, m, C)`` log-probabilities."""
        present = {name: model for name, model in self.members.items() if model is not None}
        weights = normalized({name: self.weights[name] for name in present})
        total: Tensor | None = None
        for name, model in present.items():
            log_proba = model(nodes).softmax(-1).clamp_min(SMALLEST).log()
            own = weights[name][:, None, None] * self.scales[name].apply(log_proba)
            total = own if total is None else total.add_(own)
        assert total is not None
        return self.calibration.apply(total)

    def select(self, fit: int) -> CombinedModel:
        """The model of one fit."""
        return CombinedModel(
            {name: model and model.select(fit) for name, model in self.members.items()},
            {name: scale.select(fit) for name, scale in self.scales.items()},
            {name: weight[fit : fit + 1] for name, weight in self.weights.items()},
            self.calibration.select(fit),
            self.label_counts[fit : fit + 1],
        )
