"""Beliefs about the nodes' classes, and how several become one by what speaks for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Belief:
    """What one or several models believe in R runs, and the evidence for it.

    Attributes:
        log_proba: ``(R, n, C)`` log-probabilities, up to a constant per node.
        evidence: ``(R,)`` logarithm of the weight in a company of beliefs.
    """

    log_proba: Tensor
    evidence: Tensor

    @classmethod
    def of(cls, logits: Tensor, val_labels: Tensor, confidence: float = 0.75) -> Belief:
        """A model's belief: equally sure as every other's, and as credible as its validation.

        The evidence is the log-likelihood of the validation labels ``(R, n)``, -1 elsewhere;
        without any, all beliefs weigh the same.
        """
        log_proba = temper(logits, confidence)
        counted = val_labels >= 0
        truth = log_proba.gather(-1, val_labels.clamp_min(0)[..., None]).squeeze(-1)
        return cls(log_proba, (truth * counted).sum(1))

    def __add__(self, other: Belief) -> Belief:
        """Both, weighted by their evidence: a weighted mean of log-probabilities."""
        evidence = torch.logaddexp(self.evidence, other.evidence)
        own, others = (
            (b.evidence - evidence).exp()[:, None, None] * b.log_proba for b in (self, other)
        )
        return Belief(own + others, evidence)


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
