"""Similar nodes: the same as from the full matrix of cosines, for dense and sparse features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features import similarity
from dcgst.features.similarity import SimilarNodes
from dcgst.features.sparse import SparseMatrix


@pytest.fixture(params=["dense", "sparse"])
def features(request, rng):
    dense = rng.random((25, 6)).astype(np.float32) * (rng.random((25, 6)) < 0.6)
    dense[3] = 0  # a node without features
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    sparse = request.param == "sparse"
    return SparseMatrix.from_scipy(sp.csr_array(dense)) if sparse else torch.tensor(dense), cosines


def test_similar_nodes_have_the_largest_cosines_of_the_full_matrix(features, monkeypatch):
    monkeypatch.setattr(similarity, "_BLOCK", 60)  # two nodes at a time
    x, cosines = features
    nodes = torch.tensor([[4, 9], [9, 20]])
    found, values = SimilarNodes(x, 5).of(nodes)
    expected = -np.sort(-cosines[nodes.numpy()], axis=-1)[..., :5]
    np.testing.assert_allclose(values, expected, atol=1e-6)
    at_found = np.take_along_axis(cosines[nodes.numpy()], found.numpy(), axis=-1)
    np.testing.assert_allclose(at_found, expected, atol=1e-6)


def test_queries_in_any_order_give_the_same_result(features):
    x, _ = features
    one_by_one, at_once = SimilarNodes(x, 4), SimilarNodes(x, 4)
    for node in range(25):
        one_by_one.of(torch.tensor([node]))
    everyone = torch.arange(25)
    torch.testing.assert_close(one_by_one.of(everyone)[1], at_once.of(everyone)[1])


def test_cosines_along_pairs(features, rng):
    x, cosines = features
    pairs = np.argwhere(np.triu(rng.random((25, 25)) < 0.2, 1))
    found = SimilarNodes(x, 3).pair_cosines(torch.tensor(pairs))
    np.testing.assert_allclose(found, cosines[pairs[:, 0], pairs[:, 1]], atol=1e-6)
    assert len(SimilarNodes(x, 3).pair_cosines(torch.zeros(0, 2, dtype=torch.long))) == 0


def test_a_node_has_at_most_all_others_as_similar_nodes():
    found, _ = SimilarNodes(torch.eye(3), 10).of(torch.arange(3))
    assert [sorted(row) for row in found.tolist()] == [[1, 2], [0, 2], [0, 1]]
