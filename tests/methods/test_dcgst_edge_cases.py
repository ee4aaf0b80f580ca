"""DC-GST with few labels, without edges, without validation, and with a small pool."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from dcgst.graph import Graph
from dcgst.splits import Split, sample
from tests.methods.helpers import quick_dcgst

QUOTAS = ["none", "uniform", "balanced"]


quick = partial(
    quick_dcgst, backbone="gcn", edge_predictor=True, edge_nodes=10, edge_pairs=10, max_stages=2
)


def test_one_label_per_class(small):
    fitted = quick().fit(small, sample(small, "uniform", per_class=1, runs=1))
    assert fitted.candidates_["selected"].any()


@pytest.mark.parametrize("class_balance", QUOTAS)
def test_class_without_labels_gets_no_node(small, one_run, class_balance):
    wider = dataclasses.replace(small, class_names=(*small.class_names, "empty"))
    fitted = quick(class_balance=class_balance, epochs=40, max_stages=1).fit(wider, one_run)
    assert fitted.proba_.shape[1] == 4
    assert np.isfinite(fitted.proba_).all()
    assert not (fitted.labels_ == 3).any()


@pytest.mark.parametrize("class_balance", QUOTAS)
def test_k_larger_than_the_pool_selects_pool_nodes_only(small, one_run, class_balance):
    settings = {"growth": 9.0, "max_stages": 4, "stage_patience": 9, "edge_predictor": False}
    fitted = quick(class_balance=class_balance, **settings).fit(small, one_run)
    assert one_run.pool[0][fitted.candidates_["node"]].all()
    assert (fitted.labeled_stage_[one_run.val[0]] == -1).all()
    assert (fitted.labeled_stage_[one_run.train[0]] == 0).all()
    last = fitted.candidates_[fitted.candidates_["stage"] == fitted.history_[-1]["stage"]]
    if class_balance in ("none", "uniform"):
        assert len(last) == one_run.pool.sum(), "all pool nodes are candidates"


def test_isolated_nodes(small, one_run):
    coo = small.adjacency.tocoo()
    kept = (coo.row >= 20) & (coo.col >= 20)
    edges = np.stack([coo.row[kept], coo.col[kept]])
    isolated = Graph.from_edges(edges, small.features, small.labels)
    assert np.isfinite(quick().fit(isolated, one_run).proba_).all()


def test_graph_without_edges(small, one_run):
    bare = Graph.from_edges(np.zeros((2, 0), dtype=int), small.features, small.labels)
    assert np.isfinite(quick().fit(bare, one_run).proba_).all()


def test_a_small_pool_has_no_further_candidates(small):
    train = np.ones(small.num_nodes, dtype=bool)
    train[:6] = False
    fitted = quick(max_stages=9, class_balance="uniform").fit(small, Split.of(train))
    assert fitted.stop_reason_ == "no further candidates"


def test_empty_pool(small):
    train = np.ones(small.num_nodes, dtype=bool)
    fitted = quick().fit(small, Split.of(train))
    np.testing.assert_array_equal(fitted.labels_, small.labels)
    assert fitted.candidates_.size == 0
