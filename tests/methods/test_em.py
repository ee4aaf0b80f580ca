"""Seeded EM: its steps against NumPy, its views, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import load, synthetic
from dcgst.engine.smoothing import SmoothedFeatures
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.methods import EM, GCN
from dcgst.methods.em import informative
from dcgst.methods.outcome import Problem
from dcgst.nn.gcn import symmetric_normalised
from dcgst.splits import sample


@pytest.fixture
def problem() -> Problem:
    """Two runs on six nodes in a row; the first two nodes are labeled, the last is validation."""
    chain = sp.diags_array([np.ones(5), np.ones(5)], offsets=[-1, 1]).tocsr()
    labels = torch.tensor([[0, 1, -1, -1, -1, -1], [1, 0, -1, -1, -1, -1]])
    val = torch.tensor([[-1, -1, -1, -1, -1, 1], [-1, -1, -1, -1, -1, 0]])
    pool = (labels < 0) & (val < 0)
    adjacency = SparseMatrix.from_scipy(sp.csr_array(chain))
    return Problem(torch.eye(6), adjacency, labels, val, pool, (0, 1), 2)


def test_two_steps_worked_out_in_numpy(problem, rng):
    h = rng.normal(size=(6, 3))
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    method = EM(steps=2, temperature=0.5, given_weight=3.0)
    actual = method.expectation_maximisation(torch.tensor(h), problem)
    for run in range(2):
        one_hot = np.eye(2)[[run, 1 - run]]
        means = 3 * one_hot.T @ h[:2]
        prior = np.full(2, 0.5)
        for _ in range(2):
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            weight = prior * np.exp(h @ means.T / 0.5)
            proba = weight / weight.sum(axis=1, keepdims=True)
            prior = proba[2:5].mean(axis=0)
            means = 3 * one_hot.T @ h[:2] + proba[2:5].T @ h[2:5]
        np.testing.assert_allclose(actual[run].numpy(), proba, rtol=1e-6)


def test_a_view_is_scored_by_validation_and_by_neighbours(problem):
    proba = torch.full((2, 6, 2), 0.5)
    proba[:, :3, 0], proba[:, :3, 1] = 0.9, 0.1  # nodes 0-2 class 0, nodes 3-5 class 0 by tie
    proba[:, 3:, 0], proba[:, 3:, 1] = 0.2, 0.8
    score = EM(edge_weight=10.0).score_view(proba, problem)
    expected = [np.log(0.8) + 10 * 4 / 5, np.log(0.2) + 10 * 4 / 5]
    assert score.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_smoothed_features_are_those_of_the_dense_decomposition(sparse, rng):
    graph = synthetic(60, 2, features=2, degree=4, labels_per_class=2)
    x = rng.random((60, 20)) * (rng.random((60, 20)) < 0.3)
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    dense = np.zeros((60, 60))
    dense[operator.pattern.rows, operator.pattern.indices] = operator.values
    z = x
    for _ in range(3):
        z = 0.9 * dense @ z + 0.1 * x
    left, values, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    expected = left[:, :4] * values[:4] ** 0.7
    features = SparseMatrix.from_scipy(sp.csr_array(x)) if sparse else torch.tensor(x).float()
    actual = SmoothedFeatures(features, operator, 4).view(3, 4, 0.3).numpy()
    np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, atol=1e-4)


def test_biased_labels_do_it_little_harm_where_classes_are_clusters():
    graph = load("digits")
    split = sample(graph, "ppr-s", per_class=4, runs=3)
    test = split.test(graph)

    def mean_accuracy(method):
        results = method.fit_runs(graph, split)
        right = [(r.labels == graph.labels)[t].mean() for r, t in zip(results, test, strict=True)]
        return np.mean(right)

    assert mean_accuracy(EM()) > mean_accuracy(GCN()) + 0.03


def test_constant_columns_and_rare_words(rng):
    dense = np.array([[1, 5], [3, 5]], dtype=np.float32)
    np.testing.assert_array_equal(informative(dense), [[-1, 0], [1, 0]])
    words = sp.csr_array(np.array([[1, 1], [1, 0], [1, 0]], dtype=np.float32))
    common, rare = informative(words).toarray()[0]
    assert common == pytest.approx(1)
    assert rare == pytest.approx(1 + np.log(4 / 2))


def test_it_has_no_model_for_other_graphs(shifted):
    fitted = EM().fit(shifted)
    with pytest.raises(InputError, match="em learns no model"):
        fitted.predict(synthetic(100, 3, features=12))
