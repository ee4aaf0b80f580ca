"""Arrays in files are passed to other processes by their paths."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import load
from dcgst.features.matrix import Neighbors
from dcgst.graph.references import from_reference, to_reference
from dcgst.tables.importing import import_tables
from dcgst.tables.store import open_store


@pytest.fixture
def array(tmp_path):
    np.arange(12, dtype=np.float32).tofile(tmp_path / "a.bin")
    return np.memmap(tmp_path / "a.bin", np.float32, "r", shape=(4, 3))


def test_arrays_in_files_and_their_parts(array):
    for part in (array, array[1:3], np.asarray(array), array[2]):
        reference = to_reference(part)
        assert len(pickle.dumps(reference)) < 500
        np.testing.assert_array_equal(from_reference(reference), part)


@pytest.mark.parametrize("value", [np.arange(3), None, ("a", "b"), sp.eye_array(2).tocsr()])
def test_everything_else_stays_as_it_is(value):
    assert to_reference(value) is value
    assert from_reference(value) is value


def test_columns_are_copied(array):
    column = array[:, 1]
    np.testing.assert_array_equal(to_reference(column), column)


def test_graphs_of_a_store_are_small_messages(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i},{'ab'[i % 2] if i < 8 else ''},{rng.random()}" for i in range(3000)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,x", *lines]))
    ends = rng.integers(0, 3000, (2, 9000)).T
    (tmp_path / "edges.csv").write_text("\n".join(["s,t", *(f"{a},{b}" for a, b in ends)]))
    import_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g.store")
    graph = open_store(tmp_path / "g.store").graph
    for value in (graph, Neighbors(graph.adjacency, graph.weighted)):
        message = pickle.dumps(value)
        assert len(message) < 40_000
        found = pickle.loads(message)
        assert (found.adjacency != graph.adjacency).nnz == 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(graph)).features, graph.features)


def test_graphs_in_memory_are_copied():
    graph = load("synthetic")
    found = pickle.loads(pickle.dumps(graph))
    assert found.class_names == graph.class_names
    np.testing.assert_array_equal(found.features, graph.features)
