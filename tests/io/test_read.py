"""Tables and files of all kinds become graphs, or errors that say what to mend."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst import Columns, Graph, InputError, read, synthetic
from dcgst.io.features import Recipe

NODES = """id,age,city,about,label
007,31,Rome,red apples and green pears,fruit
8,,Oslo,red cars and fast bikes,
9,45,Rome,green pears taste sweet,
10,52,Oslo,fast cars and loud bikes,wheels
"""
EDGES = "source,target\n007,9\n8,10\n9,007\n"


@pytest.fixture
def tables(tmp_path):
    def write(nodes: str | bytes = NODES, edges: str | bytes = EDGES):
        for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(raw)
        return tmp_path / "nodes.csv", tmp_path / "edges.csv"

    return write


def test_columns_are_guessed_and_told(tables):
    found = read(*tables())
    graph = found.graph
    assert graph.ids.tolist() == ["007", "8", "9", "10"], "ids that look like numbers stay text"
    assert graph.class_names == ("fruit", "wheels")
    assert graph.labels.tolist() == [0, -1, -1, 1]
    assert graph.adjacency.nnz == 4
    assert (found.columns.id, found.columns.label) == ("id", "label")
    text = "\n".join(found.notes)
    assert "id: column 'id'" in text
    assert "label: column 'label'" in text
    assert "feature age: number, scaled, 1 missing set to the mean" in text
    assert "feature city: category, 2 values" in text
    assert "feature about: text, tf-idf of" in text
    assert "one-directional edges made symmetric" in text


def test_features_are_what_the_notes_say(tables):
    found = read(*tables())
    _, city, about = found.recipe.columns
    features = found.graph.features
    features = features.toarray() if sp.issparse(features) else features
    known = np.array([31, 45, 52])
    assert features[0, 0] == pytest.approx((31 - known.mean()) / known.std(), abs=1e-5)
    assert features[1, 0] == 0, "a missing number is the mean"
    assert city.values == ("Oslo", "Rome")
    assert features[:, 1:3].tolist() == [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert about.values == ("and", "bikes", "cars", "fast", "green", "pears", "red")
    np.testing.assert_allclose((features[:, 3:] ** 2).sum(axis=1), 1, rtol=1e-5)
    again = Recipe.from_json(found.recipe.to_json())
    assert again == found.recipe


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_other_delimiters_are_guessed(tables, mark, name):
    graph = read(*tables(NODES.replace(",", mark), EDGES.replace(",", mark))).graph
    assert graph.num_nodes == 4


def test_quotes_bom_and_blank_lines(tables):
    nodes = '\ufeffid,text,label\n\na,"one, two\nthree",x\nb,"say ""hi""",\nc,,y\n'
    found = read(*tables(nodes, "a,b\na,b\nb,c\n"), Columns(text=["text"]))
    assert found.graph.ids.tolist() == ["a", "b", "c"]
    assert "has no header: its first line is an edge" in "\n".join(found.notes)


def test_columns_can_be_named(tables):
    nodes = NODES.replace("id,age", "who,age").replace(",label", ",kind")
    edges = EDGES.replace("source,target", "a,b,w").replace("007,9", "007,9,2.5", 1)
    edges = edges.replace("8,10", "8,10,1").replace("9,007\n", "9,007,1\n")
    columns = Columns(id="who", label="kind", source="a", target="b", weight="w", features=["age"])
    found = read(*tables(nodes, edges), columns)
    assert found.graph.num_features == 1
    assert found.graph.adjacency[0, 2] == 2.5


def test_without_features_they_come_from_the_graph(tables):
    found = read(*tables("id,label\na,x\nb,y\nc,\n", "source,target\na,b\nb,c\n"))
    assert found.spectral
    assert "made from the graph itself" in "\n".join(found.notes)
    assert found.graph.num_features == 3
    constant = read(*tables("id,size,label\na,1,x\nb,1,y\nc,1,\n", "source,target\na,b\nb,c\n"))
    assert constant.spectral
    assert "feature size: not used, since it is the same everywhere" in "\n".join(constant.notes)


