"""Estimates of accuracy and class shares from a random sample of labels, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dcgst.errors import InputError

LEVEL = 0.95
"""Probability with which an interval contains the true value."""

PRIOR_LABELS = 3
"""The slope is estimated as if this many more labels did not depend on the predictions."""

MOST_GAIN = 4.0
"""Predictions count for at most as much as if there were this many times the labels."""

CALIBRATION_LABELS = 10
"""The mean of calibrated predictions counts as much as this many labels."""

CROSS_VALIDATED_LABEL = 0.8
"""A label counts less if it was left out of some fits but used in others: their errors depend on
each other."""


@dataclass(frozen=True)
class Estimate:
    """An estimated share and its interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval.
        high: upper end of the interval.
        labels: number of labels it was estimated from.
    """

    value: float
    low: float
    high: float
    labels: int

    def __str__(self) -> str:
        return f"{self.value:.0%} (95% interval {100 * self.low:.0f} to {100 * self.high:.0f})"

    @property
    def text(self) -> str:
        """The estimate and its interval, for tables."""
        return f"{self.value:.0%} ({100 * self.low:.0f} to {100 * self.high:.0f})"


def estimate_share(
    observed: NDArray[np.bool_],
    predicted: NDArray[np.floating],
    predicted_all: NDArray[np.floating],
    *,
    calibrated: bool = False,
) -> Estimate:
    r"""Estimate a share of a population from a random sample and predictions for everyone.

    The share in the sample is corrected for the difference between sample and population that the
    predictions show (regression estimator, prediction-powered inference):

    .. math:: \hat p = \bar y - \lambda\,(\bar c_{sample} - \bar c_{all})

    λ is the slope of the outcomes in the predictions, from zero to one. Predictions that explain
    part of the variance narrow the interval; useless ones have λ = 0 and change nothing. The
    interval is Wilson's, with the number of labels divided by the unexplained share of the
    variance.

    The mean of calibrated predictions is evidence as well. It counts as ten labels: the estimate is
    :math:`(m \hat p + 10\, \bar c_{all}) / (m + 10)` for m labels, and the interval that of
    :math:`0.8\,(m + 10)` labels, since errors of cross-validated fits depend on each other. Both
    numbers were chosen on runs 10 to 29 of the graphs of the few-label suite.

    Papers: https://doi.org/10.1080/01621459.1927.10502953 (Wilson),
    https://doi.org/10.1126/science.adi6000 (prediction-powered inference)

    Args:
        observed: ``(m,)`` outcomes in the sample.
        predicted: ``(m,)`` predicted probabilities of the outcomes.
        predicted_all: ``(N,)`` predicted probabilities in the population.
        calibrated: whether the predictions are those of fits that were calibrated and
            cross-validated with the same labels.

    Example:
        >>> correct = np.arange(30) % 4 > 0
        >>> print(estimate_share(correct, np.full(30, 0.7), np.full(500, 0.7)))
        73% (95% interval 56 to 86)
    """
    labels = len(observed)
    if not labels:
        raise InputError("an estimate needs at least one randomly chosen node of known class")
    outcomes = np.asarray(observed, dtype=np.float64)
    sample, population = np.asarray(predicted, float), np.asarray(predicted_all, float)
    if not population.size:  # all nodes are labeled: the sample is all there is
        population = sample
    mean, variance = population.mean(), population.var()
    deviation = sample - sample.mean()
    total = deviation @ deviation + PRIOR_LABELS * variance
    slope = float(np.clip(outcomes @ deviation / total, 0, 1)) if total > 0 else 0.0
    value = float(np.clip(outcomes.mean() - slope * (sample.mean() - mean), 0, 1))
    count = float(labels)
    if calibrated:
        value = (labels * value + CALIBRATION_LABELS * mean) / (labels + CALIBRATION_LABELS)
        count = CROSS_VALIDATED_LABEL * (labels + CALIBRATION_LABELS)
    of_outcomes = value * (1 - value)
    unexplained = 1 - slope**2 * variance / of_outcomes if of_outcomes > 0 else 1.0
    low, high = wilson(value, count / np.clip(unexplained, 1 / MOST_GAIN, 1))
    return Estimate(value, low, high, labels)


def wilson(share: float, labels: float) -> tuple[float, float]:
    """Interval of a share that was observed with a number of labels.

    Example:
        >>> [round(end, 3) for end in wilson(0.5, 20)]
        [0.299, 0.701]
    """
    z = float(norm.ppf((1 + LEVEL) / 2))
    shrunk = 1 + z**2 / labels
    center = (share + z**2 / (2 * labels)) / shrunk
    half = z / shrunk * np.sqrt(share * (1 - share) / labels + z**2 / (4 * labels**2))
    return max(0.0, float(center - half)), min(1.0, float(center + half))
