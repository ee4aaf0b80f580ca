"""Sparse matrices from untrusted arrays: every index is checked before anything uses it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst import Graph, InputError
from dcgst.graph.cleaning import checked_csr, csr_from_tensor

DATA, INDICES, INDPTR = [1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]


def test_a_valid_matrix_is_returned():
    found = checked_csr((DATA, INDICES, INDPTR), (2, 3), "x")
    assert found.toarray().tolist() == [[1, 0, 2], [0, 3, 0]]


@pytest.mark.parametrize(
    ("parts", "shape", "message"),
    [
        ((DATA, [0, 10**6, 1], INDPTR), (2, 3), "entry 1 is in column 1000000 of a matrix with 3"),
        ((DATA, [0, -1, 1], INDPTR), (2, 3), "entry 1 is in column -1"),
        ((DATA, INDICES, [0, 10**6, 3]), (2, 3), "indptr must increase from 0 to 3"),
        ((DATA, INDICES, [0, -1, 3]), (2, 3), "indptr must increase"),
        ((DATA, INDICES, [1, 2, 3]), (2, 3), "indptr must increase"),
        ((DATA, INDICES, [0, 2, 2]), (2, 3), "indptr must increase"),
        ((DATA, INDICES, [0, 3]), (2, 3), "2 rows need 3 values in indptr, got 2"),
        (([1.0], INDICES, INDPTR), (2, 3), "3 entries need as many numbers"),
        ((["a", "b", "c"], INDICES, INDPTR), (2, 3), "3 entries need as many numbers"),
        ((DATA, [[0, 2, 1]], INDPTR), (2, 3), "indices must be one row of integers"),
        ((DATA, INDICES, [0.0, 2.0, 3.0]), (2, 3), "indptr must be one row of integers"),
        ((DATA, INDICES, INDPTR), (2, 10**9), "2 rows of 1,000,000,000 columns; allowed are"),
        ((DATA, INDICES, INDPTR), (2, 0), "2 rows of 0 columns"),
        ((DATA, INDICES, INDPTR), (-2, 3), "-2 rows"),
        ((DATA, INDICES, INDPTR), (10**12, 3), "1,000,000,000,000 rows"),
        ((DATA, INDICES, INDPTR), (2, 3, 1), "the shape must be two integers"),
        ((DATA, INDICES, INDPTR), (2.0, 3.0), "the shape must be two integers"),
    ],
)
def test_invalid_parts_are_named(parts, shape, message):
    with pytest.raises(InputError, match=message):
        checked_csr(parts, shape, "x")


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_tensors_are_converted(rng, layout):
    dense = rng.random((5, 4)) * (rng.random((5, 4)) < 0.4)
    tensor = torch.tensor(dense).to_sparse(layout=layout)
    np.testing.assert_array_equal(csr_from_tensor(tensor).toarray(), dense)


def test_repeated_entries_of_a_sparse_tensor_are_added():
    tensor = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (1, 2))
    assert csr_from_tensor(tensor).toarray().tolist() == [[0, 3]]


def test_block_layouts_are_refused():
    tensor = torch.eye(4).to_sparse_bsr((2, 2))
    with pytest.raises(InputError, match=r"layout torch.sparse_bsr are not supported"):
        csr_from_tensor(tensor)


@pytest.mark.parametrize(
    ("indices", "message"),
    [([[0, 5], [0, 1]], "entry 1 is in row 5"), ([[0, 1], [0, 7]], "entry 1 is in column 7")],
)
def test_indices_of_sparse_tensors_are_checked(indices, message):
    tensor = torch.sparse_coo_tensor(
        indices, [1.0, 1.0], (2, 2), check_invariants=False, is_coalesced=True
    )
    with pytest.raises(InputError, match=message):
        csr_from_tensor(tensor)


def broken(matrix: sp.csr_array) -> sp.csr_array:
    matrix = matrix.copy()
    matrix.indices[1] = 10**6
    return matrix


def test_graphs_check_the_matrices_of_users():
    features = sp.csr_array(np.eye(4))
    adjacency = sp.csr_array(np.ones((4, 4)) - np.eye(4))
    with pytest.raises(InputError, match="features: entry 1 is in column 1000000"):
        Graph.from_edges([[0], [1]], broken(features))
    with pytest.raises(InputError, match="adjacency: entry 1 is in column 1000000"):
        Graph.from_scipy(broken(adjacency), features)
    with pytest.raises(InputError, match="adjacency: entry 1 is in column 1000000"):
        Graph(
            broken(adjacency.astype(np.float32)),
            np.eye(4, dtype=np.float32),
            np.zeros(4, dtype=np.int64),
            ("a",),
            np.arange(4),
        )


def test_a_huge_class_code_is_refused():
    with pytest.raises(InputError, match="node 1 has class code 1000000000; codes must be smaller"):
        Graph.from_edges([[0], [1]], np.eye(3), [0, 10**9, 1])
    assert Graph.from_edges([[0], [1]], np.eye(3), [0, 999, 1]).num_classes == 1000


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e31, -1e31])
def test_values_that_are_not_finite_or_too_large_are_refused(value):
    features = np.eye(3)
    features[1, 2] = value
    message = "1 feature values are NaN, infinite or beyond 1e.30, the first at node 1, column 2"
    for matrix in (features, sp.csr_array(features)):
        with pytest.raises(InputError, match=message):
            Graph.from_edges([[0], [1]], matrix)