def test_edges_to_unknown_nodes_can_be_left_out(tables):
    paths = tables(edges=EDGES + "8,99\n")
    with pytest.raises(InputError, match=r"edges.csv, line 5: no node has the id '99'"):
        read(*paths)
    found = read(*paths, drop_unknown=True)
    assert "1 edges to unknown nodes left out" in found.notes


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (b"id,label\n\xe4,x\n", EDGES, r"nodes.csv, line 2 is not UTF-8"),
        ("", EDGES, "nodes.csv is empty"),
        ("  \n \n", EDGES, "nodes.csv is empty"),
        ("id,label\n", EDGES, "has a header, but no rows"),
        ("id:label\na:x\n", EDGES, "has a single column"),
        ("id,label\na,x\na,y\n", EDGES, r"line 3: the id 'a' is there already, in line 2"),
        ("id,label\na,x\n,y\n", EDGES, r"line 3: the id \('id'\) is empty"),
        ("id,id\na,x\n", EDGES, "more than one column 'id'"),
        ("id,label\na,x,y\n", EDGES, r"line 2 has 3 values, the header 2 columns"),
        ('id,label\n"a,x\n', EDGES, "check the quotes"),
        ("id,size\na,1\nb,2\n", EDGES, "which column of .* holds the labels"),
        ("a,b\n1,1\n1,1\n", EDGES, "no column of .* has a different value in every row"),
        (NODES, "source,target\n", "edges.csv has a header, but no rows"),
        (NODES, "source,target\n8,8\n", "joins no two nodes"),
        (NODES, "source,target\n7,8\n", r"no node has the id '7' \(there is '007'\)"),
        (NODES, "source,target\n,8\n", r"it is empty"),
        (NODES, "source,target,weight\n8,9,x\n", "'weight' is to be a number, got 'x'"),
        (NODES, "source,target,weight\n8,9,-1\n", "the weight must be a number, not negative"),
        (NODES, "source,target,weight\n8,9,\n", "the weight must be a number"),
        (NODES.replace("45", "inf"), EDGES, r"line 4: 'age' is infinite or too large"),
        (NODES.replace("45", "1e300"), EDGES, r"line 4: 'age' is infinite or too large"),
    ],
)
def test_bad_tables_are_named_with_file_line_and_remedy(tables, nodes, edges, message):
    with pytest.raises(InputError, match=message):
        read(*tables(nodes, edges))


def test_columns_that_are_nearly_something_say_what_they_are(tables):
    rows = [
        f"c{i:02d};{i},5;{'n.a.' if i == 7 else i * 1.5};{'ab'[i % 2] if i < 9 else ''}"
        for i in range(90)
    ]
    nodes = "customer;spend;size;label\n" + "\n".join(rows) + "\n"
    edges = "source;target\n" + "\n".join(f"c{i:02d};c{i + 1:02d}" for i in range(89)) + "\n"
    notes = "\n".join(read(*tables(nodes, edges)).notes)
    assert "feature spend: not used: numbers with a decimal comma; write a point instead" in notes
    assert "feature size: not used: numbers but for 'n.a.' in line 9" in notes
    with pytest.raises(InputError, match="write a point for the decimal comma"):
        read(*tables(nodes, edges), Columns(number=["spend"]))
    twice = nodes.replace("c05;", "c04;")
    with pytest.raises(InputError, match=r"line 7: the id 'c04' is there already, in line 6"):
        read(*tables(twice, edges))
    zeros = edges.replace("c", "00") + "000;001\n"
    with pytest.raises(InputError, match="no node has the id"):
        read(*tables(nodes, zeros))
    capital = nodes.replace(";a\n", ";A\n", 1)
    assert "differ in capitals only" in "\n".join(read(*tables(capital, edges)).notes)


def test_columns_named_wrongly(tables):
    paths = tables()
    with pytest.raises(InputError, match=r"unknown column of .*nodes.csv 'lable'"):
        read(*paths, Columns(label="lable"))
    with pytest.raises(InputError, match=r"line 2: 'city' is to be a number, got 'Rome'"):
        read(*paths, Columns(number=["city"]))
    with pytest.raises(InputError, match="both ends"):
        read(*paths, Columns(source="source"))
    with pytest.raises(InputError, match=r"unknown column of .*edges.csv 'x'"):
        read(*paths, Columns(source="x", target="target"))


