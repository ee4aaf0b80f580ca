"""Beliefs: equally sure, weighted by evidence, and a company has one voice."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from dcgst.methods.belief import Belief, temper, together


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
    zero = torch.zeros(1)
    first = Belief(torch.tensor([[[log(0.8), log(0.2)]]]), torch.tensor([log(3.0)]), zero)
    second = Belief(torch.tensor([[[log(0.4), log(0.6)]]]), zero, zero)
    both = together([first, second])  # weights 3/4 and 1/4
    assert float(both.log_proba[0, 0, 0]) == pytest.approx(0.75 * log(0.8) + 0.25 * log(0.4))
    assert exp(float(both.evidence)) == pytest.approx(2)  # the mean of 3 and 1


def test_a_company_has_one_voice():
    """Twenty beliefs that say the same weigh no more than one against another."""
    nothing = torch.zeros(2)
    one, other = (Belief(draw(i, 2, 4, 3), nothing, nothing) for i in range(2))
    crowd = together([one] * 20)
    torch.testing.assert_close(together([crowd, other]).log_proba, together([one, other]).log_proba)


def test_without_evidence_favour_decides_within_a_company_and_not_between():
    """Unequal favour inside leaves the whole as heavy as any other belief."""
    nothing = torch.zeros(1)
    a, b, other = (draw(i, 1, 4, 3) for i in range(3))
    company = together([Belief(a, nothing, nothing + 50), Belief(b, nothing, nothing)])
    torch.testing.assert_close(company.log_proba, a)
    both = together([company, Belief(other, nothing, nothing)])
    torch.testing.assert_close(both.log_proba, (a + other) / 2)


def test_many_at_once_or_one_after_the_other():
    beliefs = [Belief(draw(i, 2, 4, 3), draw(i + 10, 2), draw(i + 20, 2)) for i in range(5)]
    whole = together(iter(beliefs))
    score = torch.stack([belief.favour + belief.evidence for belief in beliefs])
    expected = sum(
        weight[:, None, None] * belief.log_proba
        for weight, belief in zip(score.softmax(0), beliefs, strict=True)
    )
    torch.testing.assert_close(whole.log_proba, expected)
