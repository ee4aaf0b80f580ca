"""Neighbourhood entropy reduction: by hand, by brute force, and by its properties."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.engine.sparse import SparseMatrix
from dcgst.shift import ner
from dcgst.shift.ner import entropy, neighbourhood_entropy_reduction


def weights_of(matrix) -> SparseMatrix:
    return SparseMatrix.from_scipy(sp.csr_array(np.asarray(matrix, dtype=np.float32)))


def entropy_of(p):
    return -sum(x * log(x) for x in p)


def test_worked_by_hand():
    # Node 0 is undecided, node 1 says log 3 : 0, and the edge weighs 1/2:
    # node 0 would hear softmax(log 3 / 2, 0) = (√3, 1) / (√3 + 1).
    logits = torch.tensor([[[0.0, 0.0], [log(3), 0.0]]])
    got = neighbourhood_entropy_reduction(logits, weights_of([[0, 0.5], [0.5, 0]]))
    root = 3**0.5
    assert float(got[0, 1]) == pytest.approx(
        log(2) - entropy_of([root / (root + 1), 1 / (root + 1)]), abs=1e-6
    )
    assert float(got[0, 0]) == pytest.approx(0, abs=1e-6)  # nothing to say


def test_against_brute_force(rng, monkeypatch):
    monkeypatch.setattr(ner, "_BLOCK", 40)  # several blocks
    dense = (rng.random((9, 9)) < 0.4) * rng.random((9, 9))
    dense = np.triu(dense, 1) + np.triu(dense, 1).T + np.eye(9)
    logits = rng.normal(size=(2, 9, 3))
    got = neighbourhood_entropy_reduction(
        torch.tensor(logits, dtype=torch.float32), weights_of(dense)
    )

    def softmax(r):
        return np.exp(r) / np.exp(r).sum()

    for run in range(2):
        for c in range(9):
            expected = sum(
                entropy_of(softmax(logits[run, v]))
                - entropy_of(softmax(logits[run, v] + dense[c, v] * logits[run, c]))
                for v in range(9)
                if v != c and dense[c, v] > 0
            )
            assert float(got[run, c]) == pytest.approx(expected, abs=1e-4)


def test_isolated_nodes_bring_nothing():
    logits = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    got = neighbourhood_entropy_reduction(logits, weights_of(np.zeros((3, 3))))
    assert torch.equal(got, torch.zeros(1, 3))


def test_entropy_bounds():
    assert float(entropy(torch.zeros(5))) == pytest.approx(log(5))
    assert float(entropy(torch.tensor([1000.0, 0.0]))) == pytest.approx(0)
