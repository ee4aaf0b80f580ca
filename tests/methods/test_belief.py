"""Beliefs: equally sure, weighted by evidence, in whatever order they are put together."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from dcgst.methods.belief import Belief, temper


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_tempered_logits_are_equally_sure_on_every_scale(scale):
    log_proba = temper(scale * draw(0, 2, 200, 4), 0.75)
    sure = log_proba.exp().amax(-1).mean(1)
    torch.testing.assert_close(sure, torch.full((2,), 0.75), atol=0.01, rtol=0)


def test_tempering_keeps_every_nodes_order_and_each_run_to_itself():
    logits = draw(1, 3, 50, 4)
    together = temper(logits, 0.6)
    assert torch.equal(together.argsort(-1), logits.argsort(-1))
    torch.testing.assert_close(together[1:2], temper(logits[1:2], 0.6))


def test_logits_that_know_nothing_stay_so():
    assert torch.allclose(temper(torch.zeros(1, 5, 2), 0.75).exp(), torch.tensor(0.5))


def test_evidence_is_the_likelihood_of_validation_labels():
    logits = torch.tensor([[[5.0, 0.0], [0.0, 5.0], [1.0, 0.0]]])
    labels = torch.tensor([[0, -1, 1]])
    belief = Belief.of(logits, labels)
    expected = belief.log_proba[0, 0, 0] + belief.log_proba[0, 2, 1]
    assert float(belief.evidence) == pytest.approx(float(expected))
    assert float(Belief.of(logits, torch.full((1, 3), -1)).evidence) == 0


def test_together_they_are_a_weighted_mean():
    first = Belief(torch.tensor([[[log(0.8), log(0.2)]]]), torch.tensor([log(3.0)]))
    second = Belief(torch.tensor([[[log(0.4), log(0.6)]]]), torch.tensor([0.0]))
    both = first + second  # weights 3/4 and 1/4
    assert float(both.log_proba[0, 0, 0]) == pytest.approx(0.75 * log(0.8) + 0.25 * log(0.4))
    assert exp(float(both.evidence)) == pytest.approx(4)


def test_the_order_of_putting_together_means_nothing():
    a, b, c = (Belief(draw(i, 2, 4, 3), draw(i + 10, 2)) for i in range(3))
    torch.testing.assert_close(((a + b) + c).log_proba, (a + (c + b)).log_proba)
