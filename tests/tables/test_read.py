"""Node and edge tables become graphs, or errors that say what to fix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.tables import Columns, read

from .conftest import EDGES, NODES


def dense(graph: Graph) -> np.ndarray:
    """Return the features of a graph as a dense array."""
    return sp.csr_array(graph.features).toarray()


def test_tables_become_a_graph_with_notes(write_tables):
    found = read(*write_tables())
    graph = found.graph
    assert graph.ids.tolist() == ["007", "8", "9", "10"], "ids stay text"
    assert graph.class_names == ("fruit", "wheels")
    assert graph.labels.tolist() == [0, -1, -1, 1]
    assert graph.adjacency.nnz == 4
    assert graph.name == "nodes"
    assert not found.spectral
    assert found.notes == (
        "id: column 'id'",
        "label: column 'label'",
        "feature age: number, standardized, missing values: 1 (a feature of their own)",
        "feature city: category, 2 values",
        "feature about: text, 7 words",
        *graph.notes,
    )


def test_features_agree_with_the_encoder(write_tables):
    found = read(*write_tables())
    features = dense(found.graph)
    about, age, city = found.encoder.columns
    # Ages 31, 45 and 52: mean 128 / 3, standard deviation sqrt(686) / 3
    assert (age.mean, age.std) == pytest.approx((128 / 3, 686**0.5 / 3))
    expected = np.array([[-35, 0, 7, 28], [0, 686**0.5, 0, 0]]) / 686**0.5  # and what is missing
    np.testing.assert_allclose(features[:, 7:9], age.weight * expected.T, atol=1e-6)
    assert city.values == ("Oslo", "Rome")
    one_hot = [[0, 1], [1, 0], [0, 1], [1, 0]]
    np.testing.assert_allclose(features[:, 9:], city.weight * np.array(one_hot), rtol=1e-6)
    assert about.values == ("and", "bikes", "cars", "fast", "green", "pears", "red")
    np.testing.assert_allclose((features[:, :7] ** 2).sum(axis=1), about.weight**2, rtol=1e-6)


def test_a_byte_order_mark_before_the_id_column_is_removed(write_tables):
    found = read(*write_tables(b"\xef\xbb\xbf" + NODES.encode(), b"\xef\xbb\xbf" + EDGES.encode()))
    assert found.columns.id == "id"
    assert found.columns.source == "source"
    assert found.graph.ids.tolist() == ["007", "8", "9", "10"]


def test_class_names_are_in_natural_order(write_tables):
    nodes = "id,size,label\na,1,10\nb,2,9\nc,3,1\nd,4,10\ne,5,09\n"
    graph = read(*write_tables(nodes, "source,target\na,b\n")).graph
    assert graph.class_names == ("1", "09", "9", "10")
    assert graph.labels.tolist() == [3, 2, 0, 3, 1]
    nodes = "id,size,label\na,1,c10\nb,2,c9\nc,3,b\nd,4,c\n"
    graph = read(*write_tables(nodes, "source,target\na,b\n")).graph
    assert graph.class_names == ("b", "c", "c9", "c10")
    nodes = "id,size,label\na,1,x\nb,2,1\nc,3,1x\n"
    graph = read(*write_tables(nodes, "source,target\na,b\n")).graph
    assert graph.class_names == ("1", "1x", "x"), "numbers come before letters"


def test_class_names_that_differ_in_letter_case_only_are_noted(write_tables):
    nodes = "id,size,label\na,1,Red\nb,2,red\nc,3,blue\n"
    found = read(*write_tables(nodes, "source,target\na,b\n"))
    assert found.graph.num_classes == 3
    note = "classes 'Red' and 'red' differ in letter case only; use one spelling for one class"
    assert note in found.notes


@pytest.mark.parametrize("missing", ["", "NA", "nan", "NULL", "None", "n/a"])
def test_a_missing_label_is_unknown(write_tables, missing):
    nodes = f"id,size,label\na,1,x\nb,2,{missing}\nc,3,y\n"
    graph = read(*write_tables(nodes, "source,target\na,b\n")).graph
    assert graph.class_names == ("x", "y")
    assert graph.labels.tolist() == [0, -1, 1]


def test_without_feature_columns_features_are_spectral(write_tables):
    edges = "source,target\na,b\nb,c\n"
    found = read(*write_tables("id,label\na,x\nb,y\nc,\n", edges))
    assert found.spectral
    assert found.encoder is None
    assert found.graph.num_features == 3
    note = "no usable feature columns: 3 spectral features are computed from the graph"
    assert note in found.notes
    constant = read(*write_tables("id,size,label\na,1,x\nb,1,y\nc,1,\n", edges))
    assert constant.spectral
    assert "feature size: not used: all values are equal" in constant.notes
    np.testing.assert_array_equal(constant.graph.features, found.graph.features)


def test_there_are_at_most_64_spectral_features(write_tables):
    nodes = "id,label\n" + "".join(f"{number},{'xy'[number % 2]}\n" for number in range(70))
    edges = "source,target\n" + "".join(f"{number},{number + 1}\n" for number in range(69))
    assert read(*write_tables(nodes, edges)).graph.num_features == 64


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,label\na,x\na,y\n", r"nodes.csv, line 3: the id 'a' is repeated, .* in line 2; ids"),
        ("id,label\na,x\n,y\n", r"nodes.csv, line 3: the id in column 'id' is missing"),
        ("id,label\na,x\nnan,y\n", r"nodes.csv, line 3: the id in column 'id' is missing"),
        (
            'id,about,label\n\na,"one\ntwo",x\n\nb,three,y\na,four,x\n',
            r"nodes.csv, line 7: the id 'a' is repeated, it is also in line 3;",
        ),
    ],
)
def test_invalid_nodes_are_errors_with_file_and_line(write_tables, nodes, message):
    with pytest.raises(InputError, match=message):
        read(*write_tables(nodes))


def test_an_edge_table_is_required_for_a_node_table(write_tables):
    with pytest.raises(InputError, match=r"nodes.csv is a node table: an edge table is required"):
        read(write_tables()[0])


def test_a_delimiter_applies_to_both_tables(write_tables):
    nodes, edges = NODES.replace(",", "\t"), EDGES.replace(",", "\t")
    assert read(*write_tables(nodes, edges), delimiter="tab").graph.num_edges == 2
    with pytest.raises(InputError, match="has a single column"):
        read(*write_tables(nodes, edges), delimiter=";")


def test_an_encoder_and_classes_can_be_reused_on_another_graph(write_tables):
    first = read(*write_tables())
    known = {"encoder": first.encoder, "class_names": first.graph.class_names}
    grown = write_tables(NODES + "11,20,Bern,red apples,\n", EDGES + "11,9\n")
    again = read(*grown, **known)
    assert again.encoder is first.encoder
    np.testing.assert_array_equal(dense(again.graph)[:4], dense(first.graph))
    assert dense(again.graph)[4, 1:3].tolist() == [0, 0], "Bern is not a known city"
    renamed = write_tables(NODES.replace("fruit", "nuts"))
    message = r"nodes.csv, line 2: the class 'nuts' is not a class of the model; .*: fruit, wheels$"
    with pytest.raises(InputError, match=message):
        read(*renamed, **known)
    incomplete = write_tables(NODES.replace("age", "years"))
    with pytest.raises(InputError, match=r"has no column 'age'; .*: about, age, city"):
        read(*incomplete, **known)


def test_the_kinds_of_columns_can_be_given(write_tables):
    columns = Columns(kinds={"age": "category", "city": "text"}, ignore=["about"])
    found = read(*write_tables(), columns)
    assert [(c.name, c.kind) for c in found.encoder.columns] == [
        ("age", "category"),
        ("city", "text"),
    ]


def test_numbers_that_are_not_finite_count_as_missing(write_tables):
    found = read(*write_tables(NODES.replace("45", "inf")))
    note = next(note for note in found.notes if note.startswith("feature age"))
    assert "1 values cannot be read, like 'inf' in line 4; they count as missing" in note
