"""Sums over neighbors in blocks of rows, from memory and from memory-mapped arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features import matrix as module
from dcgst.features.matrix import Neighbors
from dcgst.features.smoothing import Filter
from dcgst.features.sparse import SparseMatrix, normalize_adjacency


@pytest.fixture(params=["memory", "mapped"])
def adjacency(request, tmp_path, rng) -> sp.csr_array:
    """Weighted, with nodes without edges at the start, in the middle and at the end."""
    graph = synthetic(60, 3, features=4, seed=1).adjacency.tolil()
    for node in (0, 30, 59):
        graph[node, :] = 0
        graph[:, node] = 0
    matrix = sp.csr_array(sp.triu(sp.csr_array(graph)))
    matrix.eliminate_zeros()
    matrix.data = rng.uniform(0.5, 2, matrix.nnz)
    matrix = sp.csr_array(matrix + matrix.T).astype(np.float32)
    if request.param == "memory":
        return matrix
    parts = []
    for name in ("data", "indices", "indptr"):
        array = getattr(matrix, name)
        array.tofile(tmp_path / name)
        parts.append(np.memmap(tmp_path / name, array.dtype, "r"))
    return sp.csr_array(tuple(parts), shape=matrix.shape)


@pytest.fixture(params=[7, 1 << 22])
def neighbors(request, adjacency, monkeypatch) -> Neighbors:
    monkeypatch.setattr(module, "ENTRIES", request.param)
    return Neighbors(adjacency, weighted=True)


def test_blocks_cover_all_nodes_once(neighbors):
    covered = np.concatenate([np.arange(60)[part] for part in neighbors.ranges])
    assert covered.tolist() == list(range(60))


def test_means(neighbors, adjacency, rng):
    z = torch.tensor(rng.normal(size=(60, 5)), dtype=torch.float32)
    degrees = np.maximum(adjacency.sum(axis=1), 1e-12)[:, None]
    found = neighbors.means(z, torch.empty_like(z))
    np.testing.assert_allclose(found, adjacency @ z.numpy() / degrees, rtol=1e-5, atol=1e-6)
    assert (found[[0, 30, 59]] == 0).all()


def test_smoothing_is_that_of_the_filter(neighbors, adjacency, rng):
    x = torch.tensor(rng.normal(size=(60, 5)), dtype=torch.float32)
    operator = normalize_adjacency(SparseMatrix.from_scipy(adjacency))
    found = [z.clone() for z in neighbors.smooth(x.clone(), 0.1, [3, 8])]
    for z, hops in zip(found, (3, 8), strict=True):
        torch.testing.assert_close(z, Filter(0.1, hops)(operator, x), rtol=1e-4, atol=1e-5)


def test_weights_of_one_need_not_be_read(adjacency, rng):
    z = torch.tensor(rng.normal(size=(60, 2)), dtype=torch.float32)
    ones = sp.csr_array(
        (np.ones_like(adjacency.data), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    weighted, plain = (Neighbors(ones, flag).means(z, torch.empty_like(z)) for flag in (1, 0))
    torch.testing.assert_close(weighted, plain)


def test_a_graph_without_edges():
    empty = Neighbors(sp.csr_array((4, 4), dtype=np.float32), weighted=False)
    z = torch.ones(4, 2)
    assert (empty.means(z, torch.empty_like(z)) == 0).all()
    (smoothed,) = empty.smooth(z, 0.1, [2])
    torch.testing.assert_close(smoothed, torch.ones(4, 2))
