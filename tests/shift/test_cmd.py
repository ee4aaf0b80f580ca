"""Central moment discrepancy: by hand and by its properties."""

from __future__ import annotations

from math import sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dcgst.shift import cmd, labeled_shift
from dcgst.shift.cmd import CMDFrom, WeightedCMD, value_range


def samples(seed: int, m: int = 7, n: int = 9, d: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first, second = (torch.rand(k, d, generator=generator, dtype=torch.float64) for k in (m, n))
    return first, second


# P = {0, 2}: mean 1, central moments 1, 0, 1, 0.  Q = {0, 0, 3}: mean 1, moments 2, 2, 6, 10.
P = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
Q = torch.tensor([[0.0], [0.0], [3.0]], dtype=torch.float64)


def test_each_moment_is_divided_by_a_power_of_the_range():
    assert float(cmd(P, Q)) == pytest.approx(0 / 3 + 1 / 9 + 2 / 27 + 5 / 81 + 10 / 243)
    assert float(cmd(P, Q, support=1)) == pytest.approx(0 + 1 + 2 + 5 + 10)
    assert float(cmd(P, Q + 4, support=2)) == pytest.approx(
        4 / 2 + 1 / 4 + 2 / 8 + 5 / 16 + 10 / 32
    )


@pytest.mark.parametrize(("moments", "expected"), [(1, 0), (2, 1), (3, 3), (4, 8), (6, 39)])
def test_the_highest_moment_can_be_set(moments, expected):
    # The sixth central moments are 1 and (1 + 1 + 64) / 3 = 22.
    assert float(cmd(P, Q, support=1, moments=moments)) == pytest.approx(expected)


def test_differences_of_moments_are_measured_by_the_euclidean_norm():
    p, q = torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    assert float(cmd(p, q, moments=1)) == pytest.approx(sqrt(9 + 16) / 4)


def test_weights_act_like_repeated_rows():
    p, q = samples(0)
    counts = torch.tensor([1, 2, 3, 1, 1, 0, 2])
    repeated = p.repeat_interleave(counts, dim=0)
    weighted = cmd(p, q, counts.double(), support=1)
    assert float(weighted) == pytest.approx(float(cmd(repeated, q, support=1)))
    assert float(cmd(q, p, None, counts.double(), support=1)) == pytest.approx(float(weighted))
    assert float(cmd(p, q, 10 * counts.double(), support=1)) == pytest.approx(float(weighted))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_cmd_is_symmetric_zero_for_equal_samples_and_invariant_to_scale_and_offset(seed):
    p, q = samples(seed)
    value = float(cmd(p, q))
    assert value >= 0
    assert float(cmd(p, p)) == pytest.approx(0, abs=1e-12)
    assert float(cmd(q, p)) == pytest.approx(value)
    assert float(cmd(p.flip(0), q.flip(0))) == pytest.approx(value)
    assert float(cmd(5 * p - 3, 5 * q - 3)) == pytest.approx(value)


def test_leading_axes_are_batch_axes():
    pairs = [samples(seed) for seed in range(3)]
    together = cmd(torch.stack([p for p, _ in pairs]), torch.stack([q for _, q in pairs]))
    assert together.tolist() == pytest.approx([float(cmd(p, q)) for p, q in pairs])


def test_gradients_equal_finite_differences():
    p, q = samples(1)
    weights = torch.rand(7, dtype=torch.float64)
    inputs = [t.requires_grad_() for t in (p, q, weights)]
    assert torch.autograd.gradcheck(lambda a, b, w: cmd(a, b, w, support=1.0), inputs)


def test_the_range_is_over_all_values_of_both_samples():
    p = torch.tensor([[[0.0, 7.0]], [[1.0, 1.0]]], requires_grad=True)
    q = torch.tensor([[[-2.0, 3.0]], [[1.0, 2.0]]])
    assert value_range(p, q).tolist() == value_range(q, p).tolist() == [9.0, 1.0]
    assert not value_range(p, q).requires_grad
    # Rows of weight zero count too.
    zero = torch.tensor([1.0, 0.0])
    spread = torch.tensor([[0.0], [8.0]])
    assert float(cmd(spread, torch.tensor([[4.0]]), zero)) == pytest.approx(4 / 8)


def test_the_range_of_equal_values_is_infinite():
    assert value_range(torch.ones(4, 2), torch.ones(1, 2)).tolist() == float("inf")


@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_a_range_of_up_to_eight_rounding_errors_is_infinite(scale):
    eps = torch.finfo(torch.float64).eps
    highest = torch.tensor([[1.0]], dtype=torch.float64)
    noise, more = (scale * (highest - count * eps) for count in (8, 9))
    assert float(value_range(scale * highest, noise)) == float("inf")
    assert float(value_range(-scale * highest, -noise)) == float("inf")
    assert float(value_range(scale * highest, more)) == scale * 9 * eps


def test_samples_of_one_constant_do_not_differ():
    """Rounding errors of the means of many rows are not amplified."""
    z = torch.full((20_000, 3), 1 / 7)
    labeled = (torch.arange(20_000) < 9).float()
    assert float(cmd(z, z, labeled, 1 - labeled)) == 0


def test_labeled_shift_is_the_cmd_between_labeled_and_pool_nodes():
    z = torch.rand(2, 8, 3, generator=torch.Generator().manual_seed(0))
    labeled, pool = torch.zeros(2, 8, dtype=torch.bool), torch.zeros(2, 8, dtype=torch.bool)
    labeled[:, :3] = True
    pool[0, 4:] = True
    shift = labeled_shift(z, labeled, pool)
    whole = value_range(z[0], z[0])
    assert float(shift[0]) == pytest.approx(float(cmd(z[0, :3], z[0, 4:], support=whole)))
    assert float(shift[1]) == 0  # empty pool


class TestWeightedCMD:
    z = torch.randn(2, 12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    nodes = torch.tensor([[3, 5, 7, 9], [4, 6, 8, 10]])

    def masks(self):
        pool, labeled = torch.zeros(2, 12).double(), torch.zeros(2, 12).double()
        pool[:, 3:], labeled[:, :3] = 1, 1
        return pool, labeled

    @pytest.mark.parametrize("moments", [2, 5])
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("binary", [True, False])
    def test_equals_cmd(self, seed, binary, moments):
        pool, labeled = self.masks()
        weights = torch.rand(2, 4, generator=torch.Generator().manual_seed(seed)).double()
        weights = weights.round() if binary else weights
        distance = WeightedCMD(self.z, self.nodes, target=pool, fixed=labeled, moments=moments)
        whole = labeled.scatter(1, self.nodes, weights)
        expected = cmd(self.z, self.z, whole, pool, moments=moments)
        torch.testing.assert_close(distance(weights), expected)

    def test_five_moments_by_default(self):
        pool, labeled = self.masks()
        default = WeightedCMD(self.z, self.nodes, target=pool, fixed=labeled)
        expected = cmd(self.z, self.z, labeled, pool)
        torch.testing.assert_close(default(torch.zeros(2, 4).double()), expected)

    def test_gradients_equal_finite_differences(self):
        pool, labeled = self.masks()
        distance = WeightedCMD(self.z, self.nodes, target=pool, fixed=labeled)
        weights = torch.full((2, 4), 0.4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(distance, weights)


def test_the_cmd_of_many_samples_from_one():
    rng = torch.Generator().manual_seed(4)
    target = 3 * torch.randn(200, 5, generator=rng) + 1
    from_target = CMDFrom(target)
    for size in (1, 7, 200):
        torch.testing.assert_close(from_target(target[:size]), cmd(target[:size], target))
    assert float(CMDFrom(torch.ones(4, 2))(torch.ones(2, 2))) == 0
