"""Experts: simple methods, each fitted alone, whose predictions are combined into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dcgst.methods.appnp import APPNP
from dcgst.methods.core.base import Method
from dcgst.methods.core.problem import Problem
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.em import EM
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.gcn import GCN
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.mlp import MLP
from dcgst.methods.pooling import confidence_scale
from dcgst.methods.sign import SIGN
from dcgst.shift.concentration import concentration, representativeness

FITTED: tuple[type[Method], ...] = (APPNP, MLP, SIGN, LabelPropagation, EM, GaussianProcess)
"""Fitted beside the pretrained teacher, and Correct and Smooth, which needs the MLP only."""

STUDENT = "dcgst"
EM_WEIGHT = 10.0
"""Weight of EM before any evidence if the labels are concentrated in the graph; else one."""

AGREEMENT_POWER = 2.0
MAX_CONFIDENCE = 0.98
MAX_SCALE = 4.0
"""A prediction that is almost the same for all nodes is not scaled up to look confident."""

SMALLEST = 1e-6
FACTORS = torch.logspace(-0.9, 0.6, 31)
"""Factors of log-probabilities that are compared on validation labels."""

SAMPLE = 20_000
"""Number of nodes on which agreement is measured."""


@dataclass(frozen=True)
class Member:
    """How one prediction is used in R fits.

    Attributes:
        log_weight: ``(R,)``, up to a constant.
        scale: ``(R,)`` factor of its log-probabilities.
        factor: ``(R,)`` the part of the scale that the validation labels determine.
        evidence: ``(R,)`` the part of the weight that the validation labels determine.
    """

    log_weight: Tensor
    scale: Tensor
    factor: Tensor
    evidence: Tensor

    def apply(self, log_proba: Tensor, reference: Tensor) -> Tensor:
        """``(R, n, C)`` scaled log-probabilities times the weight relative to ``(R,)``."""
        scaled = (self.scale[:, None, None] * log_proba).log_softmax(-1)
        return (self.log_weight - reference).exp()[:, None, None] * scaled


@dataclass(frozen=True)
class Pool:
    """Predictions of several members combined into one.

    Attributes:
        log_proba: ``(R, n, C)``, the weighted mean of scaled log-probabilities, normalized.
        members: by name.
    """

    log_proba: Tensor
    members: Mapping[str, Member]

    @property
    def weights(self) -> dict[str, Tensor]:
        """``(R,)`` by name; they sum to one."""
        shares = torch.stack([member.log_weight for member in self.members.values()]).softmax(0)
        return dict(zip(self.members, shares, strict=True))


class Experts:
    r"""The predictions of all experts in R fits, to be combined with the student's.

    Each prediction is scaled so that its mean confidence is its agreement with the experts, and
    then to the likelihood of the validation labels. Its weight is the product of a prior, its
    squared agreement, and the likelihood of the m validation labels to the power of
    :math:`1 / \sqrt m`. The prior favors EM if the labels are concentrated in the graph: EM models
    the distribution of the unlabeled nodes, so it suffers least.

    Args:
        problem: the input.
        teacher: ``(R, n, C)`` logits of the pretrained teacher, the plain graph network.
        val_labels: ``(R, n)`` labels that determine weights and scales; -1 elsewhere.
        known: members of an earlier fit, whose factors and evidence are used again.
    """

    def __init__(
        self,
        problem: Problem,
        teacher: Tensor,
        val_labels: Tensor,
        known: Mapping[str, Member] | None = None,
    ) -> None:
        self.problem, self.val_labels, self.known = problem, val_labels, known
        predictions = {GCN.name: teacher.log_softmax(-1), **fit_experts(problem, val_labels)}
        n = problem.pool.shape[1]
        self.sample = torch.arange(0, n, max(1, n // SAMPLE), device=problem.device)
        self.names = tuple(predictions)
        self.classes = torch.stack(  # (R, K, sample)
            [log_proba[:, self.sample].argmax(-1) for log_proba in predictions.values()], 1
        )
        self.prior = self.prior_weights()
        self.members = {
            name: self.member(name, log_proba) for name, log_proba in predictions.items()
        }
        # Many validation labels make all log-weights very negative; the largest is the reference.
        self.reference = torch.stack([m.log_weight for m in self.members.values()]).amax(0)
        self.total = torch.zeros_like(teacher)
        for name, log_proba in predictions.items():
            self.total = self.total + self.members[name].apply(log_proba, self.reference)

    def pool(self, student: Tensor) -> Pool:
        """Combine all experts and the logits of the student ``(R, n, C)``."""
        log_proba = student.log_softmax(-1)
        member = self.member(STUDENT, log_proba)
        total = self.total + member.apply(log_proba, self.reference)
        members = {**self.members, STUDENT: member}
        log_weights = torch.stack([m.log_weight for m in members.values()])
        mass = (log_weights - self.reference).exp().sum(0)
        return Pool((total / mass[:, None, None]).log_softmax(-1), members)

    def member(self, name: str, log_proba: Tensor) -> Member:
        """Weight and scale of a prediction ``(R, n, C)``."""
        agreement = self.agreement(name, log_proba)
        chance = 1 / self.problem.num_classes + 0.01
        scale = confidence_scale(log_proba, agreement.clamp(chance, MAX_CONFIDENCE))
        scale = scale.clamp_max(MAX_SCALE)
        if self.known is not None:
            factor, evidence = self.known[name].factor, self.known[name].evidence
        else:
            factor, likelihood = fit_factor(scale[:, None, None] * log_proba, self.val_labels)
            evidence = likelihood / (self.val_labels >= 0).sum(1).clamp_min(1).sqrt()
        log_weight = AGREEMENT_POWER * agreement.clamp_min(SMALLEST).log() + evidence
        if name in self.names:
            log_weight = log_weight + self.prior[:, self.names.index(name)].log()
        return Member(log_weight, scale * factor, factor, evidence)

    def agreement(self, name: str, log_proba: Tensor) -> Tensor:
        """``(R,)`` share of pool nodes on which the other experts predict the same class."""
        own = log_proba[:, self.sample].argmax(-1)
        pool = self.problem.pool[:, self.sample]
        same = (self.classes == own[:, None]) & pool[:, None]
        share = same.sum(-1) / pool.sum(1, keepdim=True).clamp_min(1)  # (R, K)
        others = torch.tensor([other != name for other in self.names], device=share.device)
        weights = self.prior * others
        return (share * weights).sum(1) / weights.sum(1)

    def prior_weights(self) -> Tensor:
        """``(R, K)`` weights before any evidence."""
        labeled = self.problem.train_labels >= 0
        trust = representativeness(concentration(labeled, self.problem.adjacency))
        weights = torch.ones(len(trust), len(self.names), device=trust.device)
        weights[:, self.names.index(EM.name)] += (EM_WEIGHT - 1) * (1 - trust)
        return weights


def fit_experts(problem: Problem, val_labels: Tensor) -> dict[str, Tensor]:
    """``(R, n, C)`` log-probabilities of each expert, fitted to the training labels.

    EM uses ``val_labels`` to weight its views, also where they are training labels: it has too few
    parameters to memorize them.
    """
    predictions = {}
    for kind in FITTED:
        alone = replace(problem, checkpoint=problem.checkpoint.within(kind.name))
        if kind is EM:
            alone = replace(alone, val_labels=val_labels)
        proba = [torch.from_numpy(result.proba) for result in kind().solve(alone)]
        predictions[kind.name] = torch.stack(proba).to(problem.device)
        if kind is MLP:
            corrected = CorrectAndSmooth().propagate(problem, predictions[MLP.name])
            predictions[CorrectAndSmooth.name] = corrected
    return {name: proba.clamp_min(SMALLEST).log() for name, proba in predictions.items()}


def fit_factor(log_proba: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """``(R,)`` factor of log-probabilities with the highest posterior, and its log-likelihood.

    Args:
        log_proba: ``(R, n, C)``, up to a constant per node.
        labels: ``(R, n)``, -1 elsewhere. Without labels, the factor is one.
    """
    rows = (labels >= 0).any(0).nonzero().flatten()
    targets = labels[:, rows]
    factors = FACTORS.to(log_proba)
    scaled = (factors[:, None, None, None] * log_proba[:, rows]).log_softmax(-1)
    index = targets.clamp_min(0)[None, ..., None].expand(len(factors), -1, -1, 1)
    of_label = scaled.gather(-1, index).squeeze(-1) * (targets >= 0)
    likelihood = of_label.sum(-1)  # (factors, R)
    best = (likelihood - factors.log().square()[:, None] / 2).argmax(0)
    return factors[best], likelihood.gather(0, best[None]).squeeze(0)
