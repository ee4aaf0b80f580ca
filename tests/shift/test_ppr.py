"""PageRank against the dense inverse on a graph small enough for one."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.shift import ppr_distances, ppr_push, ppr_rows


@pytest.fixture(scope="module")
def graph():
    return synthetic(60, 2, features=2, degree=3, labels_per_class=2, seed=3)


def dense_pagerank(graph, teleport):
    loops = graph.adjacency.toarray().astype(float) + np.eye(graph.num_nodes)
    scale = 1 / np.sqrt(loops.sum(axis=1))
    normalised = loops * scale[:, None] * scale
    inverse = np.linalg.inv(np.eye(graph.num_nodes) - (1 - teleport) * normalised)
    return teleport * inverse


@pytest.mark.parametrize("teleport", [0.01, 0.1, 0.5])
def test_rows_equal_the_inverse(graph, teleport):
    nodes = np.array([5, 0, 40])
    expected = dense_pagerank(graph, teleport)[nodes]
    np.testing.assert_allclose(ppr_rows(graph.adjacency, nodes, teleport), expected, atol=1e-7)


def test_distances_equal_those_of_the_inverse(graph):
    pagerank = dense_pagerank(graph, 0.1)
    roots, nodes = np.array([3, 50]), np.arange(0, 60, 2)
    expected = np.linalg.norm(pagerank[roots][:, None] - pagerank[nodes][None], axis=2)
    actual = ppr_distances(graph.adjacency, roots, nodes, 0.1)
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_a_node_is_at_no_distance_from_itself(graph):
    nodes = np.arange(60)
    np.testing.assert_allclose(
        np.diag(ppr_distances(graph.adjacency, nodes, nodes, 0.1)), 0, atol=1e-6
    )


def test_push_bounds_the_walk_from_below(graph):
    loops = graph.adjacency.toarray().astype(float) + np.eye(graph.num_nodes)
    degree = loops.sum(axis=1)
    walk = loops / degree[:, None]
    exact = 0.1 * np.linalg.inv(np.eye(graph.num_nodes) - 0.9 * walk)[7]
    for epsilon in (1e-2, 1e-4, 1e-6):
        pushed = ppr_push(graph.adjacency, 7, 0.1, epsilon)
        assert (pushed <= exact + 1e-12).all()
        assert (exact - pushed <= epsilon * degree + 1e-12).all()


def test_push_reaches_no_further_than_it_must():
    chain = synthetic(3000, 2, features=2, degree=2, homophily=1.0, labels_per_class=1, seed=0)
    assert np.count_nonzero(ppr_push(chain.adjacency, 0, 0.3, 1e-2)) < 100
