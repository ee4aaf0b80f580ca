"""Calibration of the combined prediction: confidence, class shares, known shares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.methods.dcgst.calibration import (
    Correction,
    calibrate,
    fit_factor,
    share_correction,
)
from dcgst.numerics.shares import every_kth, match_shares, mean_probabilities
from tests.methods.helpers import draw, ring_problem

N = 30
NONE = torch.full((2, N), -1)
FULL = torch.ones(2)


@pytest.fixture
def problem():
    """Two fits: nodes 0 and 1 are labeled, nodes 2 to 5 are for validation."""
    labels = np.full((2, N), -1)
    labels[:, 0], labels[:, 1] = 0, 1
    pool = np.ones((2, N), dtype=bool)
    pool[:, :6] = False
    return ring_problem(labels, num_classes=3, pool=pool, seeds=(0, 1))


@pytest.fixture
def log_proba():
    return (2 * draw(0, 2, N, 3)).log_softmax(-1)


def calibrated(problem, log_proba, *arguments, **options):
    affine, correction = calibrate(problem, log_proba, *arguments, **options)
    return affine.apply(log_proba), correction


def mean_confidence(log_proba) -> list[float]:
    """Over the pool: all nodes but the first six."""
    return log_proba[:, 6:].exp().amax(-1).mean(1).tolist()


def test_without_validation_labels_only_the_confidence_changes(problem, log_proba):
    target = torch.tensor([0.5, 0.9])
    found, correction = calibrated(
        problem, log_proba, target, NONE, FULL, known=None, estimate_shares=True
    )
    assert mean_confidence(found) == pytest.approx([0.5, 0.9], abs=1e-3)
    assert torch.equal(found.argmax(-1), log_proba.argmax(-1))
    assert correction.confidence.tolist() == pytest.approx([0.5, 0.9], abs=1e-3)
    assert not correction.shares.any()


def test_right_validation_labels_raise_the_confidence_and_wrong_ones_lower_it(problem, log_proba):
    val = NONE.clone()
    val[0, 2:6] = log_proba[0, 2:6].argmax(-1)
    val[1, 2:6] = log_proba[1, 2:6].argmin(-1)
    arguments = problem, log_proba, torch.tensor([0.6, 0.6]), val
    found, correction = calibrated(*arguments, FULL, known=None, estimate_shares=False)
    assert correction.confidence.tolist() == pytest.approx(mean_confidence(found), abs=1e-5)
    assert correction.confidence[0] > 0.6 > correction.confidence[1]
    assert not correction.shares.any()
    # If the labels are biased, the expected confidence counts less.
    _, biased = calibrated(*arguments, 0 * FULL, known=None, estimate_shares=False)
    assert biased.confidence[0] > correction.confidence[0]
    assert biased.confidence[1] < correction.confidence[1]


def test_random_validation_labels_correct_the_class_shares(problem, log_proba):
    val = NONE.clone()
    val[:, 2:6] = 2
    arguments = problem, log_proba, torch.tensor([0.6, 0.6]), val, FULL
    plain, _ = calibrated(*arguments, known=None, estimate_shares=False)
    found, correction = calibrated(*arguments, known=None, estimate_shares=True)
    expected = (torch.eye(3)[2] - plain[:, 2:6].exp()).sum(1) / (4 + 40)
    torch.testing.assert_close(correction.shares, expected)
    before, after = (mean_probabilities(p, problem.pool) for p in (plain, found))
    torch.testing.assert_close(after, before + expected, atol=2e-4, rtol=0)
    assert (after[:, 2] > before[:, 2]).all()


def test_a_known_correction_is_used_instead_of_labels_and_expected_confidence(problem, log_proba):
    val = NONE.clone()
    val[:, 2:6] = log_proba[:, 2:6].argmin(-1)
    confidence = torch.tensor([0.5, 0.8])
    known = Correction(confidence, torch.zeros(2, 3))
    arguments = problem, log_proba, torch.tensor([0.6, 0.6]), val, FULL
    plain, same = calibrated(*arguments, known=known, estimate_shares=True)
    assert same is known
    assert mean_confidence(plain) == pytest.approx([0.5, 0.8], abs=1e-3)
    without, _ = calibrated(*arguments[:3], NONE, FULL, known=known, estimate_shares=True)
    assert mean_confidence(without) == pytest.approx([0.6, 0.6], abs=1e-3)
    known = Correction(confidence, torch.tensor([[0.05, -0.05, 0.0]] * 2))
    found, _ = calibrated(*arguments, known=known, estimate_shares=True)
    before, after = (mean_probabilities(p, problem.pool) for p in (plain, found))
    torch.testing.assert_close(after, before + known.shares, atol=2e-4, rtol=0)


def test_shares_are_not_corrected_to_nothing(problem, log_proba):
    known = Correction(FULL, torch.tensor([[-0.9, 0.45, 0.45]] * 2))
    found, _ = calibrated(
        problem, log_proba, torch.tensor([0.6, 0.6]), NONE, FULL, known=known, estimate_shares=True
    )
    assert (mean_probabilities(found, problem.pool)[:, 0] > 0.02).all()


def test_given_shares_are_used_as_they_are(problem, log_proba):
    shares = torch.tensor([0.1, 0.2, 0.7])
    val = NONE.clone()
    val[:, 2:6] = 0
    found, _ = calibrated(
        replace(problem, shares=shares),
        log_proba,
        torch.tensor([0.6, 0.6]),
        val,
        FULL,
        known=None,
        estimate_shares=True,
    )
    got = mean_probabilities(found, problem.pool)
    torch.testing.assert_close(got, shares.expand(2, -1), atol=2e-4, rtol=0)


def test_the_factor_maximizes_likelihood_times_prior():
    proba = torch.full((2, 6, 2), 0.5)
    proba[:, :4] = torch.tensor([0.8, 0.2])
    val = torch.full((2, 6), -1)
    val[0, :4] = torch.tensor([0, 0, 0, 1])
    for spread in (1.0, 0.25):
        factor, likelihood = fit_factor(proba.log(), val, spread)
        assert float(factor[1]) == pytest.approx(1)
        assert float(likelihood[1]) == 0

        def posterior(f, spread=spread):
            odds = 4**f
            right, wrong = odds / (1 + odds), 1 / (1 + odds)
            return 3 * math.log(right) + math.log(wrong) - (math.log(f) / spread) ** 2 / 2

        best = max((10 ** (-0.9 + 0.05 * k) for k in range(31)), key=posterior)
        assert float(factor[0]) == pytest.approx(best, rel=1e-4)
        of_labels = posterior(best) + (math.log(best) / spread) ** 2 / 2
        assert float(likelihood[0]) == pytest.approx(of_labels, rel=1e-4)


def test_without_labels_there_is_no_share_correction(log_proba):
    assert share_correction(log_proba, NONE).tolist() == [[0, 0, 0]] * 2


def test_matching_changes_odds_by_a_constant_per_class(log_proba):
    nodes = torch.ones(2, N, dtype=torch.bool)
    nodes[:, :10] = False
    shares = torch.tensor([[0.6, 0.3, 0.1], [0.05, 0.05, 0.9]])
    matched = match_shares(log_proba, nodes, shares)
    got = mean_probabilities(matched, nodes)
    torch.testing.assert_close(got, shares, atol=2e-4, rtol=0)
    change = matched - log_proba
    relative = change - change[..., :1]
    torch.testing.assert_close(relative, relative[:, :1].expand_as(relative), atol=1e-4, rtol=0)


def test_large_graphs_are_matched_on_a_sample(monkeypatch):
    log_proba = (2 * draw(0, 1, 200, 2)).log_softmax(-1)
    nodes = torch.ones(1, 200, dtype=torch.bool)
    monkeypatch.setattr("dcgst.numerics.shares.SAMPLE", 50)
    shares = torch.tensor([[0.2, 0.8]])
    matched = match_shares(log_proba, nodes, shares)
    every_fourth = mean_probabilities(matched[:, ::4], nodes[:, ::4])
    torch.testing.assert_close(every_fourth, shares, atol=2e-4, rtol=0)


def test_without_nodes_nothing_is_matched(log_proba):
    nodes = torch.ones(2, N, dtype=torch.bool)
    nodes[1] = False
    shares = torch.tensor([[0.6, 0.3, 0.1]] * 2)
    matched = match_shares(log_proba, nodes, shares)
    torch.testing.assert_close(matched[1], log_proba[1])
    assert not torch.allclose(matched[0], log_proba[0], atol=0.1)
    empty = match_shares(log_proba, torch.zeros_like(nodes), shares)
    torch.testing.assert_close(empty, log_proba)


def test_the_sample_is_drawn_from_the_nodes(monkeypatch):
    monkeypatch.setattr("dcgst.numerics.shares.SAMPLE", 2)
    nodes = torch.zeros(1, 90, dtype=torch.bool)
    nodes[0, [1, 31, 62, 77]] = True
    assert every_kth(nodes).tolist() == [1, 62]
    assert every_kth(torch.zeros_like(nodes)).tolist() == [0, 45]
