"""Random streams and dropout."""

from __future__ import annotations

import pytest
import torch

from dcgst.train import random
from dcgst.train.random import Purpose, Streams, derive, dropout


def test_a_replica_draws_the_same_numbers_alone_and_with_others():
    together, alone = Streams([1, 2, 3]), Streams([2])
    for shape in ((5,), (3, 7), (16,)):
        assert torch.equal(together.bits8(*shape)[1], alone.bits8(*shape)[0])
        assert torch.equal(together.uniform(*shape)[1], alone.uniform(*shape)[0])


def test_uniform_numbers_and_bytes_cover_their_range():
    streams = Streams([0])
    draws = streams.uniform(10_000)
    assert 0 <= float(draws.min()) < 0.01
    assert 0.99 < float(draws.max()) < 1
    counts = torch.bincount(streams.bits8(256_000).flatten().long(), minlength=256)
    assert counts.min() > 800  # of 1000 expected
    assert counts.max() < 1200


def test_seeds_derived_for_different_parts_differ():
    assert len({derive(s, *p) for s in range(5) for p in ((), (0,), (1,), (0, 1))}) == 20


def test_purposes_differ_and_keep_their_values():
    """Every stored result depends on these values."""
    values = {purpose.name: purpose.value for purpose in Purpose}
    assert values == {
        "TRAINING": 0,
        "VALIDATION_SPLIT": 3,
        "DIAGNOSIS": 4,
        "SUGGESTION": 5,
        "MAP": 6,
        "EDGE_PREDICTOR": 7,
        "EDGE_SAMPLING": 8,
        "CLUSTERING": 50,
        "INFORMATION_GAIN": 60,
        "UNLABELED_SAMPLE": 70,
        "EDGE_EDITING": 80,
        "TUNING": 90,
        "BOOTSTRAP": 91,
        "AUDIT": 92,
        "FOLDS": 93,
        "BATCHES": 94,
        "SAMPLE": 95,
        "MEMBER": 96,
    }
    assert len(set(values.values())) == len(values)


@pytest.mark.parametrize("rate", [0.25, 0.3, 0.8])
def test_dropout_drops_its_share_and_preserves_the_mean(rate):
    dropped = dropout(torch.ones(1, 200, 1000), rate, Streams([0]))
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("rate", "dropped_of_256"), [(0.25, 64), (0.3, 77), (0.999, 255)])
def test_kept_values_are_scaled_by_the_rounded_rate(rate, dropped_of_256):
    x = torch.full((1, 20_000), 3.0)
    dropped = dropout(x, rate, Streams([0]))
    scale = 256 / (256 - dropped_of_256)
    assert dropped.unique().tolist() == pytest.approx([0, 3 * scale])


def test_without_streams_or_rate_the_input_is_returned():
    x = torch.rand(1, 5)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, Streams([0])) is x


def test_replicas_and_streams_must_be_equally_many():
    with pytest.raises(ValueError, match="2 replicas but 3 random streams"):
        dropout(torch.ones(2, 5), 0.5, Streams([0, 1, 2]))


def test_the_backward_pass_uses_the_same_mask(monkeypatch):
    x = torch.ones(2, 50, requires_grad=True)
    dropped = dropout(x, 0.5, Streams([0, 1]))
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())
    monkeypatch.setattr(random, "_BLOCK", 7)
    in_blocks = dropout(x, 0.5, Streams([0, 1]))
    assert torch.equal(in_blocks, dropped)


def test_dropout_of_nothing_is_nothing():
    assert dropout(torch.zeros(2, 0), 0.5, Streams([1, 2])).shape == (2, 0)
