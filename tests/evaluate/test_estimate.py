"""Estimates from a random sample of labels: formula, coverage, width."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from dcgst.errors import InputError
from dcgst.evaluate.quality import estimate_share, wilson


@pytest.mark.parametrize(("right", "labels"), [(0, 5), (3, 20), (10, 20), (29, 30), (50, 50)])
def test_wilson_is_that_of_scipy(right, labels):
    expected = binomtest(right, labels).proportion_ci(method="wilson")
    assert wilson(right / labels, labels) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("constant", [0.0, 0.6, 1.0])
def test_constant_predictions_change_nothing(constant):
    observed = np.arange(20) < 13
    found = estimate_share(observed, np.full(20, constant), np.full(99, constant))
    assert found.value == pytest.approx(13 / 20)
    assert (found.low, found.high) == pytest.approx(wilson(13 / 20, 20))
    assert found.labels == 20


def test_opposite_predictions_change_nothing():
    observed = np.arange(200) < 100
    predicted = np.where(observed, 0.1, 0.9)
    found = estimate_share(observed, predicted, np.tile(predicted, 3))
    assert (found.low, found.high) == pytest.approx(wilson(0.5, 200))


def test_the_sample_is_corrected_by_the_slope():
    # Predictions are right about everyone: the estimate is their mean in the population.
    observed = np.arange(1000) < 800
    found = estimate_share(observed, observed.astype(float), np.arange(1000) < 500)
    assert found.value == pytest.approx(0.5, abs=0.002)
    # They explain all variance, but count for at most four times the labels.
    assert (found.low, found.high) == pytest.approx(wilson(found.value, 4000), abs=1e-6)


def test_useless_predictions_keep_the_coverage_of_few_labels():
    rng = np.random.default_rng(2)
    correct, predicted = rng.random(2000) < 0.6, rng.random(2000)
    for labels in (5, 10, 20):
        covered = []
        for _ in range(2000):
            chosen = rng.choice(2000, labels, replace=False)
            found = estimate_share(correct[chosen], predicted[chosen], predicted)
            covered.append(found.low <= correct.mean() <= found.high)
        assert np.mean(covered) > 0.9, labels


def test_without_a_population_the_sample_counts_alone():
    observed = np.arange(10) < 7
    found = estimate_share(observed, np.linspace(0, 1, 10), np.zeros(0))
    assert found.value == pytest.approx(0.7)
    assert found.low < 0.7 < found.high


def test_by_hand():
    observed = np.array([True, False, True, True])
    predicted, population = np.array([0.8, 0.4, 0.6, 0.6]), np.array([0.4, 0.6])
    # Deviations .2 -.2 0 0: products .2, squares .08; variance of the population .01, three times.
    slope = min(1, 0.2 / (0.08 + 0.03))
    value = 0.75 - slope * (0.6 - 0.5)
    found = estimate_share(observed, predicted, population)
    assert found.value == pytest.approx(value)
    unexplained = 1 - slope**2 * 0.01 / (value * (1 - value))
    assert (found.low, found.high) == pytest.approx(wilson(value, 4 / unexplained))


def test_intervals_cover_the_truth_and_are_narrower_than_without_predictions():
    rng = np.random.default_rng(0)
    probability = rng.beta(4, 1.5, 3000)
    correct = rng.random(3000) < probability
    covered, widths, plain = [], [], []
    for _ in range(2000):
        chosen = rng.choice(3000, 30, replace=False)
        found = estimate_share(correct[chosen], probability[chosen], probability)
        covered.append(found.low <= correct.mean() <= found.high)
        widths.append(found.high - found.low)
        plain.append(np.ptp(wilson(correct[chosen].mean(), 30)))
    assert 0.93 < np.mean(covered) < 0.975
    assert np.mean(widths) < 0.95 * np.mean(plain)


def test_overconfident_predictions_do_not_shift_the_estimate():
    rng = np.random.default_rng(1)
    correct = rng.random(3000) < 0.6
    confidence = np.full(3000, 0.95)
    errors = []
    for _ in range(500):
        chosen = rng.choice(3000, 40, replace=False)
        found = estimate_share(correct[chosen], confidence[chosen], confidence)
        errors.append(found.value - correct.mean())
    assert abs(np.mean(errors)) < 0.015


def test_no_labels_raise():
    with pytest.raises(InputError, match="at least one randomly chosen node"):
        estimate_share(np.zeros(0, bool), np.zeros(0), np.ones(5))


def test_calibrated_predictions_count_as_ten_labels():
    observed = np.arange(30) < 18
    found = estimate_share(observed, np.full(30, 0.8), np.full(99, 0.8), calibrated=True)
    assert found.value == pytest.approx((18 + 8) / 40)
    assert (found.low, found.high) == pytest.approx(wilson(26 / 40, 0.8 * 40))
    assert found.labels == 30


def test_one_label_says_little_about_calibrated_predictions():
    wrong = estimate_share(np.zeros(1, bool), np.array([0.8]), np.full(99, 0.8), calibrated=True)
    right = estimate_share(np.ones(1, bool), np.array([0.8]), np.full(99, 0.8), calibrated=True)
    assert 0.7 < wrong.value < 0.8 < right.value < 0.85
    assert wrong.low < 0.5


@pytest.mark.parametrize("error", [-0.1, 0.0, 0.1])
def test_intervals_of_calibrated_predictions_cover_the_truth(error):
    """Also if the mean confidence is wrong by ten points."""
    rng = np.random.default_rng(3)
    probability = rng.beta(4, 1.5, 3000)
    correct = rng.random(3000) < probability
    confidence = np.clip(probability + error, 0, 1)
    covered, widths, plain = [], [], []
    for _ in range(2000):
        chosen = rng.choice(3000, 30, replace=False)
        found = estimate_share(correct[chosen], confidence[chosen], confidence, calibrated=True)
        covered.append(found.low <= correct.mean() <= found.high)
        widths.append(found.high - found.low)
        plain.append(np.ptp(wilson(correct[chosen].mean(), 30)))
    assert np.mean(covered) > 0.94
    assert np.mean(widths) < np.mean(plain)
