"""Majority, label propagation, MLP and APPNP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.methods import APPNP, GCN, MLP, LabelPropagation, Majority
from tests.methods.helpers import normalized, path


@pytest.fixture(scope="module")
def small() -> Graph:
    return synthetic(120, 3, features=8, labels_per_class=4, seed=1)


def test_majority_predicts_the_class_shares_of_the_labels():
    fitted = Majority().fit(path([0, 1, 1, -1, -1, -1]))
    assert fitted.labels_.tolist() == [0, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(fitted.proba_, np.tile([1 / 3, 2 / 3], (6, 1)), rtol=1e-6)


class TestLabelPropagation:
    def test_nearest_label_decides(self):
        fitted = LabelPropagation().fit(path([0, -1, -1, -1, -1, -1, 1]))
        assert fitted.labels_[:3].tolist() == [0, 0, 0]
        assert fitted.labels_[4:].tolist() == [1, 1, 1]
        np.testing.assert_allclose(fitted.proba_[3], 0.5, atol=1e-6)

    @pytest.mark.parametrize("alpha", [0.3, 0.8])
    def test_one_step_by_hand(self, alpha):
        """``F = α A Y + (1 - α) Y``, rows scaled to sum 1; the labels are next to each other."""
        given = np.array([[1.0, 0], [0, 1], [0, 0]])
        mixed = alpha * normalized(path([0, 1, -1]).adjacency) @ given + (1 - alpha) * given
        fitted = LabelPropagation(alpha=alpha, steps=1).fit(path([0, 1, -1]))
        np.testing.assert_allclose(
            fitted.proba_, mixed / mixed.sum(axis=1, keepdims=True), rtol=1e-5
        )

    def test_converges_to_the_solution_of_its_equation(self):
        graph = path([0, -1, -1, -1, 1, -1, 1])
        given = np.zeros((7, 2))
        given[0, 0] = given[4, 1] = given[6, 1] = 1
        for alpha in (0.5, 0.8):
            solution = np.linalg.solve(np.eye(7) - alpha * normalized(graph.adjacency), given)
            fitted = LabelPropagation(alpha=alpha, steps=200).fit(graph)
            expected = solution / solution.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(fitted.proba_, expected, atol=1e-4)

    def test_node_that_no_label_reaches_gets_the_class_shares(self):
        alone = Graph.from_edges([[0, 1], [1, 2]], np.eye(4, dtype=np.float32), [0, 0, 1, -1])
        proba = LabelPropagation().fit(alone).proba_
        np.testing.assert_allclose(proba[3], [2 / 3, 1 / 3], atol=1e-5)


def test_mlp_does_not_use_edges(small):
    empty = replace(small, adjacency=sp.csr_array((120, 120), dtype=np.float32))
    with_edges, without = (MLP(epochs=10, hidden=8).fit(g).proba_ for g in (small, empty))
    np.testing.assert_array_equal(with_edges, without)
    with_edges, without = (GCN(epochs=10, hidden=8).fit(g).proba_ for g in (small, empty))
    assert not np.allclose(with_edges, without)


def test_appnp_is_a_network_with_that_backbone(small):
    own = APPNP(epochs=10, hidden=8).fit(small).proba_
    same = GCN(backbone="appnp", epochs=10, hidden=8).fit(small).proba_
    np.testing.assert_array_equal(own, same)


@pytest.mark.parametrize("kind", [APPNP, MLP])
def test_other_backbones_are_refused(kind, small):
    with pytest.raises(InputError, match=f"backbone must be one of {kind.name}, got 'gcn'"):
        kind(backbone="gcn").fit(small)
