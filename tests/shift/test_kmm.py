"""Kernel mean matching: the sparse Gram matrix, the solver, and the effect of the weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from dcgst.datasets import synthetic
from dcgst.shift.kmm import GAMMAS, Gram, _largest_curvature, kmm_weights
from dcgst.shift.ppr import sparse_ppr_rows


def sparse(rng, rows, columns=30, density=0.2):
    values = rng.random((rows, columns)) * (rng.random((rows, columns)) < density)
    return sp.csr_array(values)


def dense_gram(left, right):
    differences = left.toarray()[:, None] - right.toarray()[None]
    squares = (differences**2).sum(axis=2)
    return np.mean([np.exp(-gamma * squares) for gamma in GAMMAS], axis=0)


def test_the_gram_matrix_is_exact(rng):
    left, right = sparse(rng, 12), sparse(rng, 9)
    weights = rng.random(9)
    np.testing.assert_allclose(Gram(left, right) @ weights, dense_gram(left, right) @ weights)


def test_a_kernel_value_by_hand():
    """The squared distance of (1, 0) and (0, 2) is 5; kernel widths are 1, 0.1 and 0.001."""
    gram = Gram(sp.csr_array([[1.0, 0]]), sp.csr_array([[0, 2.0]]))
    expected = (np.exp(-5) + np.exp(-0.5) + np.exp(-0.005)) / 3
    assert gram @ np.ones(1) == pytest.approx(expected)


@pytest.mark.parametrize("least", [0.0, 0.2, 0.5])
def test_weights_minimize_the_objective_within_their_bounds(rng, least):
    source, target = sparse(rng, 10), sparse(rng, 15, density=0.4)
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    gram = dense_gram(source, source)
    linear = 10 / 15 * dense_gram(source, target).sum(axis=1)

    def objective(w):
        return w @ gram @ w / 2 - linear @ w

    sums = [
        {"type": "eq", "fun": lambda w, g=g: w[groups == g].sum() - (groups == g).sum()}
        for g in range(3)
    ]
    best = minimize(
        objective, np.ones(10), bounds=[(least, None)] * 10, constraints=sums, tol=1e-12
    )
    found = kmm_weights(source, target, groups, least=least, steps=20_000)
    assert found.min() >= least - 1e-12
    for group in range(3):
        assert found[groups == group].sum() == pytest.approx((groups == group).sum())
    assert objective(found) == pytest.approx(best.fun, abs=1e-6)


def test_the_smallest_weight_is_a_fifth_by_default():
    source = sp.csr_array([[1.0, 0], [0, 9.0]])
    weights = kmm_weights(source, source[:1], np.array([0, 0]))
    np.testing.assert_allclose(weights, [1.8, 0.2], atol=1e-6)


def test_the_solver_reaches_the_minimum_for_pagerank_rows():
    """PageRank rows are similar, which makes the problem ill-conditioned."""
    graph = synthetic(400, 3, features=2, degree=4, labels_per_class=2, seed=5)
    nodes = np.random.default_rng(0).permutation(400)
    rows = sparse_ppr_rows(graph.adjacency, nodes[:120], 0.1)
    source, target = rows[:60], rows[60:]
    groups = np.arange(60) % 3
    found = kmm_weights(source, target, groups)
    early = kmm_weights(source, target, groups, steps=150)
    np.testing.assert_allclose(early, found, atol=1e-5)
    gradient = dense_gram(source, source) @ found - dense_gram(source, target).sum(axis=1)
    for group in range(3):  # optimality: equal gradients except at the bound
        own = gradient[groups == group]
        free = found[groups == group] > 0.2 + 1e-6
        assert np.ptp(own[free]) < 1e-5
        assert (own[~free] >= own[free].min() - 1e-5).all()


def test_the_curvature_is_that_of_directions_that_keep_the_sum_of_each_group(rng):
    rows, groups = sparse(rng, 9), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    same = groups[:, None] == groups
    keeps_sums = np.eye(9) - same / same.sum(axis=1)
    largest = np.linalg.eigvalsh(keeps_sums @ dense_gram(rows, rows) @ keeps_sums).max()
    members = [np.flatnonzero(groups == group) for group in range(3)]
    found = _largest_curvature(Gram(rows, rows), members, 9)
    assert found == pytest.approx(1.3 * largest, rel=1e-3)


def test_repeated_rows_of_the_target_change_nothing(rng):
    source, target = sparse(rng, 8), sparse(rng, 1, density=0.5)
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    once = kmm_weights(source, target, groups)
    twice = kmm_weights(source, sp.csr_array(sp.vstack([target, target])), groups)
    np.testing.assert_allclose(once, twice, atol=1e-6)


def test_rows_like_the_target_have_more_weight():
    near, far = np.array([1.0, 0, 0]), np.array([0, 0, 3.0])
    source = sp.csr_array(np.stack([near, far, near, far]))
    target = sp.csr_array(np.stack([near] * 5))
    weights = kmm_weights(source, target, np.array([0, 0, 1, 1]), least=0.1)
    np.testing.assert_allclose(weights, [1.9, 0.1, 1.9, 0.1], atol=1e-3)


def test_weights_reduce_the_distance_between_the_means(rng):
    source, target = sparse(rng, 20, density=0.1), sparse(rng, 20, density=0.4)

    def distance(w):
        inside = dense_gram(source, source)
        across = dense_gram(source, target)
        return w @ inside @ w / 400 - 2 * w @ across.sum(axis=1) / 400

    weights = kmm_weights(source, target, np.zeros(20, dtype=int))
    assert distance(weights) < distance(np.ones(20))


def test_the_only_member_of_a_group_has_weight_one(rng):
    weights = kmm_weights(sparse(rng, 3), sparse(rng, 4), np.array([0, 1, 2]))
    np.testing.assert_allclose(weights, 1)
