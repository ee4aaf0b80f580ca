"""Personalized PageRank against the dense inverse on a small graph."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.shift import ppr_distances, ppr_push, ppr_rows
from dcgst.shift.ppr import sparse_ppr_rows


@pytest.fixture(scope="module")
def graph():
    return synthetic(60, 2, features=2, degree=3, labels_per_class=2, seed=3)


def dense_pagerank(graph, teleport):
    loops = graph.adjacency.toarray().astype(float) + np.eye(graph.num_nodes)
    scale = 1 / np.sqrt(loops.sum(axis=1))
    normalized = loops * scale[:, None] * scale
    return teleport * np.linalg.inv(np.eye(graph.num_nodes) - (1 - teleport) * normalized)


@pytest.mark.parametrize("teleport", [0.01, 0.1, 0.5])
def test_rows_equal_the_inverse(graph, teleport):
    nodes = np.array([5, 0, 40])
    expected = dense_pagerank(graph, teleport)[nodes]
    np.testing.assert_allclose(ppr_rows(graph.adjacency, nodes, teleport), expected, atol=1e-7)


def test_distances_equal_distances_between_rows_of_the_inverse(graph):
    pagerank = dense_pagerank(graph, 0.1)
    roots, nodes = np.array([3, 50]), np.arange(0, 60, 2)
    expected = np.linalg.norm(pagerank[roots][:, None] - pagerank[nodes][None], axis=2)
    found = ppr_distances(graph.adjacency, roots, nodes, 0.1)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_many_rows_are_solved_in_blocks(graph):
    nodes = np.arange(60)  # more than one block
    expected = dense_pagerank(graph, 0.1)
    np.testing.assert_allclose(ppr_rows(graph.adjacency, nodes, 0.1), expected, atol=1e-7)
    own = np.diag(ppr_distances(graph.adjacency, nodes, nodes, 0.1))
    np.testing.assert_allclose(own, 0, atol=1e-6)


@pytest.mark.parametrize("teleport", [0.0, 1.0, -0.1])
def test_teleport_must_be_between_zero_and_one(graph, teleport):
    with pytest.raises(InputError, match="teleport must lie between 0 and 1"):
        ppr_rows(graph.adjacency, np.array([0]), teleport)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-6])
def test_push_is_below_the_exact_walk_by_at_most_epsilon_times_the_degree(graph, epsilon):
    loops = graph.adjacency.toarray().astype(float) + np.eye(graph.num_nodes)
    degree = loops.sum(axis=1)
    exact = 0.1 * np.linalg.inv(np.eye(graph.num_nodes) - 0.9 * loops / degree[:, None])[7]
    pushed = ppr_push(graph.adjacency, 7, 0.1, epsilon)
    assert (pushed <= exact + 1e-12).all()
    assert (exact - pushed <= epsilon * degree + 1e-12).all()


def test_push_stops_when_no_residual_exceeds_epsilon_times_the_degree():
    """One edge: the first push keeps 1/2 and leaves residuals 1/4, 1/4; degrees are 2."""
    pair = Graph.from_edges([[0], [1]], np.eye(2)).adjacency
    assert ppr_push(pair, 0, 0.5, epsilon=1 / 8).tolist() == [1 / 2, 0]
    # The second push keeps half of both residuals and leaves 1/8, 1/8.
    assert ppr_push(pair, 0, 0.5, epsilon=1 / 8 - 1e-9).tolist() == [5 / 8, 1 / 8]
    assert ppr_push(pair, 0, 0.5, epsilon=1 / 16).tolist() == [5 / 8, 1 / 8]


def test_push_follows_edge_weights():
    star = Graph.from_edges([[0, 0], [1, 2]], np.eye(3), weights=[1.0, 3.0]).adjacency
    pushed = ppr_push(star, 0, 0.5, epsilon=1e-9)
    loops = star.toarray() + np.eye(3)
    exact = 0.5 * np.linalg.inv(np.eye(3) - 0.5 * loops / loops.sum(axis=1, keepdims=True))[0]
    np.testing.assert_allclose(pushed, exact, atol=1e-7)
    assert pushed[2] > pushed[1]


def test_push_stays_near_the_root_of_a_large_graph():
    chain = synthetic(3000, 2, features=2, degree=2, homophily=1.0, labels_per_class=1, seed=0)
    assert np.count_nonzero(ppr_push(chain.adjacency, 0, 0.3, 1e-2)) < 100


def test_sparse_rows_equal_pushed_rows(graph):
    rows = sparse_ppr_rows(graph.adjacency, np.array([4, 9]), 0.1, 1e-3)
    assert rows.shape == (2, 60)
    for row, node in zip(rows.toarray(), (4, 9), strict=True):
        np.testing.assert_array_equal(row, ppr_push(graph.adjacency, node, 0.1, 1e-3))
    assert rows.nnz == np.count_nonzero(rows.toarray())
