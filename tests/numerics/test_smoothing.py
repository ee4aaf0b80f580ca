"""Smoothed features against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.numerics.normalize import normalize_adjacency, unit_rows
from dcgst.numerics.smoothing import (
    FILTERS,
    SHAPES,
    Filter,
    SmoothedFeatures,
    smoothed_components,
    views_of,
    weight_columns,
)
from dcgst.numerics.sparse import SparseMatrix


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
    view = SmoothedFeatures(features, operator, Filter(0.1, 4), 3, iterations=50).view(3, whitening)
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


def test_every_filter_has_unit_rows_of_weighted_and_plain_features(graph, operator):
    x = torch.tensor(graph.features)
    views = views_of(x, operator)
    assert len(views) == len(FILTERS)
    for of_filter, smooth in zip(views, FILTERS, strict=True):
        assert len(of_filter) == 2 * len(SHAPES)
        for view in of_filter:
            torch.testing.assert_close(view.norm(dim=1), torch.ones(60))
        most = max(dimensions for dimensions, _ in SHAPES)
        plain = SmoothedFeatures(unit_rows(x), operator, smooth, most).view(*SHAPES[0])
        torch.testing.assert_close(of_filter[len(SHAPES)], unit_rows(plain))
