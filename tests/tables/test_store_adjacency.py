"""CSR matrices built in files: the same as in memory, whatever the number of buckets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.graph.cleaning import clean_edges
from dcgst.tables.importing import AdjacencyBuilder
from dcgst.tables.store import INDICES, INDPTR, WEIGHTS


def built(folder, edges, weights, n, memory) -> tuple[sp.csr_array, list[str]]:
    builder = AdjacencyBuilder(
        folder, folder / "work", n, edges.shape[1], weighted=weights is not None, memory=memory
    )
    for start in range(0, edges.shape[1], 37):
        own = slice(start, start + 37)
        part = None if weights is None else weights[own].astype(np.float32)
        builder.add(edges[0, own], edges[1, own], part)
    shares: list[float] = []
    counts = builder.finish(shares.append)
    assert shares[-1] == 1
    assert not list((folder / "work").iterdir()), "the buckets are removed"
    arrays = [
        np.fromfile(folder / name, kind)
        for name, kind in ((WEIGHTS, np.float32), (INDICES, np.int32), (INDPTR, np.int32))
    ]
    assert counts.entries == len(arrays[0])
    return sp.csr_array(tuple(arrays), shape=(n, n)), counts.notes()


@pytest.mark.parametrize("memory", [1, 20_000, 1 << 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_as_in_memory(tmp_path, rng, memory, weighted):
    edges = rng.integers(0, 40, (2, 500))
    weights = rng.integers(0, 5, 500).astype(float) if weighted else None
    expected, notes = clean_edges(edges, weights, 40)
    found, own_notes = built(tmp_path, edges, weights, 40, memory)
    assert abs(found - expected).nnz == 0
    assert found.has_canonical_format
    assert own_notes == notes


def test_edges_in_one_direction_and_nodes_without(tmp_path):
    edges = np.array([[9, 3], [2, 2]])
    found, notes = built(tmp_path, edges, None, 12, 1)
    assert found.toarray()[2].nonzero()[0].tolist() == [3, 9]
    assert found.toarray()[[3, 9], 2].tolist() == [1, 1]
    assert found.nnz == 4
    assert notes == ["2 directed edges made undirected"]


def test_only_loops(tmp_path):
    found, notes = built(tmp_path, np.array([[1, 2], [1, 2]]), None, 3, 1)
    assert found.nnz == 0
    assert notes == ["2 self-loops dropped"]
