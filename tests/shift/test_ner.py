"""Neighborhood entropy reduction: by hand and by brute force."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.features.sparse import SparseMatrix
from dcgst.shift import ner
from dcgst.shift.ner import entropy, neighborhood_entropy_reduction


def weights_of(matrix) -> SparseMatrix:
    return SparseMatrix.from_scipy(sp.csr_array(np.asarray(matrix, dtype=np.float32)))


def entropy_of(p):
    return -sum(x * log(x) for x in p)


def test_a_pair_of_nodes_by_hand():
    # Node 0 has logits 0, 0; node 1 has log 3, 0; the edge has weight 1/2. Adding half of node 1's
    # logits to node 0's gives the probabilities (√3, 1) / (√3 + 1).
    logits = torch.tensor([[[0.0, 0.0], [log(3), 0.0]]])
    got = neighborhood_entropy_reduction(logits, weights_of([[0, 0.5], [0.5, 0]]))
    total = sqrt(3) + 1
    expected = log(2) - entropy_of([sqrt(3) / total, 1 / total])
    assert expected > 0
    assert float(got[0, 1]) == pytest.approx(expected, abs=1e-6)
    assert float(got[0, 0]) == pytest.approx(0, abs=1e-6)  # zero logits change nothing


def test_contradicting_logits_increase_the_entropy():
    logits = torch.tensor([[[log(3), 0.0], [0.0, log(3)]]])
    got = neighborhood_entropy_reduction(logits, weights_of([[0, 1], [1, 0]]))
    expected = entropy_of([0.75, 0.25]) - log(2)
    assert expected < 0
    assert got.flatten().tolist() == pytest.approx([expected, expected], abs=1e-6)


def test_the_diagonal_is_ignored():
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    edges = np.array([[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]])
    without = neighborhood_entropy_reduction(logits, weights_of(edges))
    with_loops = neighborhood_entropy_reduction(logits, weights_of(edges + 2 * np.eye(3)))
    assert torch.equal(with_loops, without)


def test_ner_equals_the_sum_over_neighbors(rng, monkeypatch):
    monkeypatch.setattr(ner, "_BLOCK", 40)  # several blocks
    dense = (rng.random((9, 9)) < 0.4) * rng.random((9, 9))
    dense = np.triu(dense, 1) + np.triu(dense, 1).T
    logits = rng.normal(size=(2, 9, 3))
    got = neighborhood_entropy_reduction(
        torch.tensor(logits, dtype=torch.float32), weights_of(dense)
    )

    def softmax(r):
        return np.exp(r) / np.exp(r).sum()

    for run in range(2):
        for c in range(9):
            expected = sum(
                entropy_of(softmax(logits[run, v]))
                - entropy_of(softmax(logits[run, v] + dense[c, v] * logits[run, c]))
                for v in np.flatnonzero(dense[c])
            )
            assert float(got[run, c]) == pytest.approx(expected, abs=1e-4)


def test_a_node_without_neighbors_has_zero():
    logits = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    got = neighborhood_entropy_reduction(logits, weights_of(np.zeros((3, 3))))
    assert torch.equal(got, torch.zeros(1, 3))


def test_entropy_is_log_c_for_equal_logits_and_zero_for_a_certain_class():
    assert float(entropy(torch.zeros(5))) == pytest.approx(log(5))
    assert float(entropy(torch.tensor([1000.0, 0.0]))) == pytest.approx(0)
