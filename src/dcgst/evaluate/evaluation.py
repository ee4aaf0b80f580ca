"""Quality of predictions for nodes whose true class is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, confusion_matrix

from dcgst.engine.random import Purpose, derive
from dcgst.errors import InputError
from dcgst.evaluate.calibration import Bin, expected_calibration_error, reliability
from dcgst.evaluate.estimate import LEVEL, Estimate, wilson

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
