"""ST, M3S and DR-GST: which nodes they trust, and what they learn from them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import load, synthetic
from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix
from dcgst.methods import DRGST, GCN, M3S, SRGNNST, ST
from dcgst.methods.drgst import confusion, drop_edges
from dcgst.methods.outcome import Problem
from dcgst.methods.st import labels_to_reach_all, most_confident
from dcgst.nn.base import Output
from dcgst.splits import sample

QUICK = {"epochs": 30, "hidden": 16}


@pytest.fixture(scope="module")
def graph():
    return synthetic(240, 3, features=12, labels_per_class=4, seed=2)


@pytest.fixture(scope="module")
def split(graph):
    return sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0.05)


def ring(labels, classes=2) -> Problem:
    """One run on nodes in a ring; whatever has no label is in the pool."""
    n = len(labels)
    nodes = np.arange(n)
    step = sp.csr_array((np.ones(n), (nodes, (nodes + 1) % n)), shape=(n, n))
    adjacency = SparseMatrix.from_scipy(sp.csr_array(step + step.T))
    given = torch.tensor([labels])
    nothing = torch.full_like(given, -1)
    return Problem(torch.eye(n), adjacency, given, nothing, given < 0, (0,), classes)


def test_how_many_pseudo_labels_follows_from_the_degree():
    problem = ring([0, 0, 0, 1] + [-1] * 36)
    assert labels_to_reach_all(problem) == pytest.approx(40 / 2**2)
    assert ST().per_stage(problem).tolist() == [[22, 7]]  # 3 * 10 labels, three quarters and one
    assert ST(stages=4).per_stage(problem).tolist() == [[6, 2]]  # as whole numbers, rounded up
    assert ST(per_class=9, stages=3).per_stage(problem).tolist() == [[3, 3]]


def test_the_most_confident_of_each_class_are_chosen():
    proba = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]])
    unlabeled = torch.tensor([[False, True, True, True, True]])
    stage = most_confident(proba.log(), unlabeled, torch.tensor([[1, 1]]))
    assert stage.chosen.tolist() == [[False, True, False, False, True]]
    assert stage.predicted.tolist() == [[0, 0, 0, 1, 1]]


@pytest.mark.parametrize("method", [ST, M3S, SRGNNST])
def test_accumulated_labels_stay_what_they_were(method, graph, split):
    fitted = method(stages=3, per_class=12, **QUICK).fit(graph, split)
    chosen = fitted.audit_[fitted.audit_["chosen"]]
    assert len(np.unique(chosen["node"])) == len(chosen), "a node was chosen twice"
    for row in chosen:
        assert fitted.labeled_stage_[row["node"]] == row["stage"]
    labeled = [record["labeled"] for record in fitted.history_]
    assert labeled == sorted(labeled)
    assert len(labeled) == 4


def accuracy(method, graph, split):
    """Mean over the runs of a short training."""
    results = method(epochs=100, hidden=32).fit_runs(graph, split)
    test = split.test(graph)
    hits = [(r.labels == graph.labels)[t].mean() for r, t in zip(results, test, strict=True)]
    return float(np.mean(hits))


def test_self_training_lifts_the_plain_network():
    graph = load("digits")
    split = sample(graph, "ppr-s", per_class=4, runs=3)
    plain = accuracy(GCN, graph, split)
    gains = [accuracy(method, graph, split) - plain for method in (ST, M3S, SRGNNST)]
    assert min(gains) > 0
    assert np.mean(gains) > 0.01


def test_drgst_lifts_it_where_validation_can_be_relied_on():
    """Where labels are biased and validation is a handful of nodes, it may not."""
    graph = load("digits")
    split = sample(graph, "uniform", per_class=2, runs=3, val_rate=0.1)
    assert accuracy(DRGST, graph, split) > accuracy(GCN, graph, split) + 0.01


# --- M3S ---------------------------------------------------------------------------------------


def test_a_cluster_takes_the_class_of_the_nearest_labeled_mean():
    """Three bundles of directions; the third holds no label and lies next to the second."""
    degrees = torch.tensor([0.0, 1, 2, 90, 91, 92, 120, 121, 122])
    hidden = torch.stack([torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))], -1)
    labels = [0, -1, -1, 1, -1, -1, -1, -1, -1]
    problem = ring(labels)
    given = torch.tensor([labels])
    for number in range(5):  # whatever the random start
        found = M3S(clusters=9).cluster_labels(5 * hidden[None], given, problem, number)
        assert found[given < 0].tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_only_where_the_cluster_agrees(graph, split):
    audit = M3S(stages=3, per_class=20, clusters=20, **QUICK).fit(graph, split).audit_
    assert set(audit["q"]) == {0.0, 1.0}
    np.testing.assert_array_equal(audit["chosen"], audit["q"] == 1)


# --- DR-GST ------------------------------------------------------------------------------------


def test_everyone_above_the_threshold_and_no_one_else(graph, split):
    fitted = DRGST(threshold=0.7, stages=2, passes=5, **QUICK).fit(graph, split)
    assert (fitted.audit_["confidence"] > 0.7).all()
    assert fitted.audit_["chosen"].all()
    assert DRGST(threshold=1.0, stages=1, passes=5, **QUICK).fit(graph, split).audit_.size == 0


def test_weights_are_the_gain_over_its_mean_and_beta():
    gain = torch.tensor([[1.0, 3.0, 100.0]])
    labeled = torch.tensor([[True, True, False]])
    weights = DRGST(beta=0.5).weights(gain, labeled)
    torch.testing.assert_close(weights, torch.tensor([[1.0, 3.0, 100.0]]), atol=1e-4, rtol=1e-4)


def test_the_correction_is_where_descent_would_end(rng):
    problem = ring([0, 0, 0, 1, 2, 2] + [-1] * 4, classes=3)
    logits = torch.tensor(rng.normal(size=(1, 10, 3)), dtype=torch.float32)
    proba, labels = logits.softmax(-1)[0, :6], problem.labels[0, :6]
    target = torch.eye(3).requires_grad_()
    optimiser = torch.optim.Adam([target], lr=0.01)
    mse = torch.nn.functional.mse_loss
    for _ in range(2000):
        optimiser.zero_grad()
        (mse(target[labels], proba) + mse(target, torch.eye(3))).backward()
        optimiser.step()
    found = confusion(Output(logits, logits), problem)[0]
    torch.testing.assert_close(found, target.detach(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("gain", ["dropout", "dropedge"])
def test_information_gain_is_disagreement(gain, graph):
    split = sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0)
    labels = torch.tensor(np.where(split.train, graph.labels, -1))
    adjacency = SparseMatrix.from_scipy(graph.adjacency)
    x = torch.tensor(graph.features)
    nothing = torch.full_like(labels, -1)
    problem = Problem(x, adjacency, labels, nothing, labels < 0, (3,), 3)
    method = DRGST(gain=gain, passes=40, **QUICK)
    network = method.network(problem)
    network.train(labels, problem, method.schedule)

    def mean_gain(rate):
        sure = DRGST(gain=gain, passes=40, drop_rate=rate)
        found = sure.information_gain(network, problem, 1)
        assert (found > -1e-5).all()
        return float(found.mean())

    assert mean_gain(0.01) < mean_gain(0.3) < mean_gain(0.7)


def test_dropped_edges_go_both_ways():
    problem = ring([0, 1] + [-1] * 198)
    thinned = drop_edges(problem.adjacency, 0.3, Streams([0, 1]))
    for values in thinned.values:
        dense = torch.zeros(200, 200)
        pattern = thinned.pattern
        dense[pattern.rows, pattern.indices] = values
        assert torch.equal(dense, dense.T)
        assert 0.6 < float(values.mean()) < 0.8
    assert not torch.equal(*thinned.values)


def test_published_rows_by_labels_per_class():
    assert DRGST.nearest_preset("paper/cora", 8) == "paper/cora/10"
    assert DRGST.nearest_preset("paper/cora", 2) == "paper/cora/3"
    assert DRGST.nearest_preset("default", 8) == "default"
    assert ST.nearest_preset("paper/cora", 8) == "paper/cora"
    assert DRGST.from_preset("paper/cora/20").threshold == 0.53
    assert DRGST.from_preset("paper/pubmed/3").stages == 0


def test_without_stages_it_is_a_plain_network(graph, split):
    alone = DRGST(stages=0, **QUICK).fit(graph, split)
    plain = GCN(keep=DRGST().keep, **QUICK).fit(graph, split)
    np.testing.assert_array_equal(alone.proba_, plain.proba_)
    assert alone.stop_reason_ == "no pseudo-labels"


def test_drgst_on_the_standard_split_of_cora(need_data):
    """The authors' code has 83.0 there; one run, so with a margin."""
    need_data("cora")
    graph = load("cora")
    split = sample(graph, "official", runs=1)
    fitted = DRGST.from_preset("paper/cora/20", epochs=200).fit(graph, split)
    assert fitted.score(graph) > 0.805
