"""DC-GST with few labels, without edges, without validation, and with a small pool."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.methods import DCGST
from dcgst.splits import Split, sample

QUOTAS = ["none", "uniform", "predicted", "balanced"]


def quick(**settings) -> DCGST:
    few = {"hidden": 8, "epochs": 4, "stage_epochs": 2, "student_epochs": 2, "max_stages": 2}
    edges = {"backbone": "gcn", "edge_predictor": True, "edge_nodes": 10, "edge_pairs": 10}
    return DCGST(**{**few, **edges, "experts": False, **settings})


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic(150, 3, features=8, labels_per_class=4, seed=3)


@pytest.fixture(scope="module")
def split(graph) -> Split:
    return sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0.1)


def test_one_label_per_class(graph):
    fitted = quick().fit(graph, sample(graph, "uniform", per_class=1, runs=1))
    assert fitted.candidates_["selected"].any()


@pytest.mark.parametrize("class_balance", QUOTAS)
@pytest.mark.parametrize("experts", [False, True])
def test_class_without_labels_gets_no_node(graph, split, class_balance, experts):
    wider = dataclasses.replace(graph, class_names=(*graph.class_names, "empty"))
    fitted = quick(class_balance=class_balance, experts=experts, epochs=40, max_stages=1).fit(
        wider, split
    )
    assert fitted.proba_.shape[1] == 4
    assert np.isfinite(fitted.proba_).all()
    assert not (fitted.labels_ == 3).any()


@pytest.mark.parametrize("class_balance", QUOTAS)
def test_k_larger_than_the_pool_selects_pool_nodes_only(graph, split, class_balance):
    settings = {"growth": 9.0, "max_stages": 4, "stage_patience": 9, "edge_predictor": False}
    fitted = quick(class_balance=class_balance, **settings).fit(graph, split)
    assert split.pool[0][fitted.candidates_["node"]].all()
    assert (fitted.labeled_stage_[split.val[0]] == -1).all()
    assert (fitted.labeled_stage_[split.train[0]] == 0).all()
    last = fitted.candidates_[fitted.candidates_["stage"] == fitted.history_[-1]["stage"]]
    if class_balance in ("none", "uniform"):
        assert len(last) == split.pool.sum(), "all pool nodes are candidates"


def test_isolated_nodes(graph, split):
    coo = graph.adjacency.tocoo()
    kept = (coo.row >= 20) & (coo.col >= 20)
    edges = np.stack([coo.row[kept], coo.col[kept]])
    isolated = Graph.from_edges(edges, graph.features, graph.labels)
    assert np.isfinite(quick().fit(isolated, split).proba_).all()


def test_graph_without_edges(graph, split):
    bare = Graph.from_edges(np.zeros((2, 0), dtype=int), graph.features, graph.labels)
    assert np.isfinite(quick().fit(bare, split).proba_).all()


def test_small_whole_pool_is_labeled(graph):
    train = np.ones(graph.num_nodes, dtype=bool)
    train[:6] = False
    fitted = quick(max_stages=9, class_balance="uniform").fit(graph, Split.of(train))
    assert fitted.stop_reason_ == "every pool node has a pseudo-label"


@pytest.mark.parametrize("experts", [False, True])
def test_empty_pool(graph, experts):
    train = np.ones(graph.num_nodes, dtype=bool)
    fitted = quick(experts=experts).fit(graph, Split.of(train))
    np.testing.assert_array_equal(fitted.labels_, graph.labels)
    assert fitted.candidates_.size == 0
