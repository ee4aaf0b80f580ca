"""The graph: what is cleaned, what is refused, and the ways in and out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from dcgst.errors import InputError
from dcgst.graph import Graph

X = np.eye(4)


def test_one_directional_edges_count_in_both():
    graph = Graph.from_edges([[0, 1], [1, 2]], X)
    assert graph.num_edges == 2
    assert graph.adjacency[1, 0] == graph.adjacency[2, 1] == 1
    assert graph.notes == ("2 one-directional edges made symmetric",)


def test_repeated_edges_and_loops_are_dropped_and_noted():
    graph = Graph.from_edges([[0, 0, 1, 2], [1, 1, 0, 2]], X)
    assert graph.num_edges == 1
    assert set(graph.notes) == {"1 repeated edges merged", "1 self-loops dropped"}


def test_of_repeated_weights_the_largest_is_kept():
    graph = Graph.from_edges([[0, 0, 1], [1, 1, 0]], X, weights=[2.0, 5.0, 3.0])
    assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 5
    assert graph.weighted


def test_edges_of_weight_zero_are_no_edges():
    graph = Graph.from_edges([[0, 1], [1, 2]], X, weights=[0.0, 1.0])
    assert graph.num_edges == 1
    assert "1 edges of weight 0 dropped" in graph.notes


def test_isolated_nodes_and_edgeless_graphs_are_kept():
    assert Graph.from_edges([[0], [1]], X).degrees.tolist() == [1, 1, 0, 0]
    assert Graph.from_edges(np.zeros((2, 0), int), X).num_edges == 0


def test_whole_numbers_of_any_kind_are_labels():
    for labels in ([0.0, 1.0, -1.0, 0.0], np.array([[0], [1], [-1], [0]])):
        assert Graph.from_edges([[0], [1]], X, labels).labels.tolist() == [0, 1, -1, 0]
    with pytest.raises(InputError, match="integer class codes"):
        Graph.from_edges([[0], [1]], X).with_labels([1.7, 0, 0, 0])


def test_unused_edge_attributes_are_noted():
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1, 2))
    assert "edge_attr is not used" in Graph.from_pyg(data).notes


def test_ids_of_mixed_kinds():
    graph = Graph.from_edges([[0], [1]], X, ids=np.array([1, "1", "a", 2], dtype=object))
    assert graph.ids.tolist() == [1, "1", "a", 2]


def test_labels_default_to_unknown():
    graph = Graph.from_edges([[0], [1]], X)
    assert (graph.labels == -1).all()
    assert graph.num_classes == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [[0], [4]]}, r"edge 0 joins nodes 0 and 4.*0 … 3"),
        ({"edges": [[0.5], [1.0]]}, "node positions, got float64"),
        ({"weights": [-1.0]}, r"edge 0 has weight -1.0"),
        ({"weights": [np.nan]}, "finite"),
        ({"weights": [1.0, 2.0]}, "1 edges but 2 edge weights"),
        (
            {"features": np.array([[0], [np.nan], [np.inf], [0]])},
            "2 feature values.*node 1, column 0",
        ),
        ({"features": sp.csr_array([[0, 0], [0, np.nan], [0, 0]])}, "node 1, column 1"),
        ({"features": np.array([["a"], ["b"], ["c"], ["d"]])}, "must be numbers"),
        ({"features": np.zeros((4, 0))}, "at least one column"),
        ({"labels": [0, 1, -2, 0]}, r"node 2 has label -2"),
        (
            {"labels": [0, 1, 5, 0], "class_names": ["a", "b"]},
            r"node 2 has label 5; allowed are 0 … 1",
        ),
        ({"labels": [0.5, 1.0, 0.0, 0.0]}, "integer class codes"),
        ({"labels": ["a", "b", "a", "b"]}, r"numpy.unique\(labels, return_inverse=True\)"),
        ({"labels": np.eye(4)}, r"one class code per node, got shape \(4, 4\)"),
        ({"edges": [[0, 1], [1, 2], [2, 3]]}, "transpose it"),
        ({"features": [[1, 2], [3]]}, "rows of equal length"),
        ({"labels": [0, 1]}, "4 nodes but labels"),
        ({"ids": ["a", "b", "a", "c"]}, r"'a' occurs more than once, at nodes 0 and 2"),
        ({"ids": [1.5, 2.5, 3.5, 4.5]}, "strings or integers"),
        ({"masks": {"train": np.ones(3, bool)}}, "mask 'train' must be 4 booleans"),
    ],
)
def test_bad_input_says_what_and_where(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph.from_edges(**{"edges": [[0], [1]], "features": X, **arguments})


def test_the_constructor_refuses_what_is_not_clean():
    clean = Graph.from_edges([[0], [1]], X)
    parts = {
        "features": clean.features,
        "labels": clean.labels,
        "class_names": (),
        "ids": clean.ids,
    }
    for matrix, message in (
        (sp.csr_array(np.triu(np.ones((4, 4)), 1)), "symmetric"),
        (sp.csr_array(np.eye(4)), "self-loops"),
        (sp.csr_array(-np.ones((4, 4)) + np.eye(4)), "positive"),
        (sp.csr_array(np.ones((4, 3))), "square"),
        (
            sp.csr_array((np.ones(4), [1, 1, 0, 0], [0, 2, 4, 4, 4]), shape=(4, 4)),
            "each entry once",
        ),
    ):
        with pytest.raises(InputError, match=message):
            Graph(adjacency=matrix, **parts)


def test_a_graph_cannot_be_changed(shifted):
    with pytest.raises(ValueError, match="read-only"):
        shifted.labels[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        shifted.adjacency.data[0] = 2
    with pytest.raises(AttributeError):
        shifted.name = "other"


def test_building_a_graph_leaves_the_users_arrays_writeable():
    features, labels = np.ones((4, 2), np.float32), np.zeros(4, np.int64)
    sparse = sp.csr_array(features)
    Graph.from_edges([[0], [1]], features, labels)
    Graph.from_edges([[0], [1]], sparse, labels)
    assert features.flags.writeable
    assert labels.flags.writeable
    assert sparse.data.flags.writeable


def test_pyg_round_trip(shifted):
    again = Graph.from_pyg(shifted.to_pyg())
    assert abs(again.adjacency - shifted.adjacency).nnz == 0
    np.testing.assert_array_equal(again.features, shifted.features)
    np.testing.assert_array_equal(again.labels, shifted.labels)
    np.testing.assert_array_equal(again.masks["train"], shifted.masks["train"])


def test_pyg_bags_of_words_become_sparse_and_weights_survive():
    x = torch.zeros(4, 30)
    x[0, 0] = 1
    edges = torch.tensor([[0, 1], [1, 0]])
    graph = Graph.from_pyg(Data(x=x, edge_index=edges, edge_weight=torch.tensor([2.0, 2.0])))
    assert sp.issparse(graph.features)
    assert graph.to_pyg().edge_weight.tolist() == [2, 2]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_pyg_features_of_any_layout(layout):
    x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    data = Data(x=x.to_sparse(layout=layout), edge_index=torch.tensor([[0], [1]]))
    np.testing.assert_array_equal(Graph.from_pyg(data).features.toarray(), x.numpy())


def test_pyg_data_without_features_is_refused():
    with pytest.raises(InputError, match="x and edge_index"):
        Graph.from_pyg(Data(edge_index=torch.tensor([[0], [1]])))


def test_scipy_matrices_of_any_kind():
    dense = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for matrix in (sp.csr_matrix(dense), sp.coo_array(dense), sp.lil_matrix(dense)):
        assert Graph.from_scipy(matrix, np.eye(3)).num_edges == 2
    with pytest.raises(InputError, match="square"):
        Graph.from_scipy(sp.csr_array(np.ones((2, 3))), np.eye(2))


def test_homophily_counts_known_ends_only():
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 3]], X, [0, 0, 1, -1])
    assert graph.homophily() == 0.5
    assert np.isnan(Graph.from_edges([[0], [1]], X).homophily())
