"""Central moment discrepancy: by hand and by its properties."""

from __future__ import annotations

from math import sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dcgst.shift import cmd


def samples(seed: int, m: int = 7, n: int = 9, d: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    draw = [torch.rand(k, d, generator=generator, dtype=torch.float64) for k in (m, n)]
    return draw[0], draw[1]


def test_worked_by_hand():
    # P = {0, 2}: mean 1, moments c2 = 1, c3 = 0, c4 = 1, c5 = 0.
    # Q = {0, 0, 3}: mean 1, moments 2, 2, 6, 10.  Support: 3.
    p = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
    q = torch.tensor([[0.0], [0.0], [3.0]], dtype=torch.float64)
    expected = 0 / 3 + 1 / 9 + 2 / 27 + 5 / 81 + 10 / 243
    assert float(cmd(p, q)) == pytest.approx(expected)
    assert float(cmd(p, q, support=1)) == pytest.approx(0 + 1 + 2 + 5 + 10)
    assert float(cmd(p, q, moments=2)) == pytest.approx(1 / 9)


def test_the_norm_is_over_dimensions():
    p, q = torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    assert float(cmd(p, q, moments=1)) == pytest.approx(sqrt(9 + 16) / 4)


def test_weights_are_multiplicities():
    p, q = samples(0)
    counts = torch.tensor([1, 2, 3, 1, 1, 0, 2])
    repeated = p.repeat_interleave(counts, dim=0)
    weighted = cmd(p, q, counts.double(), support=1)
    assert float(weighted) == pytest.approx(float(cmd(repeated, q, support=1)))
    assert float(cmd(q, p, None, counts.double(), support=1)) == pytest.approx(float(weighted))
    assert float(cmd(p, q, 10 * counts.double(), support=1)) == pytest.approx(float(weighted))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_properties(seed):
    p, q = samples(seed)
    value = float(cmd(p, q))
    assert value >= 0
    assert float(cmd(p, p)) == pytest.approx(0, abs=1e-12)
    assert float(cmd(q, p)) == pytest.approx(value)
    assert float(cmd(p.flip(0), q.flip(0))) == pytest.approx(value)
    # Moving and stretching both samples alike changes nothing: the support takes it out.
    assert float(cmd(5 * p - 3, 5 * q - 3)) == pytest.approx(value)


def test_replicas_are_computed_side_by_side():
    pairs = [samples(seed) for seed in range(3)]
    together = cmd(torch.stack([p for p, _ in pairs]), torch.stack([q for _, q in pairs]))
    assert together.tolist() == pytest.approx([float(cmd(p, q)) for p, q in pairs])


def test_gradients():
    p, q = samples(1)
    weights = torch.rand(7, dtype=torch.float64)
    inputs = [t.requires_grad_() for t in (p, q, weights)]
    assert torch.autograd.gradcheck(lambda a, b, w: cmd(a, b, w, support=1.0), inputs)


def test_constant_samples_are_no_reason_to_divide_by_zero():
    flat = torch.ones(4, 2)
    assert float(cmd(flat, flat)) == 0


def test_where_all_values_are_one_nothing_is_far():
    """However many rows: rounding errors of the means are not scaled up."""
    z = torch.full((20_000, 3), 1 / 7)
    labeled = (torch.arange(20_000) < 9).float()
    assert float(cmd(z, z, labeled, 1 - labeled)) == 0
