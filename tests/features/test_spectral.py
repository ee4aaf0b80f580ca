"""Spectral features against NumPy's eigenvectors."""

from __future__ import annotations

import numpy as np

from dcgst.datasets import synthetic
from dcgst.features.components import spectral_features
from dcgst.features.sparse import normalize_scipy
from dcgst.graph import Graph


def test_spectral_features_span_the_leading_eigenvectors():
    graph = synthetic(80, 2, features=2, degree=6, labels_per_class=2)
    features = spectral_features(graph.adjacency, 3, iterations=300)
    values, vectors = np.linalg.eigh(normalize_scipy(graph.adjacency).toarray())
    expected = vectors[:, ::-1][:, :3] * values[::-1][:3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, atol=1e-2)


def test_rows_have_length_one_and_isolated_nodes_have_zeros():
    graph = Graph.from_edges([[0, 1], [1, 2]], np.eye(5))
    features = spectral_features(graph.adjacency, 2)
    assert features.shape == (5, 2)
    assert (features[3:] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(features[:3], axis=1), 1, rtol=1e-5)


def test_the_same_seed_gives_the_same_features():
    graph = synthetic(80, 2, features=2, labels_per_class=2)
    first, second, other = (spectral_features(graph.adjacency, 3, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
