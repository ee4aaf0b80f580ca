"""The plain methods that others must beat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.engine.sparse import SparseMatrix
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.methods import APPNP, GCN, MLP, CorrectAndSmooth, LabelPropagation, Majority
from dcgst.nn.gcn import symmetric_normalised
from dcgst.splits import Split


def path(labels) -> Graph:
    """Nodes in a row, -1 where there is no label."""
    n = len(labels)
    steps = np.stack([np.arange(n - 1), np.arange(1, n)])
    return Graph.from_edges(steps, np.eye(n, dtype=np.float32), labels)


def test_the_majority_rules():
    fitted = Majority().fit(path([0, 1, 1, -1, -1, -1]))
    assert fitted.labels_.tolist() == [0, 1, 1, 1, 1, 1]
    np.testing.assert_allclose(fitted.proba_, np.tile([1 / 3, 2 / 3], (6, 1)), rtol=1e-6)


def test_labels_flow_to_the_nearer_side():
    fitted = LabelPropagation().fit(path([0, -1, -1, -1, -1, -1, 1]))
    assert fitted.labels_.tolist()[:3] == [0, 0, 0]
    assert fitted.labels_.tolist()[4:] == [1, 1, 1]
    np.testing.assert_allclose(fitted.proba_[3], 0.5, atol=1e-6)


def test_propagation_ends_at_the_solution_of_its_equation():
    graph = path([0, -1, -1, -1, 1])
    loops = graph.adjacency.toarray() + np.eye(5)
    scale = loops.sum(axis=1) ** -0.5
    operator = loops * scale[:, None] * scale
    given = np.zeros((5, 2))
    given[0, 0] = given[4, 1] = 1
    solution = 0.2 * np.linalg.solve(np.eye(5) - 0.8 * operator, given)
    expected = solution / solution.sum(axis=1, keepdims=True)
    fitted = LabelPropagation(alpha=0.8, steps=200).fit(graph)
    np.testing.assert_allclose(fitted.proba_, expected, atol=1e-4)


def test_where_no_label_arrives_the_shares_decide():
    edges = [[0, 1], [1, 2]]
    alone = Graph.from_edges(edges, np.eye(4, dtype=np.float32), [0, 0, 1, -1])
    np.testing.assert_allclose(LabelPropagation().fit(alone).proba_[3], [2 / 3, 1 / 3], atol=1e-5)


def test_an_mlp_does_not_see_the_edges():
    graph = synthetic(120, 3, features=8, labels_per_class=4, seed=1)
    empty = replace(graph, adjacency=sp.csr_array((120, 120), dtype=np.float32))
    fitted, blind = (MLP(epochs=20, hidden=8).fit(g).proba_ for g in (graph, empty))
    np.testing.assert_array_equal(fitted, blind)
    seeing, unseeing = (GCN(epochs=20, hidden=8).fit(g).proba_ for g in (graph, empty))
    assert not np.allclose(seeing, unseeing)


def test_appnp_is_its_backbone():
    graph = synthetic(120, 3, features=8, labels_per_class=4, seed=1)
    own = APPNP(epochs=20, hidden=8).fit(graph).proba_
    np.testing.assert_array_equal(own, GCN(backbone="appnp", epochs=20, hidden=8).fit(graph).proba_)
    with pytest.raises(InputError, match="backbone must be one of appnp, got 'gcn'"):
        APPNP(backbone="gcn").fit(graph)


def test_correct_and_smooth_adds_what_the_edges_know():
    """Features say nothing here, edges all."""
    rng = np.random.default_rng(0)
    graph = synthetic(300, 3, features=4, homophily=0.95, labels_per_class=8, shift=0.0, seed=3)
    noise = replace(graph, features=rng.normal(size=(300, 4)).astype(np.float32))
    settings = {"epochs": 50, "hidden": 16}
    plain = MLP(**settings).fit(noise).score(noise)
    assert CorrectAndSmooth(**settings).fit(noise).score(noise) > plain + 0.2


def test_errors_are_corrected_to_the_size_they_have_at_their_source():
    graph = path([0, 1, -1])
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    proba = torch.full((1, 3, 2), 0.5)
    given = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    corrected = CorrectAndSmooth().correct(proba, given, operator)
    # Both labeled nodes are wrong by 1 in all; the third is moved as much, towards its neighbour's.
    moved = (corrected - proba)[0, 2]
    assert float(moved.abs().sum()) == pytest.approx(1, abs=1e-4)
    assert float(moved[1]) == pytest.approx(0.5, abs=1e-4)


def test_smoothing_starts_from_the_given_labels():
    """One step with half from the neighbours, by hand."""
    graph = path([0, 1, -1])
    operator = symmetric_normalised(SparseMatrix.from_scipy(graph.adjacency))
    given = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    corrected = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.8, 0.2]]])  # wrong where labels are known
    found = CorrectAndSmooth(smooth_alpha=0.5, steps=1).smooth(corrected, given, operator)
    start = np.array([[1, 0], [0, 1], [0.8, 0.2]])
    degree = np.array([2, 3, 2])
    joined = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    expected = 0.5 * start + 0.5 * (joined / np.sqrt(np.outer(degree, degree))) @ start
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-5)


def test_results_are_ones_own():
    fitted = Majority().fit(path([0, 1, 1, -1]))
    fitted.proba_[0, 0] = 9
    assert fitted.proba_[1, 0] < 1


def test_correct_and_smooth_has_no_model_for_other_graphs():
    graph = synthetic(120, 3, features=8, labels_per_class=4, seed=1)
    other = synthetic(120, 3, features=8, labels_per_class=4, seed=2)
    fitted = CorrectAndSmooth(epochs=5, hidden=8).fit(graph, Split.known_labels(graph))
    with pytest.raises(InputError, match="cs learns no model"):
        fitted.predict(other)
