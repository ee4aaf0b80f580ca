"""Similar nodes: the same as from the whole matrix of cosines, in blocks, dense or sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.engine import similarity
from dcgst.engine.similarity import SimilarNodes
from dcgst.engine.sparse import SparseMatrix


@pytest.fixture(params=["dense", "sparse"])
def features(request, rng):
    dense = rng.random((25, 6)).astype(np.float32) * (rng.random((25, 6)) < 0.6)
    dense[3] = 0  # a node without features
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    x = torch.tensor(dense)
    return (
        x if request.param == "dense" else SparseMatrix.from_scipy(sp.csr_array(dense))
    ), cosines


def test_against_the_whole_matrix(features, monkeypatch):
    monkeypatch.setattr(similarity, "_BLOCK", 60)  # two nodes at a time
    x, cosines = features
    nodes = torch.tensor([[4, 9], [9, 20]])
    found, values = SimilarNodes(x, 5).of(nodes)
    expected = -np.sort(-cosines[nodes.numpy()], axis=-1)[..., :5]
    np.testing.assert_allclose(values, expected, atol=1e-6)
    at_found = np.take_along_axis(cosines[nodes.numpy()], found.numpy(), axis=-1)
    np.testing.assert_allclose(at_found, expected, atol=1e-6)


def test_asked_again_or_along_with_others_the_answer_is_the_same(features):
    x, _ = features
    one_by_one, at_once = SimilarNodes(x, 4), SimilarNodes(x, 4)
    for node in range(25):
        one_by_one.of(torch.tensor([node]))
    everyone = torch.arange(25)
    torch.testing.assert_close(one_by_one.of(everyone)[1], at_once.of(everyone)[1])


def test_along_edges(features, rng):
    x, cosines = features
    pairs = np.argwhere(np.triu(rng.random((25, 25)) < 0.2, 1))
    got = SimilarNodes(x, 3).along(torch.tensor(pairs))
    np.testing.assert_allclose(got, cosines[pairs[:, 0], pairs[:, 1]], atol=1e-6)
    assert len(SimilarNodes(x, 3).along(torch.zeros(0, 2, dtype=torch.long))) == 0


def test_more_similar_nodes_than_there_are():
    found, _ = SimilarNodes(torch.eye(3), 10).of(torch.arange(3))
    assert found.shape == (3, 2)
