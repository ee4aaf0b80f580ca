"""Sparse products equal dense products, forward and backward, alone and with other replicas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features import sparse as products
from dcgst.features.sparse import SparseMatrix, entry_products, spmm


@pytest.fixture
def matrix() -> SparseMatrix:
    random = sp.random_array((9, 6), density=0.4, rng=np.random.default_rng(1), format="csr")
    return SparseMatrix.from_scipy(random, dtype=torch.float64)


def dense_of(matrix: SparseMatrix) -> torch.Tensor:
    out = torch.zeros(*matrix.values.shape[:-1], *matrix.shape, dtype=matrix.values.dtype)
    out[..., matrix.pattern.rows, matrix.pattern.indices] = matrix.values
    return out


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_products_equal_dense_products(matrix, replicas, shared):
    if not shared:
        entries = matrix.pattern.num_entries
        matrix = matrix.with_values(torch.rand(replicas, entries, dtype=torch.float64))
    right = torch.rand(replicas, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(spmm(matrix, right), dense_of(matrix) @ right)
    torch.testing.assert_close(spmm(matrix, right[0]), dense_of(matrix) @ right[0])


@pytest.mark.parametrize("shared", [True, False])
def test_gradients_equal_finite_differences(matrix, shared):
    shape = (matrix.pattern.num_entries,) if shared else (2, matrix.pattern.num_entries)
    values = torch.rand(*shape, dtype=torch.float64, requires_grad=True)
    right = torch.rand(2, 6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, r: spmm(matrix.with_values(v), r), (values, right))


def test_entry_products_are_the_same_in_blocks(matrix, monkeypatch):
    left = torch.rand(2, 9, 3, dtype=torch.float64)
    right = torch.rand(2, 6, 3, dtype=torch.float64)
    expected = (left @ right.mT)[:, matrix.pattern.rows, matrix.pattern.indices]
    torch.testing.assert_close(entry_products(matrix.pattern, left, right), expected)
    monkeypatch.setattr(products, "_BLOCK", 8)
    torch.testing.assert_close(entry_products(matrix.pattern, left, right), expected)


def test_changing_the_values_before_the_backward_pass_is_an_error(matrix):
    right = torch.rand(6, 3, dtype=torch.float64, requires_grad=True)
    product = spmm(matrix, right)
    matrix.values.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_second_derivatives_are_an_error(matrix):
    right = torch.rand(2, 6, 3, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(spmm(matrix, right).square().sum(), right, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_an_empty_matrix_gives_zeros():
    empty = SparseMatrix.from_scipy(sp.csr_array((4, 4), dtype=np.float32))
    right = torch.rand(2, 4, 3, requires_grad=True)
    product = spmm(empty, right)
    product.sum().backward()
    assert (product == 0).all()
    assert (right.grad == 0).all()
