"""Calibration of a combined prediction: mean confidence and class shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dcgst.methods.core.problem import Problem
from dcgst.methods.core.row_models import Affine
from dcgst.methods.pooling import confidence_scale, mean_confidence
from dcgst.numerics.shares import mean_probabilities, share_offsets

FACTORS = torch.logspace(-0.9, 0.6, 31)
"""Factors of log-probabilities that are compared on validation labels."""

FACTOR_SPREAD = 0.25
"""Standard deviation of the logarithm of the factor before validation labels are seen, if the
training labels look representative; twice as much if they do not."""

SHARE_LABELS = 40
"""With this many random validation labels, half of their deviation from the predicted shares is
believed."""

SMALLEST_SHARE = 0.2
"""Class shares are not corrected to less than this part of the predicted ones."""


@dataclass(frozen=True)
class Correction:
    """How the validation labels change a prediction in R fits.

    Attributes:
        confidence: ``(R,)`` mean confidence.
        shares: ``(R, C)`` added to the predicted class shares.
    """

    confidence: Tensor
    shares: Tensor


def calibrate(
    problem: Problem,
    log_proba: Tensor,
    confidence: Tensor,
    val_labels: Tensor,
    trust: Tensor,
    *,
    known: Correction | None,
    estimate_shares: bool,
) -> tuple[Affine, Correction]:
    """How to scale a prediction to a mean confidence and correct its class shares.

    Validation labels change the confidence by a factor of the log-probabilities. If they are a
    random sample, they also change the class shares: by the difference between the shares among
    them and the mean prediction for them, less if they are few. Given shares are used as they are.
    The prediction of a second fit, trained on the validation labels too, gets the mean confidence
    of the first: its own would be too high.

    Args:
        problem: the input; its ``shares`` are used if they are given.
        log_proba: ``(R, n, C)``.
        confidence: ``(R,)`` expected mean confidence.
        val_labels: ``(R, n)``, -1 elsewhere.
        trust: ``(R,)`` how representative the training labels are, from zero to one.
        known: correction of an earlier fit, used instead of ``val_labels``.
        estimate_shares: whether the validation labels are a random sample.

    Returns:
        a map of log-probabilities, and the correction.
    """
    if known is not None:
        has_validation = (val_labels >= 0).any(1)
        confidence = torch.where(has_validation, known.confidence, confidence)
    scale = confidence_scale(log_proba, confidence, problem.pool)
    scaled = Affine(scale).apply(log_proba)
    if known is None:
        factor, _ = fit_factor(scaled, val_labels, FACTOR_SPREAD * (2 - trust))
        scale = scale * factor
        scaled = Affine(scale).apply(log_proba)
        shares = share_correction(scaled, val_labels) * float(estimate_shares)
        known = Correction(mean_confidence(scaled, problem.pool), shares)
    if problem.shares is not None:
        shares = problem.shares.expand_as(known.shares)
    elif bool(known.shares.any()):
        predicted = mean_probabilities(scaled, problem.pool)
        shares = torch.maximum(predicted + known.shares, SMALLEST_SHARE * predicted)
        shares = shares / shares.sum(1, keepdim=True)
    else:
        return Affine(scale), known
    return Affine(scale, share_offsets(scaled, problem.pool, shares)), known


def fit_factor(
    log_proba: Tensor, labels: Tensor, spread: Tensor | float = 1.0
) -> tuple[Tensor, Tensor]:
    """``(R,)`` factor of log-probabilities with the highest posterior, and its log-likelihood.

    Args:
        log_proba: ``(R, n, C)``, up to a constant per node.
        labels: ``(R, n)``, -1 elsewhere. Without labels, the factor is one.
        spread: standard deviation of the logarithm of the factor in the prior; ``(R,)`` or one.
    """
    rows = (labels >= 0).any(0).nonzero().flatten()
    known, targets = log_proba[:, rows], labels[:, rows]
    factors = FACTORS.to(log_proba)
    likelihood = torch.stack([_log_likelihood(factor * known, targets) for factor in factors])
    prior = (factors.log()[:, None] / spread).square() / 2
    best = (likelihood - prior).argmax(0)
    return factors[best], likelihood.gather(0, best[None]).squeeze(0)


def _log_likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """``(R,)`` of labels ``(R, m)``, -1 where a fit has none."""
    of_label = logits.log_softmax(-1).gather(-1, labels.clamp_min(0)[..., None]).squeeze(-1)
    return (of_label * (labels >= 0)).sum(-1)


def share_correction(log_proba: Tensor, labels: Tensor) -> Tensor:
    """``(R, C)`` class shares among labels minus the mean prediction for them, shrunk."""
    known = labels >= 0
    rows = known.any(0).nonzero().flatten()
    known, targets = known[:, rows, None].to(log_proba.dtype), labels[:, rows]
    one_hot = torch.nn.functional.one_hot(targets.clamp_min(0), log_proba.shape[-1])
    difference = (known * (one_hot - log_proba[:, rows].exp())).sum(1)
    return difference / (known.sum(1) + SHARE_LABELS)
