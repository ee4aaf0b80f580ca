"""GraphML, NetworkX, PyG, npz and Parquet become the same graphs as CSV."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.tables import Columns, read
from dcgst.tables import graph_files as npz
from dcgst.tables.graph_files import read_npz_arrays, read_npz_graph

from .conftest import NODES

EDGE_INDEX = np.array([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])
LABELS = np.array([0, 1, -1, 1])


@pytest.fixture
def graph(rng) -> Graph:
    return Graph.from_edges(EDGE_INDEX, rng.normal(size=(4, 3)), LABELS)


def assert_same(found: Graph, expected: Graph) -> None:
    assert (found.adjacency != expected.adjacency).nnz == 0
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(
        sp.csr_array(found.features).toarray(), sp.csr_array(expected.features).toarray()
    )


# --- tables and NetworkX ------------------------------------------------------------------------


def test_parquet_gives_the_same_graph_as_csv(write_tables, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nodes = {
        "id": ["007", "8", "9", "10"],
        "age": [31.0, None, 45.0, 52.0],
        "city": ["Rome", "Oslo", "Rome", "Oslo"],
        "about": [line.split(",")[3] for line in NODES.splitlines()[1:]],
        "label": ["fruit", None, None, "wheels"],
    }
    edges = {"source": ["007", "8", "9"], "target": ["9", "10", "007"]}
    parquet.write_table(arrow.table(nodes), tmp_path / "n.parquet")
    parquet.write_table(arrow.table(edges), tmp_path / "e.parquet")
    found = read(tmp_path / "n.parquet", tmp_path / "e.parquet").graph
    expected = read(*write_tables()).graph
    assert found.ids.tolist() == expected.ids.tolist()
    assert_same(found, expected)


def test_graphml_and_networkx_give_the_same_graph(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_node("a", size=1.0, label="x")
    graph.add_node("b", size=2.0, label="y")
    graph.add_node("c", size=4.0)
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c", weight=1.0)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    for source in (graph, tmp_path / "g.graphml"):
        found = read(source).graph
        assert found.ids.tolist() == ["a", "b", "c"]
        assert found.labels.tolist() == [0, 1, -1]
        assert found.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
        assert found.num_features == 1
        assert not any("symmetric" in note for note in found.notes)


def test_networkx_node_ids_replace_attributes_of_the_same_name():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_node(0, id="other", label="x", size=1.0)
    graph.add_node(1, id="names", label=float("nan"), size=3.0)
    graph.add_node(2, label=None, size=2.0)
    graph.add_edge(0, 1, source="elsewhere")
    graph.add_edge(1, 2)
    found = read(graph).graph
    assert found.ids.tolist() == ["0", "1", "2"]
    assert found.class_names == ("x",)
    assert found.num_edges == 2


def test_directed_networkx_edges_become_undirected():
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    found = read(graph, labels_needed=False)
    assert found.graph.num_edges == 2
    assert "1 directed edges made undirected" in found.notes


def test_a_networkx_graph_of_one_edge_is_read():
    nx = pytest.importorskip("networkx")
    found = read(nx.DiGraph([("a", "b")]), labels_needed=False).graph
    assert (found.num_nodes, found.num_edges) == (2, 1)


def test_invalid_networkx_graphs_are_errors():
    nx = pytest.importorskip("networkx")
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, b"12", "size")
    with pytest.raises(InputError, match="column 'size' of graph contains values of type bytes"):
        read(graph, labels_needed=False)
    with pytest.raises(InputError, match="graph has no nodes or no edges"):
        read(nx.empty_graph(3))
    with pytest.raises(InputError, match="graph has no nodes or no edges"):
        read(nx.Graph())


# --- PyG ----------------------------------------------------------------------------------------


def test_pyg_data_and_its_files_give_the_same_graph(graph, tmp_path):
    data = graph.to_pyg()
    torch.save(data, tmp_path / "data.pt")
    torch.save(data.to_dict(), tmp_path / "dict.pt")
    torch.save((data, None), tmp_path / "tuple.pt")
    for source in (data, *(tmp_path / name for name in ("data.pt", "dict.pt", "tuple.pt"))):
        found = read(source)
        assert_same(found.graph, graph)
        assert found.encoder is None


def test_files_that_would_run_code_are_not_loaded(tmp_path, capsys):
    class RunsCode:
        def __reduce__(self):
            return print, ("code was run",)

    torch.save(RunsCode(), tmp_path / "code.pt")
    with pytest.raises(InputError, match=r"code.pt cannot be loaded: it contains .*print"):
        read(tmp_path / "code.pt")
    assert capsys.readouterr().out == ""


def test_pt_files_without_a_graph_are_errors(tmp_path):
    invalid = {
        "the tensors of .*x.pt are not a graph": {
            "x": [[1.0]],
            "edge_index": torch.zeros(2, 1, dtype=torch.int64),
        },
        "x.pt contains Tensor; PyG Data is required": torch.zeros(3),
    }
    for message, content in invalid.items():
        torch.save(content, tmp_path / "x.pt")
        with pytest.raises(InputError, match=message):
            read(tmp_path / "x.pt")


# --- npz ----------------------------------------------------------------------------------------


def test_npz_files_with_dense_and_sparse_features_give_the_same_graph(graph, tmp_path):
    x = sp.csr_array(graph.features)
    parts = {"x_data": x.data, "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": x.shape}
    np.savez(tmp_path / "dense.npz", edge_index=EDGE_INDEX, x=graph.features, y=LABELS)
    np.savez(tmp_path / "sparse.npz", edge_index=EDGE_INDEX, y=LABELS, **parts)
    for name in ("dense", "sparse"):
        assert_same(read(tmp_path / f"{name}.npz").graph, graph)
        assert read(tmp_path / f"{name}.npz").graph.name == name
    assert sp.issparse(read_npz_graph(tmp_path / "sparse.npz", "other").features)
    assert read_npz_graph(tmp_path / "sparse.npz", "other").name == "other"


def test_missing_arrays_are_errors(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=EDGE_INDEX, y=LABELS)
    message = r"g.npz does not have the arrays x_data, .*, x_shape; it has edge_index, y$"
    with pytest.raises(InputError, match=message):
        read(path)
    with pytest.raises(InputError, match=r"does not have the arrays train; it has edge_index, y$"):
        read_npz_arrays(path, ("y", "train"))
    np.savez(path, edge_index=EDGE_INDEX, x=np.eye(4))
    with pytest.raises(InputError, match=r"does not have the arrays y; it has edge_index, x$"):
        read(path)


def test_pickled_arrays_are_not_loaded(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=EDGE_INDEX, x=np.array([{}, {}]), y=LABELS)
    with pytest.raises(InputError, match="is not an npz file of plain arrays"):
        read(tmp_path / "g.npz")


def test_pickled_arrays_are_not_loaded_even_if_the_headers_are_not_checked(tmp_path, monkeypatch):
    """There are two safeguards: the check of the headers, and that of NumPy."""
    monkeypatch.setattr(npz, "_check_sizes", lambda *_: None)
    np.savez(tmp_path / "g.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="is not an npz file of plain arrays"):
        read_npz_arrays(tmp_path / "g.npz")


def test_arrays_of_wrong_shape_are_errors(tmp_path):
    parts = {"x_data": [1.0], "x_indices": [0], "x_indptr": [0, 1], "x_shape": [4, 3]}
    np.savez(tmp_path / "g.npz", edge_index=EDGE_INDEX, y=LABELS, **parts)
    with pytest.raises(InputError, match=r"the arrays of .*g.npz are not a graph"):
        read(tmp_path / "g.npz")


def test_damaged_npz_files_raise_only_input_errors(graph, tmp_path):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, edge_index=EDGE_INDEX, x=graph.features, y=LABELS)
    content = path.read_bytes()
    num_errors = 0
    for position in range(0, len(content), 3):
        for flipped in (0x01, 0x55):
            damaged = bytearray(content)
            damaged[position] ^= flipped
            path.write_bytes(damaged)
            try:
                read(path)
            except InputError:
                num_errors += 1
    assert num_errors > 50


# --- all files and objects ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.pt", "x.pth", "x.npz", "x.graphml"])
def test_files_of_another_format_are_errors(tmp_path, name):
    (tmp_path / name).write_bytes(b"some text")
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["x.csv", "x.pt", "x.npz", "x.graphml", "x.parquet"])
def test_files_that_do_not_exist_are_errors(tmp_path, name):
    edges = tmp_path / "edges.csv" if name in ("x.csv", "x.parquet") else None
    with pytest.raises(InputError, match=f"{name} does not exist"):
        read(tmp_path / name, edges)


def test_graph_files_accept_no_edge_table_and_no_columns(graph, tmp_path, write_tables):
    torch.save(graph.to_pyg(), tmp_path / "g.pt")
    with pytest.raises(InputError, match=r"g.pt already contains edges; remove the edge table"):
        read(tmp_path / "g.pt", write_tables()[1])
    with pytest.raises(InputError, match=r"g.pt has no named columns; remove label"):
        read(tmp_path / "g.pt", columns=Columns(label="kind"))


def test_graphs_and_inputs_are_returned_unchanged(graph):
    found = read(graph)
    assert found.graph is graph
    assert read(found) is found


def test_other_objects_are_errors():
    with pytest.raises(InputError, match="int"):
        read(3)
