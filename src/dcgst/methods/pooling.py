"""Pooling of predictions: several models' log-probabilities combined into one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.methods.core.row_models import Affine, MeanRows, RowModel, ScaledRows
from dcgst.numerics.shares import every_kth

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


def temper(logits: Tensor, confidence: float) -> Tensor:
    """``(R, n, C)`` log-probabilities with the given mean confidence over the nodes.

    Logits of different models have different scales. Tempered to the same mean confidence, they can
    be averaged. No label is used.
    """
    return Affine(temperature_scale(logits, confidence)).apply(logits)


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
