"""Readers of published files: pickles without code, Planetoid, OGB and npz."""

from __future__ import annotations

import collections
import gzip
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.datasets import DATASETS, arxiv, load, official_available, synthetic
from dcgst.datasets import planetoid as seeds
from dcgst.datasets.planetoid import read_pickle
from dcgst.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.*is not the published file")


def test_pickles_run_no_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return eval, ("1/0",)

    path = tmp_path / "trap.p"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match=r"refers to builtins\.eval, which is not allowed"):
        read_pickle(path)


def test_a_file_that_is_no_pickle_is_refused(tmp_path):
    path = tmp_path / "broken.p"
    for content in (b"no pickle at all", b"", pickle.dumps(list(range(100)))[:-20]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a file of the expected type"):
            read_pickle(path)


def test_pickles_of_containers_arrays_and_matrices_are_read(tmp_path):
    path = tmp_path / "fine.p"
    path.write_bytes(pickle.dumps([{1, 2}, np.arange(3)], protocol=4))
    numbers, array = read_pickle(path)
    assert numbers == {1, 2}
    assert array.tolist() == [0, 1, 2]
    path.write_bytes(pickle.dumps(sp.csr_matrix(np.eye(2)), protocol=4))
    np.testing.assert_array_equal(read_pickle(path).toarray(), np.eye(2))


def write_planetoid(folder, name):
    """Eight nodes: four in allx, then test nodes 5, 4, 7 in that order; node 6 is in no list."""
    folder.mkdir(parents=True)
    one_hot = np.eye(6)[[0, 1, 2, 3]]
    parts = {
        "x": sp.csr_matrix(np.eye(4)[:2]),
        "y": one_hot[:2],
        "allx": sp.csr_matrix(np.eye(4)),
        "ally": one_hot,
        "tx": sp.csr_matrix(np.array([[5.0, 0, 0, 0], [4.0, 0, 0, 0], [7.0, 0, 0, 0]])),
        "ty": np.eye(6)[[5, 4, 1]],
        "graph": collections.defaultdict(list, {0: [1, 1, 0], 1: [0], 5: [7], 7: [5]}),
    }
    for part, content in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(content, protocol=4))
    (folder / f"ind.{name}.test.index").write_text("5\n4\n7\n")


def test_planetoid_test_nodes_are_sorted_and_gaps_have_no_label(own_data):
    write_planetoid(own_data / "planetoid", "citeseer")
    assert DATASETS["citeseer"].available()
    graph = load("citeseer")
    assert graph.labels.tolist() == [0, 1, 2, 3, 4, 5, -1, 1]
    assert graph.features.toarray()[:, 0].tolist() == [1, 0, 0, 0, 4, 5, 0, 7]
    assert graph.num_edges == 2
    assert graph.notes[0] == "1 nodes have no label upstream"
    assert np.flatnonzero(graph.masks["train"]).tolist() == [0, 1]
    assert np.flatnonzero(graph.masks["test"]).tolist() == [4, 5, 7]


def test_a_dataset_with_a_missing_file_is_not_available(own_data):
    write_planetoid(own_data / "planetoid", "citeseer")
    (own_data / "planetoid" / "ind.citeseer.ty").unlink()
    assert not DATASETS["citeseer"].available()


def test_a_broken_test_index_is_refused(own_data):
    write_planetoid(own_data / "planetoid", "citeseer")
    (own_data / "planetoid" / "ind.citeseer.test.index").write_text("5\nfour\n")
    with pytest.raises(InputError, match="must contain one node number per line"):
        load("citeseer")


def test_fifteen_nodes_of_citeseer_have_no_label(need_data):
    need_data("citeseer")
    graph = load("citeseer")
    assert (graph.labels == -1).sum() == 15
    assert graph.notes[0] == "15 nodes have no label upstream"


def test_npz_datasets_are_read_from_the_users_folder(own_data):
    (own_data / "npz").mkdir()
    x = sp.csr_array(np.eye(3))
    parts = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": x.shape}
    edges, labels = np.array([[0], [1]]), np.array([0, 1, 1])
    np.savez(own_data / "npz" / "cora_ml.npz", edge_index=edges, y=labels, **parts)
    assert DATASETS["cora_ml"].available()
    graph = load("cora_ml")
    assert graph.name == "cora_ml"
    np.testing.assert_array_equal(graph.features.toarray(), np.eye(3))


