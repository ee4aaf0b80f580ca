"""Smoothed features against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features import graph_features
from dcgst.features.columns import (
    leading_directions,
    times,
    transposed_times,
    unit_rows,
    weight_columns,
)
from dcgst.features.components import smoothed_components
from dcgst.features.graph_features import GraphFeatures
from dcgst.features.matrix import Neighbors
from dcgst.features.smoothing import FILTERS, SHAPES, Basis, Filter
from dcgst.features.sparse import SparseMatrix, normalize_adjacency


@pytest.fixture(scope="module")
def graph():
    return synthetic(60, 2, features=6, degree=4, labels_per_class=2)


@pytest.fixture(scope="module")
def operator(graph):
    return normalize_adjacency(SparseMatrix.from_scipy(graph.adjacency))


def smoothed_by_numpy(operator, x, teleport, hops):
    matrix, start = operator.to_scipy().toarray(), x
    for _ in range(hops):
        x = (1 - teleport) * matrix @ x + teleport * start
    return x


def components_by_numpy(operator, x, teleport, hops):
    """Singular vectors and values of the averaged and centered smoothed features."""
    x = np.asarray(x, dtype=np.float64)
    ones = np.ones((len(x), 1))
    z = smoothed_by_numpy(operator, x, teleport, hops)
    z = z / smoothed_by_numpy(operator, ones, teleport, hops)
    left, values, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    return left, values


def test_one_step_of_a_filter_by_hand():
    pair = SparseMatrix.from_scipy(sp.csr_array([[0.5, 0.5], [0.5, 0.5]]))
    smoothed = Filter(0.2, 1)(pair, torch.tensor([[1.0], [0.0]]))
    assert smoothed.flatten().tolist() == pytest.approx([0.6, 0.4])


def test_a_filter_without_hops_changes_nothing(operator):
    x = torch.rand(60, 2)
    assert torch.equal(Filter(0.1, 0)(operator, x), x)


def test_many_steps_of_a_filter_approach_personalized_pagerank(operator):
    x = torch.rand(60, 2, generator=torch.Generator().manual_seed(0))
    matrix = torch.tensor(operator.to_scipy().toarray())
    exact = 0.3 * torch.linalg.solve(torch.eye(60) - 0.7 * matrix, x)
    torch.testing.assert_close(Filter(0.3, 100)(operator, x), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("whitening", [0.0, 0.3, 1.0])
def test_views_are_singular_vectors_times_a_power_of_their_values(graph, operator, kind, whitening):
    x = torch.tensor(graph.features)
    features = x if kind == "dense" else SparseMatrix.from_scipy(sp.csr_array(x.numpy()))
    source, by = GraphFeatures(graph.features, Neighbors(graph.adjacency)), Filter(0.1, 4)
    z = source.center(source.means(times(features, source.directions(lambda _: features)), by))
    basis = Basis.fit([(z, source.connected)], 3)
    view = basis.view(basis.scores(z), 3, whitening)
    left, values = components_by_numpy(operator, x, 0.1, 4)
    expected = left[:, :3] * values[:3] ** (1 - whitening)
    # The sign of a singular vector is arbitrary: compare inner products.
    np.testing.assert_allclose(view @ view.T, expected @ expected.T, atol=1e-3)


def test_components_of_a_graph_have_the_requested_number(graph, operator):
    components = smoothed_components(graph, hops=2, dimensions=3)
    _, values = components_by_numpy(operator, graph.features, 0.1, 2)
    assert components.shape == (60, 3)
    scale = 2.0 ** -np.ceil(np.log2(np.abs(graph.features).max()))  # largest magnitude below one
    np.testing.assert_allclose(components.norm(dim=0), scale * values[:3], rtol=1e-3)
    assert smoothed_components(graph, hops=2).shape == (60, 6)  # no more than features


def test_dense_columns_are_standardized_and_constant_ones_are_zero():
    x = torch.tensor([[1.0, 10.0, 5.0], [3.0, 30.0, 5.0]])
    torch.testing.assert_close(
        weight_columns(x), torch.tensor([[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]])
    )


def test_sparse_columns_are_weighted_by_inverse_document_frequency():
    x = SparseMatrix.from_scipy(sp.csr_array([[2.0, 1.0], [1.0, 0.0], [1.0, 0.0]]))
    weighted = weight_columns(x).to_scipy().toarray()
    rare = np.log(4 / 2) + 1
    np.testing.assert_allclose(weighted, [[2, rare], [1, 0], [1, 0]], rtol=1e-6)


def test_every_filter_has_unit_rows_of_weighted_and_plain_features(graph):
    source = GraphFeatures(graph.features, Neighbors(graph.adjacency))
    for number, by in enumerate(FILTERS):
        views = source.views(slice(None), number)
        assert len(views) == 2 * len(SHAPES)
        for view in views:
            torch.testing.assert_close(view.norm(dim=1), torch.ones(60))
        z = source.means(unit_rows(torch.tensor(graph.features)), by)
        basis = Basis.fit([(z, source.connected)], 128)
        plain = unit_rows(basis.view(basis.scores(z), *SHAPES[0]))
        # The sign of a component is arbitrary: compare inner products.
        found = views[len(SHAPES)]
        torch.testing.assert_close(found @ found.T, plain @ plain.T, atol=1e-3, rtol=1e-3)


def test_views_of_another_graph_are_computed_as_on_the_first(graph):
    first = GraphFeatures(graph.features, Neighbors(graph.adjacency))
    again = GraphFeatures(graph.features, Neighbors(graph.adjacency), learned=first.learned)
    some = slice(10, 30)
    for number in range(len(FILTERS)):
        for found, expected in zip(
            again.views(some, number), first.views(some, number), strict=True
        ):
            torch.testing.assert_close(found, expected)
    for name, block in again.propagated(some).items():
        torch.testing.assert_close(block, first.propagated(some)[name])


def test_weights_and_directions_are_those_of_the_first_graph(graph, monkeypatch):
    monkeypatch.setattr(graph_features, "MOST_COLUMNS", 4)
    neighbors = Neighbors(graph.adjacency)
    first = GraphFeatures(graph.features, neighbors)
    reversed_columns = np.ascontiguousarray(graph.features[:, ::-1])
    other = GraphFeatures(reversed_columns, neighbors, learned=first.learned)
    assert torch.equal(other.weights.factor, first.weights.factor)
    for own, expected in zip(other.view_directions, first.view_directions, strict=True):
        assert torch.equal(own, expected)
        assert own.shape == (6, 4)


def test_the_transpose_of_smoothing(graph, rng):
    source, by = GraphFeatures(graph.features, Neighbors(graph.adjacency)), Filter(0.1, 3)
    left, right = (torch.tensor(rng.normal(size=(60, 2)), dtype=torch.float32) for _ in range(2))
    forward = left.T @ source.means(right, by)
    back = source.transposed_means(left, by).T @ right
    torch.testing.assert_close(forward, back, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_wide_features_are_reduced_to_the_leading_directions(
    graph, operator, rng, kind, monkeypatch
):
    """Ten columns carry the variance of forty; eight directions explain nearly all of it."""
    monkeypatch.setattr(graph_features, "MOST_COLUMNS", 20)
    x = rng.normal(size=(60, 10)) * 2.0 ** -np.arange(10) @ rng.normal(size=(10, 40))
    x = torch.tensor(x + 1e-3 * rng.normal(size=(60, 40)), dtype=torch.float32)
    features = x if kind == "dense" else SparseMatrix.from_scipy(sp.csr_array(x.numpy()))
    source, by = GraphFeatures(x.numpy(), Neighbors(graph.adjacency)), Filter(0.1, 4)
    reduced = times(features, source.directions(lambda _: features, by))
    assert reduced.shape == (60, 20)
    z = source.means(reduced, by)
    basis = Basis.fit([(z, source.connected)], 8)
    view = basis.view(basis.scores(z), 8, 0.0)
    left, values = components_by_numpy(operator, x, 0.1, 4)
    expected = left[:, :8] * values[:8]
    difference = np.linalg.norm((view @ view.T).numpy() - expected @ expected.T)
    assert difference < 0.01 * np.linalg.norm(expected @ expected.T)


def test_directions_are_the_right_singular_vectors(rng):
    x = torch.tensor(rng.normal(size=(50, 12)) * 0.5 ** np.arange(12), dtype=torch.float32)
    found = leading_directions(x, 3, iterations=30)
    _, _, right = np.linalg.svd(x.numpy(), full_matrices=False)
    expected = right[:3].T @ right[:3]
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-3)


def test_products_with_sparse_and_dense_features(rng):
    x = torch.tensor(rng.normal(size=(5, 4)), dtype=torch.float32)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()))
    right, left = torch.rand(4, 2), torch.rand(5, 2)
    torch.testing.assert_close(times(sparse, right), x @ right)
    torch.testing.assert_close(transposed_times(sparse, left), x.T @ left)
    torch.testing.assert_close(times(x, right), x @ right)
    torch.testing.assert_close(transposed_times(x, left), x.T @ left)


def test_a_basis_learned_in_parts_is_the_same(rng):
    z = torch.tensor(rng.normal(size=(50, 5)), dtype=torch.float32)
    ones = torch.ones(50, 1)
    whole = Basis.fit([(z, ones)], 3)
    parts = Basis.fit([(z[:20], ones[:20]), (z[20:], ones[20:])], 3)
    for name in ("mean", "values", "right"):
        torch.testing.assert_close(getattr(whole, name), getattr(parts, name))


def test_isolated_nodes_do_not_make_components():
    adjacency = sp.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(4, 4), dtype=np.float32)
    z = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 50.0], [7.0, 0.0]])
    source = GraphFeatures(z.numpy(), Neighbors(adjacency))
    assert source.connected.flatten().tolist() == [1, 1, 0, 0]
    found = Basis.fit([(z, source.connected)], 2)
    assert found.mean.tolist() == [2, 0]
    assert found.values.tolist() == pytest.approx([2**0.5, 0], abs=1e-6)
    left = found.scores(z)
    assert abs(left[:, 0]).tolist() == pytest.approx([2**-0.5, 2**-0.5, 0, 5 / 2**0.5])
    assert (left[:, 1] == 0).all(), "its value is zero"
    alone = GraphFeatures(z[:3].numpy(), Neighbors(sp.csr_array((3, 3), dtype=np.float32)))
    assert alone.connected.sum() == 3
