"""Self-training: how many nodes of each class are selected, and which."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features.graph_tensors import GraphTensors
from dcgst.graph import Graph
from dcgst.methods import GCN, M3S, SRGNNST, ST
from dcgst.methods.problem import Problem
from dcgst.methods.st import labels_to_reach_all, most_confident
from dcgst.nn import Output
from dcgst.splits import sample
from tests.methods.helpers import ring_problem


@pytest.fixture(scope="module")
def forty() -> Problem:
    """Forty nodes in a ring, three labels of class 0 and one of class 1."""
    return ring_problem([0, 0, 0, 1] + [-1] * 36)


class TestQuota:
    @pytest.mark.parametrize(("edges", "expected"), [(0, 6), (2, 6), (3, 6), (4, 6 / (8 / 6) ** 2)])
    def test_all_others_are_within_two_edges(self, edges, expected):
        """η = n / degree², with a mean degree of at least one; six nodes on a path."""
        pairs = np.array([range(edges), range(1, edges + 1)])
        path = Graph.from_edges(pairs, np.ones((6, 1)))
        problem = Problem.build(
            GraphTensors.of(path.features, path.adjacency), np.array([[0, 1, -1, -1, -1, -1]]), 2
        )
        assert labels_to_reach_all(problem) == pytest.approx(expected)

    def test_follows_from_the_mean_degree(self, forty):
        assert labels_to_reach_all(forty) == pytest.approx(40 / 2**2)
        # floor(3 * 10 * 3/4) and floor(3 * 10 * 1/4)
        assert ST().quota(forty, 1).tolist() == [[22, 7]]

    def test_can_be_set(self, forty):
        assert ST(per_class=9).quota(forty, 1).tolist() == [[9, 9]]

    def test_is_divided_among_the_stages(self, forty):
        """Differences of floor(22 s / 4) and of floor(7 s / 4)."""
        parts = [ST(stages=4).quota(forty, stage)[0].tolist() for stage in (1, 2, 3, 4)]
        assert parts == [[5, 1], [6, 2], [5, 2], [6, 2]]

    def test_is_at_least_one_for_a_class_with_labels_and_zero_for_others(self):
        full = np.ones((40, 40), dtype=np.float32) - np.eye(40, dtype=np.float32)
        labels = np.full((1, 40), -1)
        labels[0, :2] = 0, 1
        graph = GraphTensors.of(np.eye(40, dtype=np.float32), sp.csr_array(full))
        assert ST().quota(Problem.build(graph, labels, 3), 1).tolist() == [[1, 1, 0]]


PROBA = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]


def test_most_confident_nodes_of_each_class_are_selected():
    unlabeled = torch.tensor([[False, True, True, True, True]])
    found = most_confident(torch.tensor([PROBA]).log(), unlabeled, torch.tensor([[1, 1]]))
    assert found.predicted.tolist() == [[0, 0, 0, 1, 1]]
    assert found.selected.tolist() == [[False, True, False, False, True]]
    assert found.rank.tolist() == [[5, 0, 1, 1, 0]]


def test_candidates_are_twice_as_many_as_selected():
    unlabeled = torch.ones(1, 5, dtype=torch.bool)
    found = most_confident(torch.tensor([PROBA]).log(), unlabeled, torch.tensor([[1, 0]]))
    assert found.candidates.tolist() == [[True, True, False, False, False]]
    assert found.selected.tolist() == [[True, False, False, False, False]]


def test_select_ignores_nodes_with_a_label():
    """Node 0 is most confident, but has a pseudo-label already; node 4 is not in the pool."""
    problem = ring_problem([-1, -1, -1, 1, 0])
    labels = torch.tensor([[0, -1, -1, 1, 0]])
    logits = torch.tensor([PROBA]).log()
    found = ST(per_class=1).select(Output(logits, logits), labels, problem, 1)
    assert found.selected.tolist() == [[False, True, False, False, False]]


@pytest.mark.parametrize("method", [ST, M3S, SRGNNST])
def test_pseudo_labels_accumulate_over_the_stages(method, graph, split):
    fitted = method(stages=3, per_class=12, epochs=15, hidden=16).fit(graph, split)
    selected = fitted.candidates_[fitted.candidates_["selected"]]
    assert len(np.unique(selected["node"])) == len(selected), "a node was selected twice"
    np.testing.assert_array_equal(fitted.labeled_stage_[selected["node"]], selected["stage"])
    labeled = [record["labeled"] for record in fitted.history_]
    added = [(selected["stage"] == stage).sum() for stage in (1, 2, 3)]
    assert np.diff(labeled).tolist() == added


def test_every_stage_adds_its_quota(graph, split):
    fitted = ST(stages=3, per_class=12, epochs=15, hidden=16).fit(graph, split)
    selected = fitted.candidates_[fitted.candidates_["selected"]]
    for stage in (1, 2, 3):
        assert np.bincount(selected["label"][selected["stage"] == stage]).tolist() == [4, 4, 4]


def test_self_training_increases_accuracy_on_biased_labels():
    graph = synthetic(400, 4, features=16, degree=4, homophily=0.95, noise=1.0, shift=1.0, seed=4)
    split = sample(graph, "ppr-s", per_class=3, runs=3)
    test = split.test(graph)

    def accuracy(method, **settings):
        results = method(epochs=60, hidden=16, **settings).fit_runs(graph, split)
        hits = [(r.labels == graph.labels)[t].mean() for r, t in zip(results, test, strict=True)]
        return np.mean(hits)

    plain = accuracy(GCN)
    assert accuracy(ST, stages=2) > plain + 0.02
    assert accuracy(M3S, stages=2, clusters=40) > plain + 0.02
    assert accuracy(SRGNNST, stages=2) > plain + 0.02


def test_number_of_trainings_is_one_more_than_the_stages():
    assert (ST(stages=3).count_trainings(), M3S(stages=1).count_trainings()) == (4, 2)
