"""Experts: simple methods, each fitted alone, whose predictions are combined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import AGREEMENT, LEFT_OUT
from dcgst.methods.core.row_models import Affine, BoundedRows, NetworkRows, RowModel
from dcgst.methods.correct_and_smooth import CorrectAndSmooth
from dcgst.methods.dcgst.calibration import Correction, calibrate, fit_factor
from dcgst.methods.dcgst.expert_fits import SMALLEST, fit_experts
from dcgst.methods.dcgst.pool_model import PoolModel
from dcgst.methods.em import EM
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.gcn import GCN
from dcgst.methods.label_propagation import LabelPropagation
from dcgst.methods.mlp import MLP
from dcgst.methods.pooling import confidence_scale, mean_confidence
from dcgst.methods.sign import SIGN
from dcgst.nn.base import Backbone
from dcgst.numerics.shares import every_kth

STUDENT = "student"
GP_STUDENT = "gp student"
FAVORED = (EM.name, GP_STUDENT)
WEIGHT_OF_FAVORED = 10.0
"""Weight before any evidence of EM and of the Gaussian process that learns from pseudo-labels, if
the labels are concentrated in the graph; else one. They depend least on where the labels are."""

DESCRIPTIONS = {
    GCN.name: "graph convolutions: means over neighbors",
    MLP.name: "features, no edges",
    CorrectAndSmooth.name: "features, corrected by the labels of neighbors",
    SIGN.name: "features of 0 to 3 hops, concatenated",
    LabelPropagation.name: "labels of neighbors, no features",
    EM.name: "clusters of all nodes, started from the labels",
    GaussianProcess.name: "similar labeled nodes, by features of 0 to 3 hops",
    STUDENT: "network trained on pseudo-labels that reduce the shift",
    GP_STUDENT: "Gaussian process trained on confident combined predictions",
}
"""What each member uses, for reports."""

AGREEMENT_POWER = 2.0
MAX_CONFIDENCE = 0.98
MAX_SCALE = 4.0
"""A prediction that is almost the same for all nodes is not scaled up to look confident."""

FULL_BELIEF = 20
"""With this many validation labels, their likelihood counts half; with many more, fully."""


@dataclass(frozen=True)
class Evidence:
    """What the validation labels say in R fits.

    Attributes:
        trust: ``(R,)`` how representative the training labels were, from zero to one.
        log_likelihood: ``(R,)`` by member, as far as it is believed.
        correction: of the combined prediction.
    """

    trust: Tensor
    log_likelihood: Mapping[str, Tensor]
    correction: Correction


@dataclass(frozen=True)
class Pool:
    """Predictions of several members combined into one, in R fits.

    Attributes:
        log_proba: ``(R, n, C)``, the weighted mean of scaled log-probabilities, calibrated.
        weights: ``(R,)`` by member; they sum to one.
        evidence: of the validation labels.
        calibration: of the weighted mean.
    """

    log_proba: Tensor
    weights: Mapping[str, Tensor]
    evidence: Evidence
    calibration: Affine


class Experts:
    r"""The predictions of all experts in R fits, to be combined with those of students.

    Each prediction is scaled so that its mean confidence is its agreement with the experts. Its
    weight is the product of a prior, its squared agreement, and the likelihood of the m validation
    labels to the power of :math:`m / (m + 20)`. The weighted mean is calibrated; see
    :func:`calibrate`.

    Args:
        problem: the input.
        teacher: ``(R, n, C)`` logits of the pretrained teacher.
        teacher_name: the name of its backbone.
        val_labels: ``(R, n)`` labels that determine weights and calibration; -1 elsewhere.
        evidence: of an earlier fit, used instead of ``val_labels``.
        estimate_shares: whether to estimate class shares from the validation labels.
    """

    def __init__(
        self,
        problem: Problem,
        teacher: Tensor,
        teacher_name: str,
        val_labels: Tensor,
        *,
        evidence: Evidence | None = None,
        estimate_shares: bool = True,
    ) -> None:
        self.problem, self.val_labels, self.evidence = problem, val_labels, evidence
        self.teacher_name = teacher_name
        self.estimate_shares = estimate_shares
        self.trust = problem.trust if evidence is None else evidence.trust
        self.fitted = fit_experts(
            problem, val_labels, {teacher_name: teacher.softmax(-1)}, self.trust
        )
        predictions = self.fitted.log_proba
        self.sample = every_kth(problem.pool)
        self.names = tuple(predictions)
        self.classes = torch.stack(  # (R, K, sample)
            [log_proba[:, self.sample].argmax(-1) for log_proba in predictions.values()], 1
        )
        self.priors = torch.stack([self.prior(name) for name in self.names], 1)
        self.log_likelihood: dict[str, Tensor] = {}
        self.log_weights: dict[str, Tensor] = {}
        self.scales: dict[str, Affine] = {}
        scaled = {name: self.weigh(name, p) for name, p in predictions.items()}
        weights = self.weights(self.names)
        self.total = torch.zeros_like(teacher)
        for name, log_proba in scaled.items():
            self.total = self.total + weights[name][:, None, None] * log_proba
        self.expected_confidence = mean_confidence(predictions[GaussianProcess.name], problem.pool)

    def pool(self, students: Mapping[str, Tensor]) -> Pool:
        """Combine all experts and the logits of students ``(R, n, C)`` by name."""
        scaled = {name: self.weigh(name, p.log_softmax(-1)) for name, p in students.items()}
        weights = self.weights((*self.names, *students))
        of_experts = torch.stack([weights[name] for name in self.names]).sum(0)
        total = of_experts[:, None, None] * self.total
        for name, own_log_proba in scaled.items():
            total = total + weights[name][:, None, None] * own_log_proba
        log_proba = total.log_softmax(-1)
        # The Gaussian process knows its accuracy by leaving labels out; that of biased labels
        # is not the accuracy elsewhere.
        own = mean_confidence(log_proba, self.problem.pool)
        confidence = self.trust * self.expected_confidence + (1 - self.trust) * own
        calibration, correction = calibrate(
            self.problem,
            log_proba,
            confidence.clamp(self.chance, MAX_CONFIDENCE),
            self.val_labels,
            self.trust,
            known=self.evidence.correction if self.evidence else None,
            estimate_shares=self.estimate_shares,
        )
        likelihood = {name: self.log_likelihood[name] for name in weights}
        evidence = Evidence(self.trust, likelihood, correction)
        return Pool(calibration.apply(log_proba), weights, evidence, calibration)

    def model(
        self, pool: Pool, teacher: Backbone, student: Backbone, second: RowModel
    ) -> PoolModel:
        """The combined prediction as a model of other nodes.

        Args:
            pool: the combined prediction.
            teacher: as pretrained.
            student: the first student.
            second: the second student.
        """
        models: dict[str, RowModel] = {
            **self.fitted.models,
            self.teacher_name: BoundedRows(NetworkRows(teacher), SMALLEST),
            STUDENT: NetworkRows(student),
            GP_STUDENT: second,
        }
        members = {name: models[name] for name in pool.weights}
        log_weights = {name: self.log_weights[name] for name in pool.weights}
        counts = self.problem.label_counts()
        return PoolModel(members, self.scales, log_weights, pool.calibration, counts)

    def expectations(self) -> list[dict[str, float]]:
        """What is known about the accuracy of each fit without validation labels."""
        count = len(self.names)
        shares = sum(self.same_class(own).sum(1) - 1 for own in self.classes.unbind(1))
        agreement = torch.as_tensor(shares / (count * (count - 1))).tolist()
        return [
            {LEFT_OUT: left_out, AGREEMENT: share}
            for left_out, share in zip(self.fitted.left_out, agreement, strict=True)
        ]

    @property
    def chance(self) -> float:
        return 1 / self.problem.num_classes + 0.01

    def weigh(self, name: str, log_proba: Tensor) -> Tensor:
        """Scale a prediction ``(R, n, C)`` to its agreement and set its weight."""
        agreement = self.agreement(name, log_proba)
        target = agreement.clamp(self.chance, MAX_CONFIDENCE)
        scale = confidence_scale(log_proba, target, self.problem.pool)
        self.scales[name] = Affine(scale.clamp_max(MAX_SCALE))
        scaled = self.scales[name].apply(log_proba)
        if self.evidence is not None:
            likelihood = self.evidence.log_likelihood[name]
        else:
            _, likelihood = fit_factor(scaled, self.val_labels)
            count = (self.val_labels >= 0).sum(1)
            likelihood = likelihood * count / (count + FULL_BELIEF)
        self.log_likelihood[name] = likelihood
        log_agreement = agreement.clamp_min(SMALLEST).log()
        self.log_weights[name] = (
            self.prior(name).log() + AGREEMENT_POWER * log_agreement + likelihood
        )
        return scaled

    def weights(self, names: Sequence[str]) -> dict[str, Tensor]:
        """``(R,)`` weights of some members by name; they sum to one."""
        log_weights = torch.stack([self.log_weights[name] for name in names])
        return dict(zip(names, log_weights.softmax(0), strict=True))

    def agreement(self, name: str, log_proba: Tensor) -> Tensor:
        """``(R,)`` share of pool nodes on which the other experts predict the same class."""
        share = self.same_class(log_proba[:, self.sample].argmax(-1))
        others = torch.tensor([other != name for other in self.names], device=share.device)
        weights = self.priors * others
        return (share * weights).sum(1) / weights.sum(1)

    def same_class(self, own: Tensor) -> Tensor:
        """``(R, K)`` share of pool nodes for which each expert predicts the class ``own``."""
        pool = self.problem.pool[:, self.sample]
        same = (self.classes == own[:, None]) & pool[:, None]
        return same.sum(-1) / pool.sum(1, keepdim=True).clamp_min(1)

    def prior(self, name: str) -> Tensor:
        """``(R,)`` weight before any evidence."""
        favor = (WEIGHT_OF_FAVORED - 1) * (1 - self.trust)
        return 1 + favor if name in FAVORED else torch.ones_like(self.trust)
