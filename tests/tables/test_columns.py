"""The roles of columns are guessed, given, and checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcgst.errors import InputError
from dcgst.tables import Columns, read

NODES = "{id},size,{label}\na,1,x\nb,2,y\nc,4,\n"
EDGES = "source,target\na,b\nb,c\n"


@pytest.mark.parametrize("name", ["id", "node_id", "nodeid", "node", "key", "name", "ID", "Node"])
def test_the_id_column_is_guessed_by_its_name(write_tables, name):
    # Column code has the same values, so edges refer to it as well.
    found = read(*write_tables(f"code,{name},label\nc,a,x\na,b,y\nb,c,\n", EDGES))
    assert found.columns.id == name
    assert found.notes[0] == f"id: column {name!r}"


def test_the_id_column_is_guessed_by_the_ids_of_the_edges(write_tables):
    nodes = "code,who,label\nk,a,x\nl,b,y\nm,c,\n"
    assert read(*write_tables(nodes, EDGES)).columns.id == "who"
    half_known = "source,target\nb,c\ny,z\n"  # 2 of 4 ids: not more than half
    with pytest.raises(InputError, match="no edge between two different nodes"):
        read(*write_tables(nodes, half_known), drop_unknown=True)


def test_else_the_id_column_is_the_first_with_unique_values(write_tables):
    nodes = "kind,code,who,label\nk,1,a,x\nk,2,b,y\nk,,c,\n"
    found = read(*write_tables(nodes, "source,target\na,b\nz,y\nx,w\n"), drop_unknown=True)
    assert found.columns.id == "who"
    with pytest.raises(InputError, match=r"no column of .*nodes.csv can be the id column"):
        read(*write_tables("a,b\n1,1\n1,1\n"))


@pytest.mark.parametrize("name", ["label", "class", "y", "target", "labels", "category", "Class"])
def test_the_label_column_is_guessed_by_its_name(write_tables, name):
    found = read(*write_tables(NODES.format(id="id", label=name), EDGES))
    assert found.columns.label == name
    assert f"label: column {name!r}" in found.notes


def test_a_missing_label_column_is_an_error_only_if_labels_are_needed(write_tables):
    paths = write_tables("id,size,kind\na,1,x\nb,2,y\nc,4,x\n", EDGES)
    message = r"cannot guess the label column of .*nodes.csv; name it with label; .*: size, kind$"
    with pytest.raises(InputError, match=message):
        read(*paths)
    assert (read(*paths, labels_needed=False).graph.labels == -1).all()
    absent = Columns(label="topic")
    with pytest.raises(InputError, match=r"nodes.csv has no column 'topic'"):
        read(*paths, absent)
    assert read(*paths, absent, labels_needed=False).columns.label is None


@pytest.mark.parametrize(
    "header", ["source,target", "src,dst", "from,to", "u,v", "node1,node2", "id1,id2", "U,V"]
)
def test_edge_ends_are_guessed_by_their_names(write_tables, header):
    source, target = header.split(",")
    edges = f"kind,{target},{source}\nx,b,a\nx,c,b\n"
    found = read(*write_tables(NODES.format(id="id", label="label"), edges))
    assert (found.columns.source, found.columns.target) == (source, target)
    assert not any(note.startswith("edges:") for note in found.notes)
    assert "columns of edges.csv not used: kind" in found.notes


def test_else_edge_ends_are_the_first_two_columns(write_tables):
    found = read(*write_tables(NODES.format(id="id", label="y"), "citing,cited\na,b\nb,c\n"))
    assert (found.columns.source, found.columns.target) == ("citing", "cited")
    assert "edges: source column 'citing', target column 'cited'" in found.notes
    found = read(*write_tables(NODES.format(id="id", label="y"), "cited,source\na,b\nb,c\n"))
    assert (found.columns.source, found.columns.target) == ("cited", "source"), "half a pair"


@pytest.mark.parametrize("name", ["weight", "weights", "w", "Weight"])
def test_the_weight_column_is_guessed_by_its_name(write_tables, name):
    edges = f"source,target,{name}\na,b,2\nb,c,1\n"
    found = read(*write_tables(NODES.format(id="id", label="y"), edges))
    assert found.columns.weight == name
    assert f"weight: column {name!r}" in found.notes
    assert found.graph.adjacency[0, 1] == 2


def test_given_columns_are_used_without_notes(write_tables):
    nodes = "id,who,age,size,label,kind\n1,a,30,1,q,x\n2,b,40,2,q,y\n3,c,50,4,q,\n"
    edges = "source,target,a,b,w,times\n1,2,a,b,9,2.5\n1,2,b,c,9,1\n"
    columns = Columns(id="who", label="kind", source="a", target="b", weight="times")
    found = read(*write_tables(nodes, edges), columns)
    assert found.graph.ids.tolist() == ["a", "b", "c"]
    assert found.graph.class_names == ("x", "y")
    assert found.graph.adjacency[0, 1] == 2.5
    assert found.columns == replace(columns, edge_type="none", weight_scale=0.0)
    assert not any(note.startswith(("id:", "label:", "edges:", "weight:")) for note in found.notes)


def test_feature_columns_are_all_others_or_as_given(write_tables):
    paths = write_tables("id,age,size,label\na,30,1,x\nb,40,2,y\nc,50,4,\n", EDGES)

    def names(**options):
        return [column.name for column in read(*paths, Columns(**options)).encoder.columns]

    assert names() == ["age", "size"]
    assert names(features=["size"]) == ["size"]
    assert names(ignore=["size"]) == ["age"]
    assert names(features=["size", "age"], ignore=["size"]) == ["age"]


def test_exchanged_tables_are_named(write_tables):
    nodes, edges = write_tables(NODES.format(id="id", label="label"), EDGES)
    message = r"edges.csv has no column 'label', but .*nodes.csv has; the node table comes first"
    with pytest.raises(InputError, match=message):
        read(edges, nodes, Columns(label="label"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(label="lable"), r"nodes.csv has no column 'lable'"),
        (Columns(id="key"), r"nodes.csv has no column 'key'"),
        (Columns(label="id"), "column 'id' cannot be both the id and the label column"),
        (Columns(source="source"), "name both ends of the edges"),
        (Columns(target="target"), "name both ends of the edges"),
        (Columns(source="x", target="target"), r"edges.csv has no column 'x'"),
        (Columns(source="source", target="x"), r"edges.csv has no column 'x'"),
        (Columns(weight="x"), r"edges.csv has no column 'x'"),
        (Columns(features=["x"]), r"nodes.csv has no column 'x'"),
        (Columns(ignore=["x"]), r"nodes.csv has no column 'x'"),
        (Columns(kinds={"x": "text"}), r"nodes.csv has no column 'x'"),
        (Columns(features=["label"]), "column 'label' is the id or label column"),
        (Columns(kinds={"id": "number"}), "column 'id' is the id or label column"),
        (
            Columns(kinds={"city": "number"}),
            r"line 2: column 'city' should contain numbers, got 'Rome'",
        ),
    ],
)
def test_wrong_column_names_are_errors(write_tables, columns, message):
    with pytest.raises(InputError, match=message):
        read(*write_tables(), columns)


def test_a_column_of_texts_is_no_label_column(write_tables):
    rows = "".join(f"{i},{i % 7},comment {i}\n" for i in range(150))
    paths = write_tables(f"id,size,note\n{rows}", "source,target\n1,2\n")
    with pytest.raises(
        InputError, match=r"'note' has 150 classes in 150 labels, most of them once"
    ):
        read(*paths, Columns(label="note"))


@pytest.mark.parametrize("days", [0, -1.0, float("inf"), float("nan")])
def test_a_half_life_is_a_finite_number_of_days(days):
    with pytest.raises(InputError, match="half-life must be a finite number of days"):
        Columns(half_life=days)
