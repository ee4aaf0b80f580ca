"""Extreme scales of features change nothing: scaling by a power of two is exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.columns import (
    inverse_power_of_two,
    inverse_power_of_two_array,
    largest_magnitude,
    scale_features,
    scale_rows,
    unit_rows,
    weight_columns,
)
from dcgst.features.sparse import SparseMatrix
from dcgst.shift.cmd import cmd

SCALES = [2.0**-99, 2.0**-60, 2.0**60, 2.0**95]


@pytest.fixture
def x(rng) -> np.ndarray:
    values = rng.standard_normal((20, 6)).astype(np.float32)
    values[rng.random((20, 6)) < 0.3] = 0
    return values


def test_the_inverse_power_of_two_scales_to_below_one(rng):
    values = torch.tensor(10.0 ** rng.uniform(-36, 36, 100), dtype=torch.float32)
    scaled = values * inverse_power_of_two(values)
    assert ((scaled >= 0.5) & (scaled < 1)).all()
    expected = inverse_power_of_two_array(values.numpy())
    np.testing.assert_array_equal(inverse_power_of_two(values).numpy(), expected)
    assert float(inverse_power_of_two(torch.tensor(0.0))) == 1


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("norm", ["l2", "row"])
def test_scaled_rows_do_not_depend_on_the_scale(x, norm, scale):
    expected = scale_rows(x, norm)
    np.testing.assert_array_equal(scale_rows(x * np.float32(scale), norm), expected)
    sparse = scale_rows(sp.csr_array(x * np.float32(scale)), norm).toarray()
    np.testing.assert_array_equal(sparse, scale_rows(sp.csr_array(x), norm).toarray())


def to_one(x):
    """As components are computed: the largest magnitude is then between 1/2 and 1."""
    return scale_features(x, inverse_power_of_two(largest_magnitude(x)))


@pytest.mark.parametrize("scale", SCALES)
def test_unit_rows_and_weighted_columns_do_not_depend_on_the_scale(x, scale):
    dense = torch.tensor(x)
    assert torch.equal(unit_rows(dense * scale), unit_rows(dense))
    assert torch.equal(weight_columns(dense * scale), weight_columns(dense))
    assert torch.equal(to_one(dense * scale), to_one(dense))
    sparse = SparseMatrix.from_scipy(sp.csr_array(x))
    larger = sparse.with_values(sparse.values * scale)
    assert torch.equal(unit_rows(larger).values, unit_rows(sparse).values)
    assert torch.equal(to_one(larger).values, to_one(sparse).values)


def test_rows_of_very_different_scales_all_have_unit_length():
    x = np.array([[3e-30, 4e-30], [3e28, 4e28], [0, 0]], dtype=np.float32)
    np.testing.assert_allclose(scale_rows(x, "l2"), [[0.6, 0.8], [0.6, 0.8], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(
        unit_rows(torch.tensor(x)), [[0.6, 0.8], [0.6, 0.8], [0, 0]], rtol=1e-6
    )


@pytest.mark.parametrize("scale", SCALES)
def test_the_cmd_does_not_depend_on_the_scale(rng, scale):
    source, target = (torch.tensor(rng.random((n, 3)), dtype=torch.float32) for n in (8, 12))
    assert torch.equal(cmd(source * scale, target * scale), cmd(source, target))


def test_the_cmd_of_values_that_differ_by_rounding_is_zero():
    values = 1e6 + torch.tensor([[0.0], [0.0625], [0.0]])
    assert float(cmd(values[:1], values)) == 0
