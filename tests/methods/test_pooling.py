"""Pooling: predictions tempered to one confidence, weighted by prior and likelihood."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from dcgst.methods.row_models import (
    CONFIDENCE,
    Affine,
    Prediction,
    log_pool,
    temperature_scale,
)
from tests.methods.helpers import draw

ZERO = torch.zeros(1)


def prediction(proba, log_likelihood=0.0, log_prior=0.0) -> Prediction:
    """The prediction of one run and one node."""
    log_proba = torch.tensor([[proba]]).log()
    return Prediction(log_proba, torch.tensor([log_likelihood]), torch.tensor([log_prior]))


def temper(logits: torch.Tensor, confidence: float) -> torch.Tensor:
    """Log-probabilities with the given mean confidence over the nodes."""
    return Affine(temperature_scale(logits, confidence)).apply(logits)


class TestTemper:
    @pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
    @pytest.mark.parametrize("confidence", [0.6, 0.75])
    def test_mean_confidence_is_as_requested(self, scale, confidence):
        log_proba = temper(scale * draw(0, 2, 200, 4), confidence)
        mean = log_proba.exp().amax(-1).mean(1)
        torch.testing.assert_close(mean, torch.full((2,), confidence), atol=1e-3, rtol=0)

    def test_order_of_classes_is_kept(self):
        logits = draw(1, 3, 50, 4)
        assert torch.equal(temper(logits, 0.6).argsort(-1), logits.argsort(-1))

    def test_runs_are_independent(self):
        logits = draw(1, 3, 50, 4) * torch.tensor([1.0, 5.0, 0.2])[:, None, None]
        torch.testing.assert_close(temper(logits, 0.6)[1:2], temper(logits[1:2], 0.6))

    @pytest.mark.parametrize(("difference", "expected"), [(1e4, 100.0), (1e-6, 1e-4)])
    def test_logits_are_multiplied_by_a_hundredth_to_a_hundred(self, difference, expected):
        """A mean confidence of 0.75 would need a difference of log(3) = 1.1."""
        found = temper(torch.tensor([[[difference, 0.0]] * 4]), 0.75)
        each = found[..., 0] - found[..., 1]
        torch.testing.assert_close(each, torch.full((1, 4), expected), rtol=3e-3, atol=0)

    @pytest.mark.parametrize(("nodes", "step"), [(2999, 1), (3000, 2), (4500, 3)])
    def test_on_large_graphs_every_kth_node_counts(self, nodes, step):
        logits = draw(2, 1, nodes, 3) * (1 + 9 * (torch.arange(nodes) % step > 0))[:, None]
        expected = temper(logits[:, ::step], 0.75)
        torch.testing.assert_close(temper(logits, 0.75)[:, ::step], expected)

    def test_equal_logits_stay_equal(self):
        assert torch.allclose(temper(torch.zeros(1, 5, 2), 0.75).exp(), torch.tensor(0.5))


class TestFromLogits:
    def test_is_tempered_to_the_common_confidence(self):
        found = Prediction.from_logits(9 * draw(0, 1, 300, 3), torch.full((1, 300), -1))
        mean = float(found.log_proba.exp().amax(-1).mean())
        assert mean == pytest.approx(CONFIDENCE, abs=1e-3)
        assert CONFIDENCE == 0.75, "changing it changes every stored result"

    def test_likelihood_is_that_of_the_validation_labels(self):
        logits = torch.tensor([[[5.0, 0.0], [0.0, 5.0], [1.0, 0.0]]])
        found = Prediction.from_logits(logits, torch.tensor([[0, -1, 1]]))
        expected = found.log_proba[0, 0, 0] + found.log_proba[0, 2, 1]
        assert float(found.log_likelihood) == pytest.approx(float(expected))
        without = Prediction.from_logits(logits, torch.full((1, 3), -1))
        assert float(without.log_likelihood) == 0

    def test_default_log_prior_is_zero(self):
        labels = torch.full((1, 3), -1)
        assert Prediction.from_logits(draw(0, 1, 3, 2), labels).log_prior.tolist() == [0]
        given = Prediction.from_logits(draw(0, 1, 3, 2), labels, torch.tensor([7.0]))
        assert given.log_prior.tolist() == [7]


class TestLogPool:
    def test_weights_are_prior_times_likelihood(self):
        """3 · 1 and 1 · 2, so weights 3/5 and 2/5."""
        first = prediction([0.8, 0.2], log_likelihood=0.0, log_prior=log(3))
        second = prediction([0.4, 0.6], log_likelihood=log(2), log_prior=0.0)
        pool = log_pool([first, second])
        for code, (a, b) in enumerate([(0.8, 0.4), (0.2, 0.6)]):
            expected = 0.6 * log(a) + 0.4 * log(b)
            assert float(pool.log_proba[0, 0, code]) == pytest.approx(expected)

    def test_likelihood_is_the_mean_weighted_by_the_priors(self):
        """Likelihoods 4 and 1 with priors 1 and 2: (4 + 2) / 3."""
        first = prediction([0.8, 0.2], log_likelihood=log(4))
        second = prediction([0.4, 0.6], log_prior=log(2))
        pool = log_pool([first, second])
        assert exp(float(pool.log_likelihood)) == pytest.approx(2)
        assert float(pool.log_prior) == 0

    def test_pool_of_equal_members_counts_as_one_member(self):
        zero = torch.zeros(2)
        one, other = (Prediction(draw(i, 2, 4, 3), zero, zero) for i in range(2))
        nested = log_pool([log_pool([one] * 20), other])
        torch.testing.assert_close(nested.log_proba, log_pool([one, other]).log_proba)

    def test_priors_of_members_do_not_change_the_weight_of_the_pool(self):
        a, b, other = (draw(i, 1, 4, 3) for i in range(3))
        pool = log_pool([Prediction(a, ZERO, ZERO + 50), Prediction(b, ZERO, ZERO)])
        torch.testing.assert_close(pool.log_proba, a)
        both = log_pool([pool, Prediction(other, ZERO, ZERO)])
        torch.testing.assert_close(both.log_proba, (a + other) / 2)

    def test_equals_the_softmax_of_all_log_weights(self):
        members = [Prediction(draw(i, 2, 4, 3), draw(i + 10, 2), draw(i + 20, 2)) for i in range(5)]
        log_weights = torch.stack([m.log_prior + m.log_likelihood for m in members])
        expected = sum(
            weight[:, None, None] * member.log_proba
            for weight, member in zip(log_weights.softmax(0), members, strict=True)
        )
        torch.testing.assert_close(log_pool(iter(members)).log_proba, expected)
