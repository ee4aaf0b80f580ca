"""Calibration: errors by hand, and a known temperature that is recovered."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dcgst.evaluate import calibrate, expected_calibration_error, reliability
from dcgst.evaluate.calibration import MIN_NODES, log_loss, scale_temperature


def calibrated(count: int, seed: int = 0):
    """Probabilities, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([0.6] * 4, count).astype(np.float32)
    return proba, np.array([rng.choice(4, p=p / p.sum()) for p in proba.astype(float)])


def two_classes(*confidence: float) -> np.ndarray:
    first = np.array(confidence, dtype=np.float32)
    return np.stack([first, 1 - first], axis=1)


def test_the_error_weights_bins_by_their_number_of_nodes():
    proba = two_classes(0.9, 0.9, 0.9, 0.6)
    truth = np.array([0, 1, 1, 0])
    # Three nodes of confidence .9 and accuracy 1/3; one node of confidence .6 and accuracy 1.
    expected = (3 * (0.9 - 1 / 3) + 1 * (1 - 0.6)) / 4
    assert expected_calibration_error(proba, truth, bins=10) == pytest.approx(expected, abs=1e-6)


def test_the_error_has_fifteen_bins_by_default():
    """The confidences are in one of ten bins, but in two of fifteen (12/15, 13/15)."""
    proba, truth = two_classes(0.81, 0.87), np.array([0, 1])
    separate = ((1 - 0.81) + (0.87 - 0)) / 2
    assert expected_calibration_error(proba, truth) == pytest.approx(separate, abs=1e-6)
    together = 0.84 - 0.5
    assert expected_calibration_error(proba, truth, bins=10) == pytest.approx(together, abs=1e-6)


def test_reliability_reports_confidence_accuracy_and_number():
    bins = reliability(two_classes(0.9, 0.9, 0.6, 0.64), np.array([0, 1, 0, 0]))
    found = [(round(b.confidence, 2), b.accuracy, b.nodes) for b in bins]
    assert found == [(0.62, 1.0, 2), (0.9, 0.5, 2)]


def test_a_bin_includes_its_lower_edge_and_the_last_bin_includes_one():
    bins = reliability(two_classes(0.5, 0.74, 0.75, 1.0), np.zeros(4, dtype=int), bins=4)
    assert [b.nodes for b in bins] == [2, 2]
    assert [b.confidence for b in bins] == pytest.approx([0.62, 0.875])


def test_calibrated_probabilities_have_no_error_and_temperature_one():
    proba, truth = calibrated(4000)
    assert expected_calibration_error(proba, truth) < 0.03
    found = calibrate(proba, truth)
    assert found.nodes == 4000
    assert found.temperature == pytest.approx(1, abs=0.06)


def test_a_known_temperature_is_recovered():
    proba, truth = calibrated(2000)
    overconfident = scale_temperature(proba, 0.5)
    found = calibrate(overconfident, truth)
    assert found.temperature == pytest.approx(2, rel=0.1)
    scaled = found.apply(overconfident)
    np.testing.assert_allclose(scaled.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(scaled.argmax(axis=1), overconfident.argmax(axis=1))
    before = expected_calibration_error(overconfident, truth)
    assert expected_calibration_error(scaled, truth) < before / 2


def test_only_validation_nodes_count():
    proba, truth = calibrated(200)
    proba[100:] = proba[100:, ::-1]  # wrong elsewhere
    labels = np.where(np.arange(200) < 100, truth, -1)
    assert calibrate(proba, labels).temperature == calibrate(proba[:100], truth[:100]).temperature


def test_without_evidence_the_temperature_is_one():
    """Temperature does not change equal probabilities, so that only the prior counts."""
    found = calibrate(two_classes(*[0.5] * MIN_NODES), np.zeros(MIN_NODES, dtype=int))
    assert found.nodes == MIN_NODES
    assert found.temperature == pytest.approx(1, rel=0.02)


def test_the_temperature_minimizes_the_loss_plus_a_log_normal_prior():
    proba, truth = calibrated(40)
    overconfident = scale_temperature(proba, 0.4)

    def penalized(log_t: float) -> float:
        loss = log_loss(scale_temperature(overconfident, np.exp(log_t)), truth)
        return 40 * loss + 30 * log_t**2

    best = minimize_scalar(penalized, bounds=(np.log(0.2), np.log(5)), method="bounded").x
    found = calibrate(overconfident, truth)
    assert found.temperature == pytest.approx(np.exp(best), rel=0.02)


def test_more_of_the_same_evidence_moves_the_temperature_farther():
    proba, truth = calibrated(40)
    overconfident = scale_temperature(proba, 0.4)
    few = calibrate(overconfident, truth).temperature
    many = calibrate(np.tile(overconfident, (20, 1)), np.tile(truth, 20)).temperature
    assert 1 < few < many


def test_with_too_few_validation_nodes_nothing_changes_and_it_is_explained():
    proba, truth = calibrated(100)
    labels = np.where(np.arange(100) < MIN_NODES - 1, truth, -1)
    found = calibrate(proba, labels)
    assert (found.temperature, found.nodes) == (1, 0)
    assert "19 validation nodes are too few to learn a temperature" in found.description
    assert "the probabilities are not changed" in found.description
    assert "there are no validation nodes" in calibrate(proba, np.full(100, -1)).description


def test_temperature_scaling_divides_logarithms():
    scaled = scale_temperature(two_classes(0.8, 1.0), 2)
    assert scaled[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert np.isfinite(scaled).all()
    assert scaled.dtype == np.float32


def test_temperature_scaling_of_small_temperatures_and_of_zero():
    """At temperature 0.01, (3/2)^100 is 4e17; a probability of 0 counts as 1e-12."""
    found = scale_temperature(two_classes(0.5, 0.6), 0.01)
    assert found.tolist() == pytest.approx(np.array([[0.5, 0.5], [1, 2.5e-18]]), rel=0.02)
    assert scale_temperature(two_classes(1.0), 2)[0, 1] == pytest.approx(1e-6, rel=1e-3)


def test_the_loss_of_a_probability_of_zero_is_finite():
    assert log_loss(two_classes(1.0, 0.5), np.array([1, 0])) == pytest.approx(
        (12 * np.log(10) + np.log(2)) / 2
    )


def test_the_error_of_one_node_and_of_none():
    one = expected_calibration_error(two_classes(0.9), np.array([0]))
    assert one == pytest.approx(0.1)
    assert expected_calibration_error(np.zeros((0, 2), np.float32), np.zeros(0, int)) == 0


def test_temperatures_are_between_a_fifth_and_five_and_can_be_one():
    undecided = two_classes(*[0.5] * MIN_NODES)
    assert calibrate(undecided, np.zeros(MIN_NODES, int)).temperature == pytest.approx(1, rel=1e-9)
    always_wrong = calibrate(two_classes(*[0.99] * 10_000), np.ones(10_000, int))
    assert always_wrong.temperature == pytest.approx(5)
    always_right = calibrate(two_classes(*[0.6] * 10_000), np.zeros(10_000, int))
    assert always_right.temperature == pytest.approx(0.2)


def test_a_probability_above_one_by_rounding_counts_as_one():
    proba = np.array([[1.0001, 0.5]])
    assert scale_temperature(proba, 1)[0].tolist() == pytest.approx([2 / 3, 1 / 3], rel=1e-6)
    assert log_loss(proba, np.array([0])) == 0
