"""Data sets: embedded ones as promised, real ones where they are here, errors that help."""

from __future__ import annotations

import gzip
import hashlib
import pickle

import numpy as np
import pytest

from dcgst.datasets import CATALOGUE, files, load, synthetic
from dcgst.datasets import arxiv as arxiv_module
from dcgst.datasets.npz import read
from dcgst.datasets.pickles import read_pickle
from dcgst.datasets.planetoid import PARTS
from dcgst.errors import InputError


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No data anywhere, and no network."""
    monkeypatch.delenv("DCGST_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def offline(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr(files.urllib.request, "urlopen", offline)
    return tmp_path


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_the_catalogue_tells_the_truth(name, need_data):
    need_data(name)
    entry, graph = CATALOGUE[name], load(name)
    assert graph.name == name
    assert graph.num_nodes == entry.nodes
    assert graph.num_edges == entry.edges
    assert graph.num_features == entry.features
    assert graph.num_classes == entry.classes


def test_embedded_data_need_nothing(empty):
    present = [name for name, entry in CATALOGUE.items() if entry.present(name)]
    assert present == ["digits", "synthetic"]
    assert load("digits").homophily() > 0.95


def test_unknown_data_set():
    with pytest.raises(InputError, match=r"unknown data set 'corra'.*cora"):
        load("corra")


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in ("digits", "synthetic")])
def test_without_file_or_network_the_error_says_which_file_to_put_where(name, empty):
    with pytest.raises(InputError, match=r"is not here.*put") as caught:
        load(name)
    assert str(empty / "cache" / "dcgst") in str(caught.value)


def test_downloads_are_checked_and_kept(empty, monkeypatch):
    content = b"the real thing"
    source = files.Source("planetoid", "somewhere", "https://example.org")
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(files.Source, "checksum", lambda self, name: digest)

    def serve(data):
        class Response:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return False

            def read(self):
                return data

        monkeypatch.setattr(files.urllib.request, "urlopen", lambda url, timeout: Response())

    serve(b"something else")
    with pytest.raises(InputError, match="SHA-256"):
        files.locate(source, "file")
    assert files.find(source, "file") is None
    serve(content)
    assert files.locate(source, "file").read_bytes() == content
    assert files.find(source, "file") is not None


def test_the_users_folder_comes_first(empty, monkeypatch):
    for place in ("own", "cache/dcgst"):
        (empty / place / "planetoid").mkdir(parents=True)
        (empty / place / "planetoid" / "f").write_text(place)
    source = files.Source("planetoid", "somewhere")
    assert files.locate(source, "f").read_text() == "cache/dcgst"
    monkeypatch.setenv("DCGST_DATA", str(empty / "own"))
    assert files.locate(source, "f").read_text() == "own"


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomically(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_pickles_run_nothing(tmp_path):
    class Trap:
        def __reduce__(self):
            return eval, ("1/0",)

    path = tmp_path / "trap.p"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match="eval, which is not admitted"):
        read_pickle(path)
    path.write_bytes(b"no pickle at all")
    with pytest.raises(InputError, match="not a file of the expected kind"):
        read_pickle(path)


def test_pickles_of_admitted_types(tmp_path):
    import scipy.sparse as sp

    path = tmp_path / "fine.p"
    path.write_bytes(pickle.dumps([{1, 2}, np.arange(3)], protocol=4))
    numbers, array = read_pickle(path)
    assert numbers == {1, 2}
    assert array.tolist() == [0, 1, 2]
    path.write_bytes(pickle.dumps(sp.csr_matrix(np.eye(2)), protocol=4))
    np.testing.assert_array_equal(read_pickle(path).toarray(), np.eye(2))


def write_planetoid(folder, name):
    """Six nodes: four in allx, test nodes 5 and 4 in that order in tx; node 6 is skipped."""
    import collections

    import scipy.sparse as sp

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


def test_planetoid_order_gaps_and_notes(empty, monkeypatch):
    write_planetoid(empty / "own" / "planetoid", "citeseer")
    monkeypatch.setenv("DCGST_DATA", str(empty / "own"))
    assert CATALOGUE["citeseer"].present("citeseer")
    assert len(PARTS) == 8
    graph = load("citeseer")
    assert graph.labels.tolist() == [0, 1, 2, 3, 4, 5, -1, 1]
    assert graph.features.toarray()[:, 0].tolist() == [1, 0, 0, 0, 4, 5, 0, 7]
    assert graph.num_edges == 2
    assert graph.notes[0] == "1 nodes have no label upstream"
    assert np.flatnonzero(graph.masks["test"]).tolist() == [4, 5, 7]


def test_citeseers_unlabeled_nodes(need_data):
    need_data("citeseer")
    graph = load("citeseer")
    assert (graph.labels == -1).sum() == 15
    assert graph.notes[0] == "15 nodes have no label upstream"


def test_npz_files_are_checked(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, edge_index=np.array([[0], [1]]), y=np.array([0, 1]))
    with pytest.raises(InputError, match="lacks the arrays x_data"):
        read(path, "graph")
    path.write_bytes(b"PK broken")
    with pytest.raises(InputError, match="not an npz file"):
        read(path, "graph")


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


def test_ogb_folder_is_official(empty, monkeypatch):
    write_ogb(empty / "own" / "ogbn_arxiv")
    monkeypatch.setenv("DCGST_DATA", str(empty / "own"))
    graph = load("ogbn-arxiv")
    assert graph.official
    np.testing.assert_array_equal(graph.features, np.eye(3))
    assert graph.masks["val"].tolist() == [False, True, False]


def test_bare_arxiv_gets_spectral_features_and_is_marked(empty, monkeypatch):
    base = synthetic(50, 2, features=2, labels_per_class=2)
    folder = empty / "own" / "ogbn_arxiv"
    folder.mkdir(parents=True)
    edges = np.stack(base.adjacency.tocoo().coords)
    split = {"train": np.arange(10), "valid": np.arange(10, 20), "test": np.arange(20, 50)}
    np.savez(folder / "graph.npz", edge_index=edges, y=base.labels.astype(np.int8), **split)
    monkeypatch.setenv("DCGST_DATA", str(empty / "own"))
    graph = load("ogbn-arxiv")
    assert not graph.official
    assert "unofficial" in graph.notes[0]
    monkeypatch.setattr(arxiv_module, "spectral_features", None)  # the second time from the cache
    np.testing.assert_array_equal(load("ogbn-arxiv").features, graph.features)


def test_the_dials_of_the_synthetic_graph():
    assert synthetic(1000, homophily=0.9).homophily() == pytest.approx(0.9, abs=0.03)
    assert synthetic(1000, homophily=0.3).homophily() == pytest.approx(0.3, abs=0.03)
    assert synthetic(1000, degree=10).degrees.mean() == pytest.approx(10, rel=0.1)
    sizes = np.bincount(synthetic(1400, 3, balance=0.5).labels)
    assert sizes.tolist() == [800, 400, 200]

    def position(shift):
        graph = synthetic(1000, 2, shift=shift, labels_per_class=50)
        return (np.flatnonzero(graph.masks["train"]) % 500).mean() / 500

    assert position(0.0) == pytest.approx(0.5, abs=0.1)
    assert position(1.0) < position(0.3) < 0.4
    assert position(1.0) < 0.1


@pytest.mark.parametrize(
    "arguments",
    [{"shift": 2.0}, {"homophily": -1.0}, {"balance": 0.0}, {"nodes": 10, "classes": 5}],
)
def test_dials_out_of_range(arguments):
    with pytest.raises(InputError):
        synthetic(**arguments)
