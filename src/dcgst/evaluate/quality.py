"""Quality of predictions: accuracy, quality by class, and estimates from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.metrics import average_precision_score, confusion_matrix

from dcgst.errors import InputError
from dcgst.evaluate.calibration import Bin, expected_calibration_error, reliability
from dcgst.train.random import Purpose, derive


def accuracy(
    predicted: NDArray[np.int64], truth: NDArray[np.int64], mask: NDArray[np.bool_]
) -> float:
    """Share of correct predictions among the nodes of the mask.

    Example:
        >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([True, True, True]))
        0.6666666666666666
    """
    if not mask.any():
        raise InputError("accuracy needs at least one node of known class")
    return float((predicted == truth)[mask].mean())


def share_error(shares: NDArray[np.floating], truth: NDArray[np.int64]) -> float:
    """Half the sum of differences between estimated and true class shares; 0 if they are equal.

    Args:
        shares: ``(C,)``, for example mean probabilities.
        truth: true class codes.

    Example:
        >>> share_error(np.array([0.5, 0.5]), np.array([0, 0, 0, 1]))
        0.25
    """
    true = np.bincount(truth, minlength=len(shares)) / len(truth)
    return float(np.abs(shares - true).sum() / 2)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for multiple tests (Holm, 1979).

    Example:
        >>> holm([0.01, 0.04])
        [0.02, 0.04]
    """
    corrected = np.empty(len(p_values))
    highest = 0.0
    for place, index in enumerate(np.argsort(p_values)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = highest
    return [float(value) for value in corrected]


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


RESAMPLES = 2000
"""Bootstrap samples of an interval."""

MOST_CELLS = 4_000_000
"""Largest number of random numbers in memory."""


@dataclass(frozen=True)
class ClassQuality:
    """Quality of the predictions for one class; None where it is not defined.

    Attributes:
        name: the class.
        nodes: number of nodes of the class.
        predicted: number of nodes predicted to be of the class.
        precision: share of the predicted nodes that are of the class.
        recall: share of the nodes of the class that are predicted.
        f1: harmonic mean of precision and recall.
        average_precision: area under the curve of precision and recall, by decreasing probability.
    """

    name: str
    nodes: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
    average_precision: float | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Quality of predictions for nodes of known class.

    The interval of the accuracy is Wilson's, the others are by bootstrap over the nodes.

    Attributes:
        nodes: number of nodes.
        accuracy: share of correct predictions.
        balanced_accuracy: mean recall of the classes.
        macro_f1: mean F1 of the classes.
        ece: expected calibration error.
        mean_probability: mean probability of the predicted classes.
        classes: quality by class.
        confusion: ``(C, C)`` number of nodes by true class (rows) and predicted class.
        bins: confidence and accuracy of nodes of similar confidence.
    """

    nodes: int
    accuracy: Estimate
    balanced_accuracy: Estimate
    macro_f1: Estimate
    ece: float
    mean_probability: float
    classes: list[ClassQuality]
    confusion: NDArray[np.int64]
    bins: list[Bin]


def evaluate(
    proba: NDArray[np.float32], truth: NDArray[np.int64], class_names: Sequence[str], seed: int = 0
) -> Evaluation:
    """Compare predictions with true classes.

    Args:
        proba: ``(n, C)``.
        truth: ``(n,)`` class codes.
        class_names: name of each class.
        seed: seed of the bootstrap samples.

    Example:
        >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]], dtype=np.float32)
        >>> found = evaluate(proba, np.array([0, 1, 1, 1]), ["a", "b"])
        >>> found.accuracy.value, found.confusion.tolist()
        (0.75, [[1, 0], [1, 2]])
    """
    if not len(truth):
        raise InputError("an evaluation needs at least one node of known class")
    codes = range(len(class_names))
    confusion = confusion_matrix(truth, proba.argmax(axis=1), labels=np.arange(len(class_names)))
    counts = Counts.of(confusion)
    resampled = counts_of_resamples(
        confusion, np.random.default_rng(derive(seed, Purpose.BOOTSTRAP))
    )
    return Evaluation(
        nodes=len(truth),
        accuracy=_accuracy(counts),
        balanced_accuracy=_interval(Counts.balanced_accuracy, counts, resampled),
        macro_f1=_interval(Counts.macro_f1, counts, resampled),
        ece=expected_calibration_error(proba, truth),
        mean_probability=float(proba.max(axis=1).mean()),
        classes=[_class_quality(c, class_names[c], proba, truth, counts) for c in codes],
        confusion=confusion,
        bins=reliability(proba, truth),
    )


@dataclass(frozen=True, eq=False)
class Counts:
    """Number of nodes by class, ``(B, C)`` in B samples.

    Attributes:
        hits: correctly predicted nodes.
        true: nodes of the class.
        predicted: nodes predicted to be of the class.
    """

    hits: NDArray[np.float64]
    true: NDArray[np.float64]
    predicted: NDArray[np.float64]

    @classmethod
    def of(cls, confusion: NDArray[np.int64]) -> Counts:
        """Counts ``(1, C)`` of one confusion matrix."""
        parts = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
        return cls(*(part[None].astype(float) for part in parts))

    def accuracy(self) -> NDArray[np.float64]:
        return np.asarray(self.hits.sum(1) / self.true.sum(1))

    def balanced_accuracy(self) -> NDArray[np.float64]:
        """Mean recall of the classes that occur."""
        return _mean_of_defined(self.hits, self.true)

    def macro_f1(self) -> NDArray[np.float64]:
        """Mean F1 of the classes that occur or are predicted."""
        return _mean_of_defined(2 * self.hits, self.true + self.predicted)


def _mean_of_defined(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = whole > 0
    ratio = np.divide(part, whole, out=np.zeros_like(part), where=defined)
    mean: NDArray[np.float64] = ratio.sum(1) / defined.sum(1)
    return mean


def counts_of_resamples(confusion: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """Counts of bootstrap samples of the nodes."""
    rows, columns = confusion.nonzero()
    share = confusion[rows, columns] / confusion.sum()
    to_row, to_column = np.eye(len(confusion))[rows], np.eye(len(confusion))[columns]
    correct = (rows == columns)[:, None] * to_row
    block = max(1, MOST_CELLS // len(rows))
    parts = []
    for start in range(0, RESAMPLES, block):
        size = min(block, RESAMPLES - start)
        drawn = rng.multinomial(confusion.sum(), share, size=size)
        parts.append([drawn @ sums for sums in (correct, to_row, to_column)])
    return Counts(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _accuracy(counts: Counts) -> Estimate:
    """With Wilson's interval, which also holds if all predictions are right."""
    value, nodes = float(counts.accuracy()[0]), int(counts.true.sum())
    return Estimate(value, *wilson(value, nodes), nodes)


def _interval(
    measure: Callable[[Counts], NDArray[np.float64]], counts: Counts, resampled: Counts
) -> Estimate:
    low, high = np.quantile(measure(resampled), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(float(measure(counts)[0]), low, high, int(counts.true.sum()))


def _class_quality(
    code: int, name: str, proba: NDArray[np.float32], truth: NDArray[np.int64], counts: Counts
) -> ClassQuality:
    hits, true, predicted = (
        int(part[0, code]) for part in (counts.hits, counts.true, counts.predicted)
    )
    own = truth == code
    return ClassQuality(
        name=name,
        nodes=true,
        predicted=predicted,
        precision=hits / predicted if predicted else None,
        recall=hits / true if true else None,
        f1=2 * hits / (true + predicted) if true + predicted else None,
        average_precision=(
            float(average_precision_score(own, proba[:, code]))
            if true and proba[:, code].any()
            else None
        ),
    )
