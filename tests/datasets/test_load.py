"""Loading by name or path, and the registry of datasets."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dcgst.datasets import DATASETS, Dataset, arxiv, load, register_dataset, synthetic
from dcgst.datasets.digits import nearest_neighbors
from dcgst.errors import InputError


def blank_features(adjacency, dimensions):
    return np.zeros((adjacency.shape[0], dimensions), np.float32)


@pytest.mark.parametrize("name", list(DATASETS))
def test_entries_state_the_size_of_their_graph(name, need_data, monkeypatch, tmp_path):
    need_data(name)
    # The substitute features of ogbn-arxiv are slow to compute and would be written to the cache.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(arxiv, "spectral_features", blank_features)
    entry, graph = DATASETS[name], load(name)
    assert graph.name == entry.name == name
    assert graph.num_nodes == entry.nodes
    assert graph.num_edges == entry.edges
    assert graph.num_features == entry.features
    assert graph.num_classes == entry.classes
    assert entry.origin


def test_digits_and_synthetic_are_always_available(no_data):
    present = [name for name, entry in DATASETS.items() if entry.available()]
    assert present == ["digits", "synthetic"]
    assert load("digits").homophily() > 0.95


def test_an_unknown_dataset_is_refused_with_a_list():
    with pytest.raises(InputError, match=r"unknown dataset 'corra'; did you mean 'cora'"):
        load("corra")


def test_a_size_after_synthetic_sets_the_number_of_nodes():
    graph = load("synthetic/500")
    assert (graph.name, graph.num_nodes) == ("synthetic/500", 500)
    with pytest.raises(InputError, match="unknown dataset 'synthetic/many'"):
        load("synthetic/many")


def test_a_registered_dataset_is_loaded_by_name(monkeypatch):
    monkeypatch.setattr(DATASETS, "_items", dict(DATASETS._items))
    make = partial(synthetic, 100, 2, name="mine")
    entry = register_dataset(Dataset("mine", make, lambda: False))
    assert DATASETS["mine"] is entry
    assert load("mine").num_nodes == 100
    with pytest.raises(InputError, match="dataset name 'mine' is already used"):
        register_dataset(entry)
    with pytest.raises(InputError, match=r"expected a dcgst\.datasets\.Dataset"):
        DATASETS.register("other", make)


def test_a_graph_file_is_loaded_by_path(tmp_path):
    path = tmp_path / "pair.npz"
    np.savez(path, edge_index=np.array([[0], [1]]), x=np.eye(3), y=np.array([0, 1, -1]))
    graph = load(str(path))
    assert (graph.num_nodes, graph.num_edges) == (3, 1)
    assert graph.labels.tolist() == [0, 1, -1]


def test_a_folder_of_tables_is_loaded_by_path(tmp_path):
    rows = ["id,x,label", "a,1.5,red", "b,2.5,blue", "c,0.5,", "d,1.0,", "e,3.5,red"]
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    graph = load(str(tmp_path))
    assert (graph.num_nodes, graph.num_edges) == (5, 3)
    assert sorted(graph.class_names) == ["blue", "red"]


def test_a_dataset_name_has_priority_over_a_path(tmp_path, monkeypatch):
    (tmp_path / "synthetic").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("synthetic").num_nodes == 1200


def test_nearest_neighbors_are_closest_and_ties_go_to_the_lower_node():
    points = np.array([[0.0], [1.0], [2.0], [5.0]])
    edges = nearest_neighbors(points, 2)
    assert edges[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert edges[1].tolist() == [1, 2, 0, 2, 1, 0, 2, 1]
