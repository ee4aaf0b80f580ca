"""The graph: cleaning, validation, and conversion from and to other formats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from dcgst.errors import InputError
from dcgst.graph import Graph, as_graph

X = np.eye(4)


class TestCleaning:
    def test_one_directional_edges_become_symmetric(self):
        graph = Graph.from_edges([[0, 1], [1, 2]], X)
        assert graph.num_edges == 2
        assert graph.adjacency[1, 0] == graph.adjacency[2, 1] == 1
        assert graph.notes == ("2 directed edges made undirected",)

    def test_repeated_edges_and_self_loops_are_dropped(self):
        graph = Graph.from_edges([[0, 0, 1, 2], [1, 1, 0, 2]], X)
        assert graph.num_edges == 1
        assert set(graph.notes) == {"1 repeated edges merged", "1 self-loops dropped"}

    def test_a_repeated_edge_has_its_largest_weight(self):
        graph = Graph.from_edges([[0, 0, 1], [1, 1, 0]], X, weights=[2.0, 5.0, 3.0])
        assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 5
        assert graph.weighted

    def test_edges_of_weight_zero_are_dropped(self):
        graph = Graph.from_edges([[0, 1], [1, 2]], X, weights=[0.0, 1.0])
        assert graph.num_edges == 1
        assert "1 edges of weight 0 dropped" in graph.notes
        assert not graph.weighted

    def test_isolated_nodes_and_graphs_without_edges_are_kept(self):
        assert Graph.from_edges([[0], [1]], X).degrees.tolist() == [1, 1, 0, 0]
        assert Graph.from_edges(np.zeros((2, 0), int), X).num_edges == 0

    def test_whole_numbers_of_any_type_are_labels(self):
        for labels in ([0.0, 1.0, -1.0, 0.0], np.array([[0], [1], [-1], [0]])):
            assert Graph.from_edges([[0], [1]], X, labels).labels.tolist() == [0, 1, -1, 0]
        with pytest.raises(InputError, match="integer class codes"):
            Graph.from_edges([[0], [1]], X).with_labels([1.7, 0, 0, 0])

    def test_labels_are_unknown_by_default(self):
        graph = Graph.from_edges([[0], [1]], X)
        assert (graph.labels == -1).all()
        assert graph.num_classes == 0

    def test_class_names_are_codes_by_default(self):
        assert Graph.from_edges([[0], [1]], X, [0, 2, -1, -1]).class_names == ("0", "1", "2")

    def test_ids_may_mix_integers_and_strings(self):
        graph = Graph.from_edges([[0], [1]], X, ids=np.array([1, "b", "a", 2], dtype=object))
        assert graph.ids.tolist() == [1, "b", "a", 2]
        assert graph.node_of == {"1": 0, "b": 1, "a": 2, "2": 3}

    def test_sparse_features_have_no_explicit_zeros(self):
        stored = sp.csr_array(([1.0, 0.0], [0, 1], [0, 1, 2, 2, 2]), shape=(4, 2))
        features = Graph.from_edges([[0], [1]], stored).features
        assert features.nnz == 1
        assert features.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [[0], [4]]}, r"edge 0 connects nodes 0 and 4, .* 0 … 3"),
        ({"edges": [[1, 0], [2, -1]]}, r"edge 1 connects nodes 0 and -1"),
        ({"edges": [[0.5], [1.0]]}, "node positions, got float64"),
        ({"edges": [[0, 1], [1, 2], [2, 3]]}, "transpose it"),
        ({"weights": [-1.0]}, r"edge 0 has weight -1.0"),
        ({"weights": [np.nan]}, "finite"),
        ({"weights": [1.0, 2.0]}, "1 edges but 2 edge weights"),
        ({"features": [[0], [np.nan], [np.inf], [0]]}, "2 feature values.*node 1, column 0"),
        ({"features": sp.csr_array([[0, 0], [0, np.nan], [0, 0]])}, "node 1, column 1"),
        ({"features": [["a"], ["b"], ["c"], ["d"]]}, "must be numbers"),
        ({"features": [[1, 2], [3]]}, "rows of equal length"),
        ({"features": np.zeros((4, 0))}, "at least one column"),
        ({"features": np.zeros(4)}, "4 rows of at least one column"),
        ({"labels": [0, 1, -2, 0]}, r"node 2 has label -2"),
        ({"labels": [0, 1, 5, 0], "class_names": ["a", "b"]}, "label 5; allowed are 0 … 1"),
        ({"labels": [0.5, 1.0, 0.0, 0.0]}, "integer class codes"),
        ({"labels": ["a", "b", "a", "b"]}, r"numpy.unique\(labels, return_inverse=True\)"),
        ({"labels": np.eye(4)}, r"one class code per node, got shape \(4, 4\)"),
        ({"labels": [0, 1]}, r"4 nodes but labels of shape \(2,\)"),
        ({"ids": np.array([1, "1", "a", 2], dtype=object)}, r"'1' occurs more than once"),
        ({"ids": ["a", "b", "a", "c"]}, r"'a' occurs more than once, at nodes 0 and 2"),
        ({"ids": [1.5, 2.5, 3.5, 4.5]}, "ids must be 4 strings or integers, got float64"),
        ({"ids": [1, 2]}, "ids must be 4 strings or integers"),
        ({"masks": {"train": np.ones(3, bool)}}, "mask 'train' must be 4 booleans"),
    ],
)
def test_invalid_input_is_refused_with_its_position(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph.from_edges(**{"edges": [[0], [1]], "features": X, **arguments})


class TestConstructor:
    """It validates and changes nothing."""

    clean = Graph.from_edges([[0], [1]], X)

    @pytest.mark.parametrize(
        ("adjacency", "message"),
        [
            (sp.csr_array(np.triu(np.ones((4, 4)), 1)), "symmetric"),
            (sp.csr_array(np.eye(4)), "self-loops"),
            (sp.csr_array(np.eye(4) - 1), "positive and finite"),
            (sp.csr_array(np.array([[0, np.inf], [np.inf, 0]])), "positive and finite"),
            (sp.csr_array(([0.0, 0.0], [1, 0], [0, 1, 2]), shape=(2, 2)), "positive and finite"),
            (sp.csr_array(np.ones((4, 3))), "square"),
            (sp.csr_matrix((4, 4)), "square csr_array"),
            (sp.csr_array(([1.0] * 4, [1, 1, 0, 0], [0, 2, 4, 4, 4]), shape=(4, 4)), "once"),
        ],
    )
    def test_an_adjacency_that_is_not_clean_is_refused(self, adjacency, message):
        with pytest.raises(InputError, match=message):
            replace(self.clean, adjacency=adjacency)

    @pytest.mark.parametrize(
        ("part", "value", "message"),
        [
            ("features", np.eye(4), "must be float32, got float64"),
            ("features", np.eye(3, dtype=np.float32), "must be 4 rows"),
            ("masks", {"val": np.zeros(4, int)}, "mask 'val' must be 4 booleans, got int64"),
        ],
    )
    def test_other_parts_that_are_not_clean_are_refused(self, part, value, message):
        with pytest.raises(InputError, match=message):
            replace(self.clean, **{part: value})


def test_a_graph_is_immutable(shifted):
    with pytest.raises(ValueError, match="read-only"):
        shifted.labels[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        shifted.adjacency.data[0] = 2
    with pytest.raises(ValueError, match="read-only"):
        shifted.masks["train"][0] = True
    with pytest.raises(AttributeError):
        shifted.name = "other"


def test_arrays_of_the_caller_stay_writeable():
    features, labels = np.ones((4, 2), np.float32), np.zeros(4, np.int64)
    sparse, mask, ids = sp.csr_array(features), np.ones(4, bool), np.arange(4)
    for given in (features, sparse):
        Graph.from_edges([[0], [1]], given, labels, masks={"train": mask}, ids=ids)
    assert sparse.data.flags.writeable
    assert all(array.flags.writeable for array in (features, labels, mask, ids))


def test_with_labels_changes_the_labels_only(shifted):
    other = shifted.with_labels(np.full(240, -1))
    assert (other.labels == -1).all()
    assert other.class_names == shifted.class_names
    assert other.features is shifted.features


def test_reordering_moves_every_part_and_can_be_undone(shifted, rng):
    order = rng.permutation(240)
    moved = shifted.reorder(order)
    assert moved.adjacency[3, 7] == shifted.adjacency[order[3], order[7]]
    np.testing.assert_array_equal(moved.ids, order)
    again = moved.reorder(np.argsort(order))
    assert abs(again.adjacency - shifted.adjacency).nnz == 0
    for part in ("features", "labels", "ids"):
        np.testing.assert_array_equal(getattr(again, part), getattr(shifted, part))
    np.testing.assert_array_equal(again.masks["train"], shifted.masks["train"])


def test_homophily_is_the_share_of_known_edges_within_a_class():
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 3]], X, [0, 0, 1, -1])
    assert graph.homophily() == 0.5
    assert np.isnan(Graph.from_edges([[0], [1]], X).homophily())


def test_scipy_matrices_of_any_format_are_accepted():
    dense = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for matrix in (sp.csr_matrix(dense), sp.coo_array(dense), sp.lil_matrix(dense)):
        assert Graph.from_scipy(matrix, np.eye(3)).num_edges == 2
    with pytest.raises(InputError, match=r"must be square, got shape \(2, 3\)"):
        Graph.from_scipy(sp.csr_array(np.ones((2, 3))), np.eye(2))


class TestPyG:
    edges = torch.tensor([[0, 1], [1, 0]])

    def test_round_trip(self, shifted):
        again = Graph.from_pyg(shifted.to_pyg())
        assert abs(again.adjacency - shifted.adjacency).nnz == 0
        np.testing.assert_array_equal(again.features, shifted.features)
        np.testing.assert_array_equal(again.labels, shifted.labels)
        np.testing.assert_array_equal(again.masks["train"], shifted.masks["train"])

    def test_mostly_zero_features_become_sparse_and_weights_are_kept(self):
        x = torch.zeros(4, 30)
        x[0, 0] = 1
        data = Data(x=x, edge_index=self.edges, edge_weight=torch.tensor([2.0, 2.0]))
        graph = Graph.from_pyg(data)
        assert sp.issparse(graph.features)
        assert graph.to_pyg().edge_weight.tolist() == [2, 2]

    @pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
    @pytest.mark.filterwarnings("ignore:Sparse")
    def test_features_of_any_layout_are_accepted(self, layout):
        x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
        data = Data(x=x.to_sparse(layout=layout), edge_index=self.edges)
        np.testing.assert_array_equal(Graph.from_pyg(data).features.toarray(), x.numpy())

    def test_the_first_of_several_masks_is_used(self):
        masks = torch.tensor([[True, False], [False, True], [False, False]])
        data = Data(x=torch.eye(3), edge_index=self.edges, val_mask=masks)
        assert Graph.from_pyg(data).masks["val"].tolist() == [True, False, False]

    def test_unused_edge_attributes_are_noted(self):
        data = Data(x=torch.eye(3), edge_index=self.edges, edge_attr=torch.ones(2, 2))
        assert "edge_attr is not used" in Graph.from_pyg(data).notes

    def test_data_without_features_are_refused(self):
        with pytest.raises(InputError, match="x and edge_index"):
            Graph.from_pyg(Data(edge_index=self.edges))

    def test_other_objects_are_refused(self, shifted):
        assert as_graph(shifted) is shifted
        assert as_graph(shifted.to_pyg()).num_nodes == 240
        with pytest.raises(InputError, match="expected a Graph or PyG Data, got list"):
            as_graph([1, 2])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_denormal_features_become_zero(form):
    features = form(np.array([[1e-40, 1.0], [2.0, -1e-42], [0.0, 1e-37]]))
    graph = Graph.from_edges([[0, 1], [1, 2]], features)
    found = graph.features.toarray() if sp.issparse(graph.features) else graph.features
    assert found.tolist() == np.array([[0, 1], [2, 0], [0, 1e-37]], dtype=np.float32).tolist()
