"""Sparse products: equal to dense ones, forward and backward, alone or among replicas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.engine.sparse import SparseMatrix, entry_products, spmm


@pytest.fixture
def matrix() -> SparseMatrix:
    dense = sp.random_array((9, 6), density=0.4, rng=np.random.default_rng(1), format="csr")
    return SparseMatrix.from_scipy(dense, dtype=torch.float64)


@pytest.fixture
def square(rng) -> SparseMatrix:
    dense = sp.random_array((8, 8), density=0.3, rng=rng, format="lil")
    dense.setdiag(0)
    csr = dense.tocsr()
    csr.eliminate_zeros()
    return SparseMatrix.from_scipy(csr, dtype=torch.float64)


def dense_of(matrix: SparseMatrix) -> torch.Tensor:
    out = torch.zeros(*matrix.values.shape[:-1], *matrix.shape, dtype=matrix.values.dtype)
    out[..., matrix.pattern.rows, matrix.pattern.indices] = matrix.values
    return out


def test_product_with_one_and_with_many(matrix):
    right = torch.rand(3, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(spmm(matrix, right), dense_of(matrix) @ right)
    torch.testing.assert_close(spmm(matrix, right[0]), dense_of(matrix) @ right[0])


def test_product_with_values_of_each_replica(matrix):
    values = torch.rand(3, matrix.pattern.num_entries, dtype=torch.float64)
    own = matrix.with_values(values)
    right = torch.rand(3, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(spmm(own, right), dense_of(own) @ right)
    torch.testing.assert_close(spmm(own, right[0]), dense_of(own) @ right[0])


@pytest.mark.parametrize("shared", [True, False])
def test_gradients(matrix, shared):
    shape = (matrix.pattern.num_entries,) if shared else (2, matrix.pattern.num_entries)
    values = torch.rand(*shape, dtype=torch.float64, requires_grad=True)
    right = torch.rand(2, 6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, r: spmm(matrix.with_values(v), r), (values, right))


def test_gradients_of_entries_come_block_by_block(matrix, monkeypatch):
    left = torch.rand(2, 9, 3, dtype=torch.float64)
    right = torch.rand(2, 6, 3, dtype=torch.float64)
    whole = entry_products(matrix.pattern, left, right)
    monkeypatch.setattr("dcgst.engine.sparse._BLOCK", 8)
    torch.testing.assert_close(entry_products(matrix.pattern, left, right), whole)
    expected = (left @ right.mT)[:, matrix.pattern.rows, matrix.pattern.indices]
    torch.testing.assert_close(whole, expected)


def test_transpose(matrix):
    torch.testing.assert_close(dense_of(matrix.transposed), dense_of(matrix).T)


def test_loops(square):
    torch.testing.assert_close(
        dense_of(square.with_loops(2.0)), dense_of(square) + 2 * torch.eye(8, dtype=torch.float64)
    )


def test_selection(square):
    rows, cols = torch.tensor([5, 1, 2]), torch.tensor([7, 0, 3, 4])
    part = square.select_rows(rows).select_columns(cols)
    torch.testing.assert_close(dense_of(part), dense_of(square)[rows][:, cols])
    assert square.select_rows(rows) is square.select_rows(rows)
    other = torch.tensor([0])
    torch.testing.assert_close(dense_of(square.select_rows(other)), dense_of(square)[other])


def test_selected_rows_keep_their_gradient_and_notice_changes(square):
    rows, right = torch.tensor([1, 2]), torch.rand(8, 3, dtype=torch.float64)
    values = square.values.clone().requires_grad_()
    learned = square.with_values(values)
    with torch.no_grad():
        learned.select_rows(rows)
    (gradient,) = torch.autograd.grad(spmm(learned.select_rows(rows), right).sum(), values)
    expected = torch.zeros_like(values)
    inside = torch.isin(square.pattern.rows, rows)
    expected[inside] = right.sum(1)[square.pattern.indices[inside]]
    torch.testing.assert_close(gradient, expected)
    assert square.select_rows(rows).shape == (2, 8)  # remembered from here on
    assert square.transposed.shape == (8, 8)
    square.values.mul_(3)
    torch.testing.assert_close(dense_of(square.select_rows(rows)), dense_of(square)[rows])
    torch.testing.assert_close(dense_of(square.transposed), dense_of(square).T)


def test_second_derivatives_are_refused_rather_than_wrong(matrix):
    right = torch.rand(2, 6, 3, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(spmm(matrix, right).square().sum(), right, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_reach_is_what_powers_of_the_matrix_touch(square):
    rows = torch.tensor([0, 3])
    for hops in range(4):
        power = torch.linalg.matrix_power(dense_of(square) + torch.eye(8), hops)
        expected = (power[rows] != 0).any(0).nonzero().squeeze(-1)
        assert square.reach(rows, hops).tolist() == expected.tolist()


def test_empty_matrix():
    empty = SparseMatrix.from_scipy(sp.csr_array((4, 4), dtype=np.float32))
    right = torch.rand(2, 4, 3, requires_grad=True)
    product = spmm(empty, right)
    product.sum().backward()
    assert (product == 0).all()
    assert (right.grad == 0).all()