def test_files_that_are_not_there_or_no_files(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        read(tmp_path / "none.csv", tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path, tmp_path)
    (tmp_path / "nodes.csv").write_text(NODES)
    with pytest.raises(InputError, match="the table of edges is needed"):
        read(tmp_path / "nodes.csv")
    for name in ("x.pt", "x.npz", "x.graphml", "x.parquet"):
        (tmp_path / name).write_bytes(b"not at all")
        with pytest.raises(InputError, match=name):
            read(tmp_path / name, tmp_path / "nodes.csv")


def test_parquet_equals_csv(tables, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    plain = read(*tables()).graph
    nodes = {
        "id": ["007", "8", "9", "10"],
        "age": [31.0, None, 45.0, 52.0],
        "city": ["Rome", "Oslo", "Rome", "Oslo"],
        "about": [line.split(",")[3] for line in NODES.splitlines()[1:]],
        "label": ["fruit", None, None, "wheels"],
    }
    parquet.write_table(arrow.table(nodes), tmp_path / "n.parquet")
    edges = {"source": ["007", "8", "9"], "target": ["9", "10", "007"]}
    parquet.write_table(arrow.table(edges), tmp_path / "e.parquet")
    graph = read(tmp_path / "n.parquet", tmp_path / "e.parquet").graph
    assert graph.ids.tolist() == plain.ids.tolist()
    np.testing.assert_array_equal(graph.labels, plain.labels)
    assert abs(sp.csr_array(graph.features) - sp.csr_array(plain.features)).max() < 1e-6


def test_graphml_and_networkx(tmp_path):
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
        assert found.adjacency[0, 1] == 2.0
        assert found.num_features == 1


def test_networkx_attributes_that_are_missing_or_have_our_names():
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
    graph.nodes[0]["size"] = [1, 2]
    with pytest.raises(InputError, match="column 'size' of graph holds lists"):
        read(graph)


def test_edge_lists_without_a_header(tables):
    nodes = "id,size,label\n1,2,x\n2,1,y\n3,4,\n"
    found = read(*tables(nodes, "1,2,0.5\n2,3,0.25\n"))
    assert found.graph.adjacency[0, 1] == 0.5
    assert found.graph.num_edges == 2
    twice = read(*tables(nodes, "1,1\n2,3\n"))
    assert twice.graph.num_edges == 1
    tab = tables(nodes.replace(",", "\t"), "1\t2\n2\t3\n")
    assert read(*tab, delimiter="tab").graph.num_edges == 2
    with pytest.raises(InputError, match="one character or 'tab', got 'comma'"):
        read(*tab, delimiter="comma")


def test_damaged_bytes_are_named(tmp_path):
    graph = synthetic(50, 3, features=4, labels_per_class=2)
    edges = np.stack(graph.adjacency.tocoo().coords)
    path = tmp_path / "g.npz"
    np.savez_compressed(path, edge_index=edges, x=graph.features, y=graph.labels)
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read(path)
        except InputError:
            refused += 1
    assert refused > 10
    torch.save({"x": [[1.0]], "edge_index": torch.zeros(2, 1, dtype=int)}, tmp_path / "x.pt")
    with pytest.raises(InputError, match=r"x\.pt"):
        read(tmp_path / "x.pt")


def test_pyg_files_are_read_without_running_them(tmp_path):
    graph = synthetic(50, 3, features=4, labels_per_class=2)
    data = graph.to_pyg()
    torch.save(data, tmp_path / "whole.pt")
    torch.save(data.to_dict(), tmp_path / "parts.pt")
    for name in ("whole.pt", "parts.pt"):
        found = read(tmp_path / name).graph
        assert found.num_edges == graph.num_edges
        np.testing.assert_allclose(sp.csr_array(found.features).toarray(), data.x, rtol=1e-6)

    class Evil:
        def __reduce__(self):
            return print, ("ran",)

    torch.save(Evil(), tmp_path / "evil.pt")
    with pytest.raises(InputError, match="not PyG data that can be read safely"):
        read(tmp_path / "evil.pt")


def test_what_has_no_columns_or_edges_already_takes_no_names_of_them(tmp_path, tables):
    torch.save(synthetic(50, 3, features=4).to_pyg(), tmp_path / "g.pt")
    with pytest.raises(InputError, match="has no columns"):
        read(tmp_path / "g.pt", columns=Columns(label="kind"))
    with pytest.raises(InputError, match="one file too many"):
        read(tmp_path / "g.pt", tables()[1])


def test_npz_dense_and_graphs_themselves(tmp_path):
    graph = synthetic(50, 3, features=4, labels_per_class=2)
    coo = graph.adjacency.tocoo()
    edges = np.stack(coo.coords)
    np.savez(tmp_path / "g.npz", edge_index=edges, x=graph.features, y=graph.labels)
    assert read(tmp_path / "g.npz").graph.num_edges == graph.num_edges
    assert read(graph).graph is graph
    assert isinstance(read(graph.to_pyg()).graph, Graph)
    with pytest.raises(InputError, match="a Graph or PyG Data is needed"):
        read(3)


def test_a_known_recipe_and_known_classes_are_kept_to(tables, tmp_path):
    first = read(*tables())
    grown = NODES + "11,20,Bern,red apples,\n"
    nodes, edges = tables(grown, EDGES + "11,9\n")
    again = read(nodes, edges, recipe=first.recipe, class_names=first.graph.class_names)
    assert again.graph.num_features == first.graph.num_features
    left, right = (sp.csr_array(g.features).toarray() for g in (again.graph, first.graph))
    np.testing.assert_allclose(left[:4], right, rtol=1e-6)
    other = tables(NODES.replace("fruit", "nuts"))
    with pytest.raises(InputError, match="the class 'nuts' is not one of the model's"):
        read(*other, recipe=first.recipe, class_names=first.graph.class_names)
    lacking = tables(NODES.replace("age", "years"))
    with pytest.raises(InputError, match="lacks the column 'age'"):
        read(*lacking, recipe=first.recipe, class_names=first.graph.class_names)
