"""Node pairs that the edge predictor may change."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.graph_tensors import GraphTensors
from dcgst.graph import Graph
from dcgst.methods.dcgst import teacher as module
from dcgst.methods.dcgst.teacher import list_pairs, most_shifted, pairs_by_similarity
from dcgst.methods.problem import Problem
from tests.methods.helpers import draw, ring, ring_problem


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Eight nodes in a ring with random features; two are labeled."""
    return ring_problem([0, 1] + [-1] * 6, features=draw(3, 8, 5).numpy())


class TestMostShifted:
    z = torch.tensor([[[0.0], [1.0], [9.0], [10.0], [12.0], [5.0]]])
    labeled = torch.tensor([[True, True, False, False, False, False]])

    def found(self, count, labeled=None) -> list[int]:
        labeled = self.labeled if labeled is None else labeled
        return most_shifted(self.z, labeled, ~labeled, count)[0].tolist()

    def test_half_are_labeled_and_half_from_the_pool(self):
        # The pool has mean 9: node 0 is farthest from it. Labels have mean .5: nodes 4, 3, 2, 5.
        assert self.found(2) == [0, 4]
        assert self.found(4) == [0, 1, 4, 3]

    def test_pool_takes_the_larger_half_of_an_odd_number(self):
        assert self.found(3) == [0, 4, 3]

    def test_pool_fills_up_if_there_are_few_labels(self):
        one = torch.tensor([[True, False, False, False, False, False]])
        assert self.found(4, one) == [0, 4, 3, 2]

    def test_runs_are_independent(self):
        other = torch.tensor([[False, False, True, True, False, False]])
        both = torch.cat([self.labeled, other])
        found = most_shifted(self.z.expand(2, -1, -1), both, ~both, 4)
        assert found.tolist() == [self.found(4), self.found(4, other)]


def cosines(problem) -> np.ndarray:
    x = problem.x.numpy()
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def test_pairs_by_similarity_are_close_strangers_and_distant_neighbors(problem):
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(7), 6)[0].tolist()
    similar, edges = cosines(problem), problem.adjacency.to_scipy().toarray() > 0
    every = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    strangers = sorted((p for p in every if not edges[p]), key=lambda p: -similar[p])
    neighbors = sorted((p for p in every if edges[p]), key=lambda p: similar[p])
    assert {tuple(p) for p in found[:3]} == set(strangers[:3])
    assert {tuple(p) for p in found[3:]} == set(neighbors[:3])


def test_a_self_loop_is_no_pair():
    loops = sp.csr_array(ring(6) + sp.eye_array(6)).astype(np.float32)
    x = draw(1, 6, 4).numpy()
    problem = Problem.build(GraphTensors.of(x, loops), np.array([[0, 1, -1, -1, -1, -1]]), 2)
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(5), 20)[0]
    assert (found[:, 0] < found[:, 1]).all()
    assert len(found) == 15  # every pair once: 6 edges, and 9 pairs that are not connected


def test_no_pairs_by_similarity(problem):
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(7), 0)
    assert found.shape == (1, 0, 2)


def test_list_contains_shifted_nodes_with_their_similar_nodes_then_pairs_by_similarity(
    problem, monkeypatch
):
    monkeypatch.setattr(module, "NUM_SIMILAR", 2)
    z = problem.x[None]
    labeled = problem.train_labels >= 0
    found = list_pairs(problem, z, labeled, num_nodes=3, num_pairs=4)[0].tolist()
    assert len(found) == 3 * 2 + 4
    similar = cosines(problem)
    np.fill_diagonal(similar, -np.inf)
    nodes = most_shifted(z, labeled, problem.pool, 3)[0].tolist()
    around = {(node, int(other)) for node in nodes for other in np.argsort(-similar[node])[:2]}
    assert {tuple(pair) for pair in found[:6]} == around
    expected = pairs_by_similarity(problem, problem.graph.similar_nodes(2), 4)[0].tolist()
    assert found[6:] == expected


def test_pairs_of_the_first_node_are_found():
    """Nodes 0 and 3 of a ring are not connected and have equal features."""
    x = np.array([[1.0, 0], [0, 1], [0.7, -0.7], [1, 0], [-1, 0.5], [-0.3, -1]], dtype=np.float32)
    ring = np.array([range(6), [1, 2, 3, 4, 5, 0]])
    graph = Graph.from_edges(ring, x)
    problem = Problem.build(
        GraphTensors.of(x, graph.adjacency), np.array([[0, 1, -1, -1, -1, -1]]), 2
    )
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(1), 2)[0].tolist()
    assert [0, 3] in found


def test_a_pair_is_found_if_only_one_end_has_the_other_as_its_most_similar_node():
    """Node 3 is most similar to node 0, but node 3 itself is more similar to node 5."""
    x = np.array([[1.0, 0.4], [0, -1], [-1, 0.2], [1, 0], [-1, -0.3], [1, -0.1]], dtype=np.float32)
    problem = ring_problem([0, 1, -1, -1, -1, -1], features=x)
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(1), 12)[0].tolist()
    assert [0, 3] in found
    assert [3, 5] in found


@pytest.mark.parametrize(
    ("most", "searched"), [(3, {0, 3, 6}), (4, {0, 2, 4, 6}), (8, set(range(8)))]
)
def test_on_large_graphs_every_kth_node_is_searched(problem, monkeypatch, most, searched):
    monkeypatch.setattr(module, "MAX_QUERIES", most)
    found = pairs_by_similarity(problem, problem.graph.similar_nodes(7), 100)[0].tolist()
    edges = problem.adjacency.to_scipy().toarray() > 0
    every = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    expected = {p for p in every if not edges[p] and searched & set(p)}
    assert {tuple(p) for p in found if not edges[tuple(p)]} == expected
