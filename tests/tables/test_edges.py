"""Edge tables become pairs of nodes and weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcgst.errors import InputError
from dcgst.tables import read
from dcgst.tables.edges import EdgeColumns, read_edges
from dcgst.tables.table import Table

NODES = "id,size,label\n1,2,x\n2,1,y\n3,4,\n4,3,\n"


def test_of_repeated_edges_the_largest_weight_is_kept(write_tables):
    edges = "source,target,weight\n1,2,1\n1,2,3\n1,2,2\n2,1,2.5\n3,4,5\n4,3,7\n2,3,0.5\n"
    adjacency = read(*write_tables(NODES, edges)).graph.adjacency.toarray()
    assert adjacency.tolist() == [
        [0, 3, 0, 0],
        [3, 0, 0.5, 0],
        [0, 0.5, 0, 7],
        [0, 0, 7, 0],
    ]


def test_an_unknown_node_id_is_an_error_with_file_and_line(write_tables):
    edges = "source,target\n1,2\n\n3,99\n"
    with pytest.raises(InputError, match=r"edges.csv, line 4: no node has the id '99'; fix it"):
        read(*write_tables(NODES, edges))


def test_edges_with_unknown_node_ids_are_dropped_and_counted(write_tables):
    edges = "source,target,weight\n1,2,5\n1,97,6\n98,2,7\n97,98,8\n2,3,9\n"
    found = read(*write_tables(NODES, edges), drop_unknown=True)
    assert "edges with unknown node ids dropped: 3" in found.notes
    assert found.graph.num_edges == 2
    assert (found.graph.adjacency[0, 1], found.graph.adjacency[1, 2]) == (5, 9)


def test_there_is_no_note_if_no_edge_is_dropped(write_tables):
    found = read(*write_tables(NODES, "source,target\n1,2\n"), drop_unknown=True)
    assert not any("dropped" in note for note in found.notes)


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [
        ("7", r"'7' \(did you mean '007'\?\)"),
        ("08", r"'08' \(did you mean '8'\?\)"),
        ("8.0", r"'8.0' \(did you mean '8'\?\)"),
        ("A", r"'A' \(did you mean 'a'\?\)"),
        ("b", r"'b' \(did you mean 'B'\?\)"),
        ("00", r"'00' \(did you mean '0'\?\)"),
        ("", r"'' \(the cell is empty\)"),
        ("5", r"'5'; fix it"),
    ],
)
def test_errors_suggest_a_similar_id(write_tables, unknown, hint):
    nodes = "id,label\n007,x\n8,y\na,\nB,\n0,\n"
    with pytest.raises(InputError, match=f"line 2: no node has the id {hint}"):
        read(*write_tables(nodes, f"source,target\n8,{unknown}\n"))


@pytest.mark.parametrize("first", ["1,2", "2,2"])
def test_an_edge_table_without_a_header_is_recognized(write_tables, first):
    found = read(*write_tables(NODES, f"{first}\n2,3\n3,4\n"))
    expected = {"1,2": 3, "2,2": 2}
    assert found.graph.num_edges == expected[first]
    assert (found.columns.source, found.columns.target) == ("column 1", "column 2")


def test_a_graph_of_two_nodes_needs_no_header(write_tables):
    found = read(*write_tables("id,size,label\n1,2,x\n2,1,y\n", "1,2\n2,1\n"))
    assert found.graph.num_edges == 1
    assert found.columns.source == "column 1"


def test_a_missing_header_is_noted(write_tables):
    notes = read(*write_tables(NODES, "1,2\n2,3\n")).notes
    assert "edges.csv has no header: its first line is read as an edge" in notes


def test_the_third_column_without_a_header_is_the_weight(write_tables):
    adjacency = read(*write_tables(NODES, "1,2,0.5\n2,3,0.25\n")).graph.adjacency
    assert (adjacency[0, 1], adjacency[1, 2]) == (0.5, 0.25)


def test_line_numbers_are_right_without_a_header(write_tables):
    with pytest.raises(InputError, match=r"edges.csv, line 3: column 'column 3' must .* got 'x'"):
        read(*write_tables(NODES, "\n\n1,2,x\n2,3,1\n"))
    with pytest.raises(InputError, match=r"edges.csv, line 5: no node has the id '9'"):
        read(*write_tables(NODES, "\n\n1,2\n\n9,3\n"))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("source,target\n", r"edges.csv has a header but no rows"),
        ("source,target\n2,2\n", r"edges.csv has no edge between two different nodes"),
        ("source,target,weight\n1,2,x\n", r"line 2: column 'weight' must .* numbers, got 'x'"),
        ("source,target,weight\n1,2,1\n1,3,-1\n", r"line 3: the edge weight .* got '-1'"),
        ("source,target,weight\n1,2,1\n1,3,\n", r"line 3: the edge weight .* got ''"),
        ('source,target,weight\n1,2,"0,5"\n', r"line 2: .*write a decimal point"),
    ],
)
def test_invalid_edge_tables_are_errors(write_tables, edges, message):
    with pytest.raises(InputError, match=message):
        read(*write_tables(NODES, edges))


def test_a_weight_of_0_is_no_error_and_no_edge(write_tables):
    found = read(*write_tables(NODES, "source,target,weight\n1,2,0\n2,3,1\n"))
    assert found.graph.num_edges == 1
    assert found.graph.adjacency[1, 2] == 1


def test_an_error_in_a_weight_names_the_right_line_after_dropped_edges(write_tables):
    edges = "source,target,weight\n1,99,1\n1,2,1\n1,3,-1\n"
    with pytest.raises(InputError, match=r"edges.csv, line 4: the edge weight in column 'weight'"):
        read(*write_tables(NODES, edges), drop_unknown=True)


def test_it_is_an_error_if_all_edges_are_dropped(write_tables):
    with pytest.raises(InputError, match="no edge between two different nodes"):
        read(*write_tables(NODES, "source,target\n1,99\n"), drop_unknown=True)


def test_unknown_ids_are_an_error_by_default():
    table = Table(Path("edges.csv"), {"u": ["a", "b"], "v": ["b", "z"]}, [2, 3])
    with pytest.raises(InputError, match=r"edges.csv, line 3: no node has the id 'z'"):
        read_edges(table, ["a", "b"], EdgeColumns("u", "v"))


def test_amounts_of_money_are_weights(write_tables):
    edges = 'source,target,weight\n1,2,$5.50\n2,3,"$1,200"\n3,4,7\n'
    adjacency = read(*write_tables(NODES, edges)).graph.adjacency
    assert (adjacency[0, 1], adjacency[1, 2], adjacency[2, 3]) == (5.5, 1200, 7)


@pytest.mark.parametrize("bad", ["", "-$3", "cheap", "$1e99"])
def test_an_amount_that_is_no_weight_is_an_error_with_its_row(write_tables, bad):
    edges = f"source,target,weight\n1,2,$5\n2,3,{bad}\n3,4,$7\n"
    with pytest.raises(InputError, match=r"line 3: the edge weight in column 'weight' must be"):
        read(*write_tables(NODES, edges))
