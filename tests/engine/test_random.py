"""Streams and dropout."""

from __future__ import annotations

import pytest
import torch

from dcgst.engine import random
from dcgst.engine.random import Streams, derive, dropout


def test_a_replica_draws_the_same_alone_or_among_others():
    together, alone = Streams([1, 2, 3]), Streams([2])
    for shape in ((5,), (3, 7), (16,)):
        assert torch.equal(together.bits8(*shape)[1], alone.bits8(*shape)[0])
        assert torch.equal(together.uniform(*shape)[1], alone.uniform(*shape)[0])


def test_derived_seeds_differ():
    assert len({derive(s, *p) for s in range(5) for p in ((), (0,), (1,), (0, 1))}) == 20


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.8])
def test_dropout_drops_its_share_and_keeps_the_mean(rate):
    x = torch.ones(1, 200, 1000)
    dropped = dropout(x, rate, Streams([0]))
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)


def test_no_streams_or_no_rate_no_dropout():
    x = torch.rand(1, 5)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, Streams([0])) is x


def test_the_way_back_uses_the_same_mask(monkeypatch):
    x = torch.ones(2, 50, requires_grad=True)
    dropped = dropout(x, 0.5, Streams([0, 1]))
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())
    monkeypatch.setattr(random, "_BLOCK", 7)  # in blocks, the same
    assert torch.equal(dropout(x, 0.5, Streams([0, 1])), dropped)
