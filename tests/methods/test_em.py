"""Seeded EM: its steps against NumPy, its views, and what it is good for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import load, synthetic
from dcgst.engine.smoothing import Filter, SmoothedFeatures
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.methods import EM, GCN
from dcgst.methods.em import agreement, informative, one_hot
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
    actual = method.fit_view(torch.tensor(h), one_hot(problem).double(), problem).softmax(-1)
    for run in range(2):
        given = np.eye(2)[[run, 1 - run]]
        means = 3 * given.T @ h[:2]
        prior = np.full(2, 0.5)
        for _ in range(2):
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            weight = prior * np.exp(h @ means.T / 0.5)
            proba = weight / weight.sum(axis=1, keepdims=True)
            prior = proba[2:5].mean(axis=0)
            means = 3 * given.T @ h[:2] + proba[2:5].T @ h[2:5]
        np.testing.assert_allclose(actual[run].numpy(), proba, rtol=1e-6)


def test_from_a_models_probabilities_it_goes_on_from_there(problem, rng):
    """Started where it ended, one more step leads where it would have gone."""
    h = torch.nn.functional.normalize(torch.tensor(rng.normal(size=(6, 3))), dim=-1)
    given = one_hot(problem).double()
    method = EM(steps=1, given_weight=3.0)
    first = method.fit_view(h, given, problem).softmax(-1)
    second = method.fit_view(h, 3 * given + first * problem.pool[..., None], problem).softmax(-1)
    both = EM(steps=2, given_weight=3.0).fit_view(h, given, problem).softmax(-1)
    # but for the class prior, which begins uniform again
    assert (second.argmax(-1) == both.argmax(-1)).all()


def test_agreement_is_the_share_of_edges_within_a_class(problem):
    logits = torch.zeros(2, 6, 2)
    logits[0, :3, 0], logits[0, 3:, 1] = 1, 1  # one of five edges joins different classes
    logits[1, ::2, 0], logits[1, 1::2, 1] = 1, 1  # all do
    assert agreement(logits, problem.adjacency).tolist() == pytest.approx([4 / 5, 0])


def test_views_that_agree_with_the_graph_weigh_more(problem):
    """Of two views smoothed alike, the one whose classes follow the edges is believed."""
    follows = torch.nn.functional.normalize(
        torch.tensor([[1.0, 0], [1, 0], [1, 0.1], [0, 1], [0, 1], [0, 1]]), dim=-1
    )
    crosses = follows[torch.tensor([0, 3, 1, 4, 2, 5])]
    blind = replace(problem, val_labels=torch.full_like(problem.val_labels, -1))
    labels = torch.tensor([[0, -1, -1, -1, -1, 1]] * 2)
    blind = replace(blind, labels=labels, pool=labels < 0)
    both = EM(agreement_weight=100.0).believe([[follows, crosses]], one_hot(blind), blind)
    alone = EM().believe([[follows]], one_hot(blind), blind)
    torch.testing.assert_close(both.log_proba, alone.log_proba, atol=1e-3, rtol=0)


@pytest.mark.parametrize("sparse", [True, False])
def test_smoothed_features_are_those_of_the_dense_decomposition(sparse, rng):
    graph = synthetic(60, 2, features=2, degree=4, labels_per_class=2)
    x = rng.random((60, 20)) * (rng.random((60, 20)) < 0.3)
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    dense = np.zeros((60, 60))
    dense[operator.pattern.rows, operator.pattern.indices] = operator.values
    z, reach = x, np.ones((60, 1))
    for _ in range(3):
        z = 0.9 * dense @ z + 0.1 * x
        reach = 0.9 * dense @ reach + 0.1
    z = z / reach  # each row a weighted mean of features
    left, values, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    expected = left[:, :4] * values[:4] ** 0.7
    features = SparseMatrix.from_scipy(sp.csr_array(x)) if sparse else torch.tensor(x).float()
    actual = SmoothedFeatures(features, operator, Filter(0.1, 3), 4).view(4, 0.3).numpy()
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


def test_constant_columns_and_rare_words():
    dense = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    assert informative(dense).tolist() == [[-1, 0], [1, 0]]
    words = SparseMatrix.from_scipy(sp.csr_array(np.array([[1.0, 1], [1, 0], [1, 0]])))
    common, rare = informative(words).values[:2].tolist()
    assert common == pytest.approx(1)
    assert rare == pytest.approx(1 + np.log(4 / 2))


def test_a_class_without_labels_gets_no_nodes():
    """It would gather whatever is far from all others."""
    graph = load("digits")
    wider = replace(graph, class_names=(*graph.class_names, "empty"))
    split = sample(graph, "ppr-s", per_class=4, runs=1)
    plain, fitted = EM().fit(graph, split), EM().fit(wider, split)
    assert not (fitted.labels_ == 10).any()
    assert (fitted.labels_ == plain.labels_).mean() > 0.98


def test_it_has_no_model_for_other_graphs(shifted):
    fitted = EM().fit(shifted)
    with pytest.raises(InputError, match="em learns no model"):
        fitted.predict(synthetic(100, 3, features=12))
