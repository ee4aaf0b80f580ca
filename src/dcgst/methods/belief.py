"""Beliefs about the nodes' classes, and how several become one by what speaks for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Belief:
    """What one or several models believe in R runs, and what speaks for it.

    Attributes:
        log_proba: ``(R, n, C)`` log-probabilities, up to a constant per node.
        evidence: ``(R,)`` log-likelihood of the validation labels.
        favour: ``(R,)`` logarithm of the weight among others before any evidence.
    """

    log_proba: Tensor
    evidence: Tensor
    favour: Tensor

    @classmethod
    def of(
        cls, logits: Tensor, val_labels: Tensor, favour: Tensor | None = None, sure: float = 0.75
    ) -> Belief:
        """A model's belief, as sure as every other's.

        Args:
            logits: ``(R, n, C)``.
            val_labels: ``(R, n)``, -1 elsewhere; without any there is no evidence.
            favour: all are alike by default.
            sure: mean probability of the likeliest class.
        """
        log_proba = temper(logits, sure)
        truth = log_proba.gather(-1, val_labels.clamp_min(0)[..., None]).squeeze(-1)
        evidence = (truth * (val_labels >= 0)).sum(1)
        return cls(log_proba, evidence, torch.zeros_like(evidence) if favour is None else favour)


def together(beliefs: Iterable[Belief]) -> Belief:
    """Several beliefs as one: a mean of log-probabilities, weighted by favour and evidence.

    The whole has one voice: its evidence is the mean of its members', weighted by favour. One
    belief after the other is taken in, so that no more than two are held.
    """
    members = iter(beliefs)
    whole = next(members)
    total, favour = whole.favour + whole.evidence, whole.favour
    log_proba = whole.log_proba
    for belief in members:
        own = belief.favour + belief.evidence
        before, total = total, torch.logaddexp(total, own)
        log_proba = _scaled(log_proba, before - total) + _scaled(belief.log_proba, own - total)
        favour = torch.logaddexp(favour, belief.favour)
    return Belief(log_proba, total - favour, torch.zeros_like(total))


def _scaled(log_proba: Tensor, log_weight: Tensor) -> Tensor:
    return log_weight.exp()[:, None, None] * log_proba


def temper(logits: Tensor, confidence: float, iterations: int = 20) -> Tensor:
    """``(R, n, C)`` log-probabilities whose largest is ``confidence`` on average over the nodes.

    Logits of different models are on different scales; stretched to the same mean confidence, they
    can be weighed against each other. No label is used.
    """
    some = logits[:, :: max(1, logits.shape[1] // 1500)]
    low, high = (logits.new_full((len(logits), 1, 1), bound) for bound in (0.01, 100.0))
    for _ in range(iterations):
        middle = (low * high).sqrt()
        mean = (middle * some).softmax(-1).amax(-1).mean(1)
        short = (mean < confidence)[:, None, None]
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return ((low * high).sqrt() * logits).log_softmax(-1)
