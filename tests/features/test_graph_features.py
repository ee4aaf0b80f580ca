"""Features in blocks and files are the same as in one block; samples of nodes."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features import graph_features as module
from dcgst.features import graph_tensors
from dcgst.features import matrix as arrays
from dcgst.features.columns import scale_rows
from dcgst.features.graph_features import GraphFeatures
from dcgst.features.graph_tensors import GraphTensors, NodeRows, draw_sample, known_labels
from dcgst.features.matrix import Neighbors, Workspace
from dcgst.features.smoothing import Filter


def scaled(rows):
    return scale_rows(rows, "l2")


def in_blocks(graph, folder=None) -> GraphFeatures:
    return GraphFeatures(graph.features, Neighbors(graph.adjacency), Workspace(folder, 3))


@pytest.fixture(params=["dense", "sparse", "constant column"])
def graph(request, rng):
    graph = synthetic(150, 3, features=7, seed=4)
    if request.param == "sparse":
        words = sp.random_array((150, 40), density=0.1, rng=rng, dtype=np.float32)
        return replace(graph, features=sp.csr_array(words))
    if request.param == "constant column":
        return replace(graph, features=np.c_[graph.features, np.full(150, 5.3, np.float32)])
    return graph


@pytest.fixture(params=["memory", "files"])
def source(request, graph, tmp_path, monkeypatch) -> GraphFeatures:
    """In blocks of 32 rows and 3 columns."""
    monkeypatch.setattr(arrays, "ROWS", 32)
    return in_blocks(graph, None if request.param == "memory" else tmp_path)


@pytest.fixture
def whole(graph) -> GraphTensors:
    """In one block."""
    return GraphTensors.of(graph.features, graph.adjacency, scale=scaled)


def test_the_same_features_by_hops(source, whole):
    found = NodeRows(source, slice(None)).propagated
    assert list(found) == list(whole.propagated)
    for name, expected in whole.propagated.items():
        # The sign of a component is arbitrary: compare inner products of rows.
        products = [block[:40] @ block[:40].T for block in (found[name], expected)]
        torch.testing.assert_close(*products, atol=2e-4, rtol=1e-3)


def test_the_same_views(source, whole):
    for found, expected in zip(NodeRows(source, slice(None)).views, whole.views, strict=True):
        for own, other in zip(found, expected, strict=True):
            torch.testing.assert_close(own @ own.T, other @ other.T, atol=2e-3, rtol=1e-3)


def test_rows_of_a_range_and_of_positions(source):
    everything, nodes = NodeRows(source, slice(None)), torch.tensor([149, 3, 3, 77])
    for own, chosen in (
        (NodeRows(source, nodes), nodes),
        (NodeRows(source, slice(9, 70)), slice(9, 70)),
    ):
        for name, block in own.propagated.items():
            torch.testing.assert_close(block, everything.propagated[name][chosen])
        torch.testing.assert_close(own.views[1][2], everything.views[1][2][chosen])


def test_the_same_smoothed_values(source, whole):
    labels = torch.full((2, 150), -1)
    labels[0, :6], labels[1, 50:53] = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([2, 1, 0])
    given = known_labels(labels, 3)
    by = Filter(0.1, 5)
    some = draw_sample(source, np.array([3, 90]), scaled)
    found, expected = (own.smooth(given, by, "labels") for own in (some, whole))
    nodes = NodeRows(source, torch.tensor([0, 7, 149]))
    torch.testing.assert_close(found(nodes), expected(nodes), atol=1e-6, rtol=1e-4)
    assert found(nodes).shape == (2, 3, 3)


def test_a_sample_has_some_neighbors_of_each_node(graph, monkeypatch):
    monkeypatch.setattr(graph_tensors, "NEIGHBORS", 2)
    source = in_blocks(graph)
    chosen = np.array([0, 5, 80, 149])
    sample = draw_sample(source, chosen, scaled)
    assert not sample.complete
    assert sample.positions[sample.chosen].tolist() == chosen.tolist()
    edges = sample.adjacency.to_scipy()
    degrees = graph.degrees[sample.positions]
    kept = np.where(sample.chosen, np.minimum(degrees, 2), 0)
    assert np.diff(edges.indptr).tolist() == kept.tolist()
    for row, column in zip(*edges.nonzero(), strict=True):
        assert graph.adjacency[sample.positions[row], sample.positions[column]]
    factor = np.where(sample.chosen & (kept > 0), degrees / np.maximum(kept, 1), 1)
    np.testing.assert_allclose(sample.neighbor_factor, factor, rtol=1e-6)
    scale = 1 / np.sqrt(degrees + 1)
    row, column = (int(ends[0]) for ends in edges.nonzero())
    value = sample.normalized.to_scipy()[row, column]
    assert value == pytest.approx(scale[row] * scale[column], rel=1e-5)


def test_no_neighbor_is_drawn_twice(graph):
    sample = draw_sample(in_blocks(graph), np.arange(150), scaled)
    pattern = sample.adjacency.pattern
    keys = pattern.rows * 150 + pattern.indices
    assert len(keys) == len(torch.unique(keys)) == np.minimum(graph.degrees, 2).sum()


def test_a_sample_knows_its_place_in_the_graph(graph):
    sample = draw_sample(in_blocks(graph), np.array([3, 90]), scaled)
    labels = torch.full((1, len(sample.positions)), -1)
    labels[0, sample.chosen] = torch.tensor([1, 2])
    everywhere = sample.in_graph(labels)
    assert everywhere.shape == (1, 150)
    assert everywhere[0, [3, 90]].tolist() == [1, 2]
    assert (everywhere >= 0).sum() == 2
    torch.testing.assert_close(
        torch.as_tensor(sample.propagated["1 hop"]),
        NodeRows(in_blocks(graph), sample.nodes).propagated["1 hop"],
    )


def test_wide_features_are_reduced(graph, monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 5)
    views = NodeRows(in_blocks(graph), slice(None)).views
    assert views[0][2].shape == (150, 5)
    assert bool(views[0][2].isfinite().all())


@pytest.mark.parametrize("rows", [32, 1000])
def test_nodes_are_freed_when_they_are_not_used_any_more(graph, monkeypatch, rows):
    """Without a cycle of references; their tensors may be large."""
    monkeypatch.setattr(graph_tensors, "ROWS", rows)
    nodes = GraphTensors.of(graph.features, graph.adjacency, scale=scaled)
    other = nodes.scaled_by(lambda rows: rows)
    assert len(nodes.views) == len(other.views)
    assert nodes.propagated is other.propagated
    assert nodes.normalized is other.normalized
    alive = weakref.ref(nodes)
    del nodes, other
    assert alive() is None


def test_features_of_several_other_graphs_are_kept_apart(graph, tmp_path):
    source = in_blocks(graph, tmp_path)
    other = (
        replace(graph, features=graph.features * 3 + 1)
        if isinstance(graph.features, np.ndarray)
        else replace(graph, features=(graph.features * 3).tocsr())
    )
    learned = source.propagation, in_blocks(other).propagation
    shifted = replace(learned[1], offset=learned[1].offset + 1)
    found = [source.propagated(slice(0, 9), by)["0 hops"] for by in (*learned, shifted)]
    assert not torch.allclose(found[0], found[2])
    again = source.propagated(slice(0, 9), shifted)["0 hops"]
    torch.testing.assert_close(found[2], again)