def write_ogb(folder):
    def table(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            np.savetxt(file, rows, delimiter=",", fmt="%g")

    table(folder / "raw" / "edge.csv.gz", [[0, 1], [1, 2]])
    table(folder / "raw" / "node-feat.csv.gz", np.eye(3))
    table(folder / "raw" / "node-label.csv.gz", [[0], [1], [1]])
    for name, node in (("train", 0), ("valid", 1), ("test", 2)):
        table(folder / "split" / "time" / f"{name}.csv.gz", [[node]])


def test_the_folder_of_ogb_is_official(own_data):
    write_ogb(own_data / "ogbn_arxiv")
    assert official_available("ogbn-arxiv")
    graph = load("ogbn-arxiv")
    assert graph.official
    np.testing.assert_array_equal(graph.features, np.eye(3))
    assert graph.masks["val"].tolist() == [False, True, False]


def test_a_damaged_table_of_ogb_is_refused(own_data):
    write_ogb(own_data / "ogbn_arxiv")
    (own_data / "ogbn_arxiv" / "raw" / "edge.csv.gz").write_bytes(b"not compressed")
    with pytest.raises(InputError, match=r"edge\.csv\.gz cannot be read"):
        load("ogbn-arxiv")


def test_arxiv_without_features_has_cached_spectral_ones_and_is_unofficial(own_data, monkeypatch):
    base = synthetic(50, 2, features=2, labels_per_class=2)
    (own_data / "ogbn_arxiv").mkdir()
    edges = np.stack(base.adjacency.tocoo().coords)
    split = {"train": np.arange(10), "valid": np.arange(10, 20), "test": np.arange(20, 50)}
    path = own_data / "ogbn_arxiv" / "graph.npz"
    np.savez(path, edge_index=edges, y=base.labels.astype(np.int8), **split)
    assert not official_available("ogbn-arxiv")
    graph = load("ogbn-arxiv")
    assert not graph.official
    assert "unofficial" in graph.notes[0]
    assert graph.masks["test"].sum() == 30
    monkeypatch.setattr(arxiv, "spectral_features", None)  # not computed again
    np.testing.assert_array_equal(load("ogbn-arxiv").features, graph.features)


def write_seeds(folder, content):
    (folder / "srgnn_seeds").mkdir(exist_ok=True)
    path = folder / "srgnn_seeds" / "localized_seeds_cora.p"
    path.write_bytes(pickle.dumps(content, protocol=4))


def test_released_seeds_are_blocks_of_twenty_per_class(own_data):
    write_seeds(own_data, [list(range(40)), list(range(40, 80))])
    blocks = seeds.released_blocks("cora")
    assert blocks.shape == (2, 2, 20)
    assert blocks[1, 1].tolist() == list(range(60, 80))


def test_malformed_seeds_are_refused(own_data):
    write_seeds(own_data, [list(range(30)), list(range(30))])
    with pytest.raises(InputError, match="must contain blocks of 20 node ids"):
        seeds.released_blocks("cora")
    write_seeds(own_data, [list(range(20)), list(range(40))])
    with pytest.raises(InputError, match="must contain runs of equally long blocks"):
        seeds.released_blocks("cora")
    with pytest.raises(InputError, match="no released seeds for 'actor'"):
        seeds.released_blocks("actor")


def test_released_sets_exist_for_some_rates_only(own_data):
    (own_data / "srgnn_seeds").mkdir()
    path = own_data / "srgnn_seeds" / "ogbn-arxiv_0.01.p"
    path.write_bytes(pickle.dumps([{3, 1}, {2}], protocol=4))
    assert [nodes.tolist() for nodes in seeds.released_sets("ogbn-arxiv", 0.01)] == [[1, 3], [2]]
    with pytest.raises(InputError, match=r"rate 0\.01 and 0\.05 only"):
        seeds.released_sets("ogbn-arxiv", 0.02)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("graph", [1, 2, 3]),
        ("graph", {0: 5}),
        ("allx", {"a": 1}),
        ("ally", [[1, 2], [3]]),
        ("y", {1, 2}),
    ],
)
def test_planetoid_files_of_another_type_are_refused(tmp_path, monkeypatch, part, content):
    write_planetoid(tmp_path / "planetoid", "citeseer")
    (tmp_path / "planetoid" / f"ind.citeseer.{part}").write_bytes(pickle.dumps(content, protocol=2))
    monkeypatch.setenv("DCGST_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"files ind.citeseer.\* in .* are not the dataset"):
        load("citeseer")


def test_files_that_differ_from_the_published_ones_are_reported(tmp_path, monkeypatch):
    write_planetoid(tmp_path / "planetoid", "citeseer")
    monkeypatch.setenv("DCGST_DATA", str(tmp_path))
    with pytest.warns(UserWarning, match=r"ind.citeseer.graph is not the published file"):
        load("citeseer")
