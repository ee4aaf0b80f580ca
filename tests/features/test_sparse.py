"""Sparse matrices: patterns, selections and caches agree with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.sparse import SparseMatrix, spmm


@pytest.fixture
def matrix() -> SparseMatrix:
    random = sp.random_array((9, 6), density=0.4, rng=np.random.default_rng(1), format="csr")
    return SparseMatrix.from_scipy(random, dtype=torch.float64)


@pytest.fixture
def square(rng) -> SparseMatrix:
    random = sp.random_array((8, 8), density=0.3, rng=rng, format="lil")
    random.setdiag(0)
    csr = random.tocsr()
    csr.eliminate_zeros()
    return SparseMatrix.from_scipy(csr, dtype=torch.float64)


def dense_of(matrix: SparseMatrix) -> torch.Tensor:
    out = torch.zeros(*matrix.values.shape[:-1], *matrix.shape, dtype=matrix.values.dtype)
    out[..., matrix.pattern.rows, matrix.pattern.indices] = matrix.values
    return out


def test_scipy_round_trip(matrix):
    np.testing.assert_array_equal(matrix.to_dense(), matrix.to_scipy().toarray())
    again = SparseMatrix.from_scipy(matrix.to_scipy(), dtype=torch.float64)
    assert again.shape == matrix.shape == (9, 6)
    assert torch.equal(dense_of(again), dense_of(matrix))


def test_transpose(matrix):
    torch.testing.assert_close(dense_of(matrix.transposed), dense_of(matrix).T)


def test_self_loops_add_a_multiple_of_the_identity(square):
    torch.testing.assert_close(
        dense_of(square.with_loops(2.0)), dense_of(square) + 2 * torch.eye(8, dtype=torch.float64)
    )


def test_row_sums(matrix):
    values = torch.stack([matrix.values, 2 * matrix.values])
    expected = dense_of(matrix.with_values(values)).sum(-1)
    torch.testing.assert_close(matrix.pattern.row_sums(values), expected)


def test_block_diagonal_repeats_the_pattern(matrix):
    blocks = matrix.pattern.block_diagonal(3)
    assert (blocks.num_rows, blocks.num_cols) == (27, 18)
    dense = dense_of(SparseMatrix(blocks, matrix.values.repeat(3)))
    torch.testing.assert_close(dense, torch.block_diag(*[dense_of(matrix)] * 3))


def test_both_directions_of_an_edge_have_the_same_pair_number():
    path = SparseMatrix.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    count, number = path.pattern.undirected
    assert count == 2
    assert number.tolist() == [0, 0, 1, 1]


def test_rows_and_columns_are_selected_in_the_given_order(square):
    rows, cols = torch.tensor([5, 1, 2]), torch.tensor([7, 0, 3, 4])
    part = square.select_rows(rows).select_columns(cols)
    torch.testing.assert_close(dense_of(part), dense_of(square)[rows][:, cols])
    other = torch.tensor([0])
    torch.testing.assert_close(dense_of(square.select_rows(other)), dense_of(square)[other])


def test_the_last_selection_is_cached_until_the_values_change(square):
    rows = torch.tensor([5, 1, 2])
    assert square.select_rows(rows) is square.select_rows(rows)
    assert square.transposed is square.transposed
    square.values.mul_(3)
    torch.testing.assert_close(dense_of(square.select_rows(rows)), dense_of(square)[rows])
    torch.testing.assert_close(dense_of(square.transposed), dense_of(square).T)


def test_selected_rows_pass_on_gradients(square):
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


def test_reach_equals_the_nonzeros_of_matrix_powers(square):
    rows = torch.tensor([0, 3])
    for hops in range(4):
        power = torch.linalg.matrix_power(dense_of(square) + torch.eye(8), hops)
        expected = (power[rows] != 0).any(0).nonzero().squeeze(-1)
        assert square.reach(rows, hops).tolist() == expected.tolist()
