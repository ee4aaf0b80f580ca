"""Directed edges: sources and targets are told apart."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import Columns, Ensemble, fit, open_run, read
from dcgst.tables.edges import HALF_DEGREE, add_directions

COUNT = 200


@pytest.fixture
def tables(tmp_path):
    """Shops are paid by customers (class a) or pay suppliers (class b); all look the same."""
    rng = np.random.default_rng(0)
    nodes = ["id,kind,label"]
    for i in range(COUNT):
        label = "ab"[i % 2] if i < 30 else ""
        nodes.append(f"s{i},shop,{label}")
    nodes += [f"p{i},person," for i in range(COUNT)]
    edges = ["source,target"]
    for i in range(COUNT):
        for person in rng.choice(COUNT, 4, replace=False):
            pair = (f"p{person}", f"s{i}")
            edges.append(",".join(pair if i % 2 == 0 else pair[::-1]))
    (tmp_path / "nodes.csv").write_text("\n".join(nodes))
    (tmp_path / "edges.csv").write_text("\n".join(edges))
    return tmp_path / "nodes.csv", tmp_path / "edges.csv"


def accuracy(run) -> float:
    shops = np.arange(30, COUNT)
    return float((run.result.labels[shops] == shops % 2).mean())


def test_the_direction_of_edges_tells_the_classes_apart(tables, tmp_path):
    quick = Ensemble()
    run = fit(read(*tables, Columns(directed=True)), tmp_path / "run", quick)
    assert accuracy(run) > 0.95
    undirected = fit(read(*tables), tmp_path / "undirected", Ensemble())
    assert accuracy(undirected) < 0.7
    stored = open_run(run.folder)
    pool = stored.split.pool[0]
    found = stored.predict_other(*tables).predictions.result.proba
    np.testing.assert_allclose(found[pool], stored.result.proba[pool], atol=1e-4)


def test_sparse_and_dense_features_are_the_same():
    rng = np.random.default_rng(1)
    x = rng.random((6, 3)).astype(np.float32)
    pairs, weights = rng.integers(0, 6, (2, 9)), rng.random(9)
    dense = add_directions(x, pairs, weights)
    sparse = add_directions(sp.csr_array(x), pairs, weights)
    assert dense.shape == (6, 11)
    np.testing.assert_allclose(sparse.toarray(), dense, atol=1e-6)
    assert np.isfinite(dense).all()


def test_repeated_edges_count_once():
    x = np.array([[1.0], [2.0], [4.0]])
    pairs = np.array([[0, 0, 0, 1], [1, 1, 2, 2]])
    found = add_directions(x, pairs, np.array([1.0, 3.0, 1.0, 0.0]))
    assert found[0, 1] == (3 * 2 + 4) / 4
    assert found[2, 2] == 1, "an edge of weight zero is none"
    assert found[:, 3].tolist() == pytest.approx([2 / 12, 0, 0])


def test_directions_are_means_over_targets_and_over_sources():
    """Weighted; of repeated edges the heaviest counts, loops and edges of weight zero do not."""
    features = np.array([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [8.0, 0.0]])
    edges = [(0, 1, 1.0), (0, 2, 3.0), (2, 1, 1.0), (2, 1, 2.0), (3, 3, 5.0), (1, 3, 0.0)]
    source, target, weight = (np.array(part) for part in zip(*edges, strict=True))
    found = add_directions(features, np.stack([source, target]), weight)
    expected = np.zeros((4, 6))
    expected[:, :2] = features
    expected[0, 2:4] = (features[1] + 3 * features[2]) / 4
    expected[2, 2:4] = features[1]
    expected[1, 4:] = (features[0] + 2 * features[2]) / 3
    expected[2, 4:] = features[0]
    np.testing.assert_allclose(found[:, :6], expected)
    out, into = np.array([2, 0, 1, 0]), np.array([0, 2, 1, 0])
    np.testing.assert_allclose(found[:, 6], out / (out + HALF_DEGREE))
    np.testing.assert_allclose(found[:, 7], into / (into + HALF_DEGREE))
