"""Honest probabilities: equations by hand, and a temperature that is found again."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.evaluate import calibrate, expected_calibration_error, reliability
from dcgst.evaluate.calibration import FEWEST, soften


def honest(count: int, seed: int = 0):
    """Probabilities, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([0.6] * 4, count).astype(np.float32)
    return proba, np.array([rng.choice(4, p=p / p.sum()) for p in proba.astype(float)])


def test_ece_by_hand():
    proba = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]], dtype=np.float32)
    truth = np.array([0, 1, 0, 0])
    # told .9, right .5, half of the nodes; told .6, right 1, the other half
    assert expected_calibration_error(proba, truth, bins=10) == pytest.approx(0.4)
    bins = reliability(proba, truth)
    assert [(round(b.confidence, 2), b.accuracy, b.nodes) for b in bins] == [
        (0.6, 1.0, 2),
        (0.9, 0.5, 2),
    ]


def test_honest_probabilities_have_no_error_and_keep_their_temperature():
    proba, truth = honest(4000)
    assert expected_calibration_error(proba, truth) < 0.03
    found = calibrate(proba, truth)
    assert found.nodes == 4000
    assert found.temperature == pytest.approx(1, abs=0.06)


def test_a_temperature_is_found_again():
    proba, truth = honest(2000)
    sharp = soften(proba, 0.5)
    found = calibrate(sharp, truth)
    assert found.temperature == pytest.approx(2, rel=0.1)
    np.testing.assert_allclose(found.apply(sharp).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found.apply(sharp).argmax(axis=1), sharp.argmax(axis=1))
    before, after = (expected_calibration_error(p, truth) for p in (sharp, found.apply(sharp)))
    assert after < before / 2


def test_too_few_nodes_leave_the_usual_temperature_and_say_so():
    proba, truth = honest(100)
    labels = np.where(np.arange(100) < FEWEST - 1, truth, -1)
    found = calibrate(proba, labels, usual=1.3)
    assert (found.temperature, found.nodes) == (1.3, 0)
    assert "19 validation nodes are too little to calibrate on" in found.words
    assert "without validation nodes" in calibrate(proba, np.full(100, -1)).words


def test_few_nodes_stay_near_the_usual_temperature():
    proba, truth = honest(500)
    sharp = soften(proba, 0.5)
    few = calibrate(sharp[:30], truth[:30]).temperature
    many = calibrate(sharp, truth).temperature
    assert abs(np.log(few)) < abs(np.log(many))
