"""Normalization of adjacency matrices and feature rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.columns import scale_rows, to_features, unit_rows
from dcgst.features.sparse import SparseMatrix, normalize_adjacency, normalize_scipy, random_walk

# A path of three nodes with weights 1 and 3, and an isolated node.
ADJACENCY = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0.0]]))
ROWS = np.array([[3, -4, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 2, 0, 0]], dtype=np.float32)


def test_symmetric_normalization_by_hand():
    # Degrees 1, 4, 3, 0.
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1 / np.sqrt(1 * 4)
    expected[1, 2] = expected[2, 1] = 3 / np.sqrt(4 * 3)
    np.testing.assert_allclose(normalize_scipy(ADJACENCY).toarray(), expected)


def test_symmetric_normalization_with_self_loops_by_hand():
    degrees = np.array([2, 5, 4, 1])
    expected = (ADJACENCY.toarray() + np.eye(4)) / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(normalize_scipy(ADJACENCY, loops=True).toarray(), expected)
    tensors = normalize_adjacency(SparseMatrix.from_scipy(ADJACENCY, dtype=torch.float64))
    np.testing.assert_allclose(tensors.to_scipy().toarray(), expected)


def test_normalization_passes_on_gradients():
    matrix = SparseMatrix.from_scipy(ADJACENCY, dtype=torch.float64)
    values = torch.stack([matrix.values, matrix.values + 1]).requires_grad_()
    normalized = lambda v: normalize_adjacency(matrix.with_values(v)).values  # noqa: E731
    assert torch.autograd.gradcheck(normalized, values)


def test_columns_of_a_random_walk_sum_to_one_unless_the_node_is_isolated():
    walk = random_walk(ADJACENCY).toarray()
    np.testing.assert_allclose(walk.sum(axis=0), [1, 1, 1, 0])
    np.testing.assert_allclose(walk[:, 1], [1 / 4, 0, 3 / 4, 0])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    ("norm", "first", "last"),
    [("l2", [0.6, -0.8], 1.0), ("row", [3 / 7, -4 / 7], 1.0), ("none", [3.0, -4.0], 2.0)],
)
def test_rows_are_scaled_to_their_norm_and_zero_rows_stay_zero(kind, norm, first, last):
    scaled = scale_rows(kind(ROWS), norm)
    assert scaled.dtype == np.float32
    dense = scaled.toarray() if sp.issparse(scaled) else scaled
    np.testing.assert_allclose(dense[0, :2], first, rtol=1e-6)
    assert dense[1].tolist() == [0] * 5
    assert dense[2].tolist() == pytest.approx([0, 0, last, 0, 0])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_unit_rows_have_length_one_and_zero_rows_stay_zero(kind):
    x = torch.tensor(ROWS) if kind == "dense" else SparseMatrix.from_scipy(sp.csr_array(ROWS))
    unit = unit_rows(x)
    dense = torch.tensor(unit.to_scipy().toarray()) if kind == "sparse" else unit
    expected = torch.tensor([[0.6, -0.8, 0, 0, 0], [0] * 5, [0, 0, 1.0, 0, 0]])
    torch.testing.assert_close(dense, expected)


def test_features_stay_sparse_up_to_a_fifth_of_nonzeros():
    identity = np.eye(5, dtype=np.float32)
    sparse = to_features(sp.csr_array(identity))  # 5 of 25
    assert isinstance(sparse, SparseMatrix)
    np.testing.assert_array_equal(sparse.to_scipy().toarray(), identity)
    assert torch.equal(to_features(identity), torch.eye(5))
    fuller = identity.copy()
    fuller[0, 1] = 1
    assert torch.equal(to_features(sp.csr_array(fuller)), torch.tensor(fuller))
