"""Evaluation: figures as in scikit-learn, intervals by bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    precision_score,
    recall_score,
)

from dcgst.errors import InputError
from dcgst.evaluate import quality as module
from dcgst.evaluate.quality import Counts, counts_of_resamples, evaluate

NAMES = ["a", "b", "c"]


@pytest.fixture
def predictions(rng):
    truth = rng.integers(3, size=300)
    proba = rng.dirichlet(np.ones(3), size=300).astype(np.float32)
    proba[np.arange(300), truth] += 0.3
    return proba / proba.sum(1, keepdims=True), truth


def test_figures_are_those_of_scikit_learn(predictions):
    proba, truth = predictions
    predicted = proba.argmax(1)
    found = evaluate(proba, truth, NAMES)
    assert found.nodes == 300
    assert found.accuracy.value == pytest.approx(accuracy_score(truth, predicted))
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert found.macro_f1.value == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert found.confusion.tolist() == confusion_matrix(truth, predicted).tolist()
    assert found.mean_probability == pytest.approx(proba.max(1).mean())
    each = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for name, score in each.items():
        own = [getattr(quality, name) for quality in found.classes]
        assert own == pytest.approx(score(truth, predicted, average=None).tolist())
    for code, quality in enumerate(found.classes):
        expected = average_precision_score(truth == code, proba[:, code])
        assert quality.average_precision == pytest.approx(expected)
        assert (quality.nodes, quality.predicted) == (
            (truth == code).sum(),
            (predicted == code).sum(),
        )


def test_a_class_that_does_not_occur_has_no_recall():
    proba = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1]], dtype=np.float32)
    found = evaluate(proba, np.array([0, 1]), NAMES)
    first, second, third = found.classes
    assert (first.precision, first.recall) == (0.5, 1)
    assert (second.precision, second.recall, second.f1) == (None, 0, 0)
    assert (third.precision, third.recall, third.f1, third.average_precision) == (None,) * 4
    assert found.balanced_accuracy.value == 0.5
    assert found.macro_f1.value == pytest.approx((2 / 3 + 0) / 2)


def test_intervals_have_the_width_of_a_normal_approximation(predictions):
    proba, truth = predictions
    found = evaluate(proba, truth, NAMES).accuracy
    half = 1.96 * np.sqrt(found.value * (1 - found.value) / 300)
    assert found.low == pytest.approx(found.value - half, abs=0.012)
    assert found.high == pytest.approx(found.value + half, abs=0.012)


def test_intervals_depend_on_the_seed_only(predictions):
    assert evaluate(*predictions, NAMES).macro_f1 == evaluate(*predictions, NAMES).macro_f1
    assert evaluate(*predictions, NAMES, 1).macro_f1 != evaluate(*predictions, NAMES).macro_f1


def test_resamples_have_the_size_of_the_sample_and_its_shares(monkeypatch):
    confusion = np.array([[30, 10, 0], [0, 0, 0], [5, 0, 55]])
    monkeypatch.setattr(module, "MOST_CELLS", 40)
    found = counts_of_resamples(confusion, np.random.default_rng(0))
    assert found.true.shape == (module.RESAMPLES, 3)
    assert (found.true.sum(1) == 100).all()
    assert (found.predicted.sum(1) == 100).all()
    assert found.hits.mean(0) == pytest.approx([30, 0, 55], abs=0.6)
    assert found.true.mean(0) == pytest.approx([40, 0, 60], abs=0.6)
    assert found.predicted.mean(0) == pytest.approx([35, 10, 55], abs=0.6)
    assert Counts.of(confusion).predicted.tolist() == [[35, 10, 55]]


def test_no_nodes_raise():
    with pytest.raises(InputError, match="at least one node"):
        evaluate(np.zeros((0, 2), dtype=np.float32), np.zeros(0, dtype=int), ["a", "b"])
