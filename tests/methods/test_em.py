"""Seeded EM: its steps in NumPy, the weights of its views, and accuracy on biased labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F

from dcgst.datasets import load, synthetic
from dcgst.features.graph_tensors import GraphTensors
from dcgst.features.sparse import SparseMatrix
from dcgst.methods import EM, GCN
from dcgst.methods.em import edge_agreement
from dcgst.methods.problem import Problem
from dcgst.splits import sample
from tests.methods.helpers import path, ring_problem


def chain(labels, val_labels=None) -> Problem:
    """Two runs on six nodes in a row."""
    graph = GraphTensors.of(np.eye(6, dtype=np.float32), path([0] * 6).adjacency)
    labels = np.array(labels)
    val = np.full_like(labels, -1) if val_labels is None else np.array(val_labels)
    pool = (labels < 0) & (val < 0)
    return Problem.build(graph, labels, 2, val_labels=val, pool=pool, seeds=(0, 1))


@pytest.fixture
def problem() -> Problem:
    """The first two nodes are labeled, the last one is a validation node."""
    return chain(
        [[0, 1, -1, -1, -1, -1], [1, 0, -1, -1, -1, -1]],
        [[-1, -1, -1, -1, -1, 1], [-1, -1, -1, -1, -1, 0]],
    )


@pytest.fixture
def h(rng) -> np.ndarray:
    h = rng.normal(size=(6, 3))
    return h / np.linalg.norm(h, axis=1, keepdims=True)


def em_in_numpy(h, given, pool, start, *, steps, temperature, weight):
    """Probabilities after EM on one run; ``given`` and ``start`` are (n, C)."""
    prior = np.full(given.shape[1], 1 / given.shape[1])
    target = start
    for _ in range(steps):
        means = target.T @ h
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        joint = prior * np.exp(h @ means.T / temperature)
        proba = joint / joint.sum(axis=1, keepdims=True)
        prior = proba[pool].mean(axis=0)
        target = weight * given + proba * pool[:, None]
    return proba


class TestFitView:
    @pytest.mark.parametrize("weight", [0.5, 3.0])
    @pytest.mark.parametrize("steps", [1, 2, 4])
    def test_equals_em_in_numpy(self, problem, h, steps, weight):
        method = EM(steps=steps, temperature=0.5, given_weight=weight)
        given = problem.one_hot().double()
        found = (
            method.fit_view(problem, torch.tensor(h)).logits(torch.tensor(h)).softmax(-1).numpy()
        )
        for run in range(2):
            expected = em_in_numpy(
                h,
                given[run].numpy(),
                problem.pool[run].numpy(),
                given[run].numpy(),
                steps=steps,
                temperature=0.5,
                weight=weight,
            )
            np.testing.assert_allclose(found[run], expected, rtol=1e-6)

    def test_class_without_labels_gets_no_node_and_does_not_change_the_others(self, problem, h):
        def proba(problem):
            mixture = EM(steps=3).fit_view(problem, torch.tensor(h))
            logits = mixture.logits(torch.tensor(h))
            return logits.softmax(-1)

        wider = proba(replace(problem, num_classes=3))
        assert wider[..., 2].max() < 1e-30
        torch.testing.assert_close(wider[..., :2], proba(problem))

    @pytest.mark.parametrize("pool", [1, 2])
    def test_share_of_a_class_is_at_least_a_millionth(self, pool):
        """All pool nodes are equal to the label of class 0 and far from that of class 1."""
        problem = ring_problem([0, 1] + [-1] * pool)
        h = torch.tensor([[1.0, 0], [0, 1]] + [[1, 0]] * pool, dtype=torch.float64)
        logits = EM(steps=2, temperature=0.01).fit_view(problem, h).logits(h)
        assert logits[0, 2].tolist() == pytest.approx([100, np.log(1e-6)])

    def test_without_a_pool_shares_are_equal(self):
        problem = ring_problem([0, 1, 0])
        h = torch.tensor([[1.0, 0], [0, 1], [1, 0]], dtype=torch.float64)
        mixture = EM(steps=2, temperature=0.5).fit_view(problem, h)
        logits = mixture.logits(h)
        assert logits[0, 0].tolist() == pytest.approx([2 + np.log(1e-6), np.log(1e-6)])


class TestEdgeAgreement:
    def test_is_the_share_of_edges_within_a_class(self, problem):
        logits = torch.zeros(2, 6, 2)
        logits[0, :3, 0], logits[0, 3:, 1] = 1, 1  # one of five edges is between classes
        logits[1, ::2, 0], logits[1, 1::2, 1] = 1, 1  # all are
        assert edge_agreement(logits, problem.adjacency).tolist() == pytest.approx([4 / 5, 0])

    def test_counts_every_stored_entry(self):
        """A matrix with one entry, between nodes 0 and 1; an empty one has no agreement."""
        logits = torch.tensor([[[1.0, 0], [1, 0]], [[1, 0], [0, 1]]])
        one, none = (sp.csr_array(np.array([[0, value], [0, 0]])) for value in (1.0, 0.0))
        assert edge_agreement(logits, SparseMatrix.from_scipy(one)).tolist() == [1, 0]
        none.eliminate_zeros()
        assert edge_agreement(logits, SparseMatrix.from_scipy(none)).tolist() == [0, 0]

    def test_is_the_log_prior_of_a_view(self, problem, h):
        view = torch.tensor(h).float()
        method = EM(agreement_weight=7.0)
        found = method.predict_view(problem, view, (0, 0))
        logits = method.fit_view(problem, view).logits(view)
        expected = 7 * edge_agreement(logits, problem.adjacency)
        torch.testing.assert_close(found.log_prior, expected)

    def test_view_with_more_agreement_dominates_its_filter(self):
        follows = F.normalize(
            torch.tensor([[1.0, 0], [1, 0], [1, 0.1], [0, 1], [0, 1], [0, 1]]), dim=-1
        )
        crosses = follows[torch.tensor([0, 3, 1, 4, 2, 5])]
        problem = chain([[0, -1, -1, -1, -1, 1]] * 2)

        def pooled(*filters):
            problem.graph._shared["views"] = [list(views) for views in filters]
            return EM().predict_nodes(problem).log_proba

        torch.testing.assert_close(pooled([follows, crosses]), pooled([follows]), atol=1e-3, rtol=0)
        # Between filters, agreement is not compared: both have the same weight.
        mean = (pooled([follows]) + pooled([crosses])) / 2
        torch.testing.assert_close(pooled([follows], [crosses]), mean)


def test_accuracy_on_biased_labels_is_higher_than_of_a_gcn():
    graph = load("digits")
    split = sample(graph, "ppr-s", per_class=4, runs=2)
    test = split.test(graph)

    def accuracy(method):
        results = method.fit_runs(graph, split)
        hits = [(r.labels == graph.labels)[t].mean() for r, t in zip(results, test, strict=True)]
        return np.mean(hits)

    assert accuracy(EM()) > accuracy(GCN(epochs=60)) + 0.05


def test_is_applied_to_other_graphs_without_a_new_fit(graph):
    """The same nodes have the same probabilities; another order of nodes does not matter."""
    fitted = EM(steps=3).fit(graph)
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    other = graph.reorder(order).with_labels(np.full(graph.num_nodes, -1))
    np.testing.assert_allclose(fitted.predict_proba(other), fitted.proba_[order], atol=1e-5)
    grown = synthetic(150, 3, features=graph.num_features, seed=8)
    np.testing.assert_allclose(fitted.predict_proba(grown).sum(axis=1), 1, atol=1e-5)
