"""DC-GST: its settings do what they say, and it works where labels are few or odd."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import load, synthetic
from dcgst.engine import locality
from dcgst.engine.sparse import SparseMatrix
from dcgst.graph import Graph
from dcgst.methods import DCGST, EM, GCN, METHODS
from dcgst.methods.outcome import EDGES, Problem, Result
from dcgst.splits import Split, sample
from dcgst.testing import check_runs_alone_or_together

QUICK = {
    "hidden": 8,
    "epochs": 10,
    "stage_epochs": 4,
    "student_epochs": 4,
    "max_stages": 3,
    "nodes": 10,
    "similar": 3,
    "pairs": 10,
    "edge_predictor": True,
    "predictor_weight": 0.3,
    "prior": "none",
    "quota": "none",
    "ner_sum": "sum",
}
READINGS = [
    {name: choice}
    for field in dataclasses.fields(DCGST)
    for name, choices in [(field.name, field.metadata["choices"])]
    for choice in choices or ()
    if choice != QUICK.get(name, field.default)
    and name not in ("backbone", "feature_norm", "keep", "best_teacher")
] + [{"accumulate": True}, {"warm": False}, {"edge_predictor": False}]
ABLATIONS = {
    "no CMD": {"cmd_weight": 0.0},
    "no NER": {"ner_weight": 0.0},
    "no EP": {"edge_predictor": False},
}


def quick(**settings) -> DCGST:
    return DCGST(**{**QUICK, **settings})


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic(150, 3, features=8, labels_per_class=4, seed=3)


@pytest.fixture(scope="module")
def split(graph) -> Split:
    return sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0.1)


@pytest.fixture(scope="module")
def plain(graph, split) -> DCGST:
    return quick().fit(graph, split)


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_every_reading_works_and_makes_a_difference(reading, graph, split, plain):
    other = quick(**reading).fit(graph, split)
    assert np.isfinite(other.proba_).all()
    same = np.array_equal(other.proba_, plain.proba_)
    assert not (same and np.array_equal(other.audit_, plain.audit_))


@pytest.mark.parametrize("parts", ABLATIONS.values(), ids=list(ABLATIONS))
def test_every_ablation_works_and_makes_a_difference(parts, graph, split, plain):
    other = quick(**parts).fit(graph, split)
    assert not np.array_equal(other.proba_, plain.proba_)


def test_edges_tell_what_the_predictor_would_change(graph, split, plain):
    edges = plain.edges_
    assert edges.size
    assert (edges["source"] < edges["target"]).all()
    pairs = list(zip(edges["source"], edges["target"], strict=True))
    assert len(set(pairs)) == len(pairs)
    there = graph.adjacency.toarray()[edges["source"], edges["target"]] > 0
    np.testing.assert_array_equal(edges["present"], there)
    assert there.any()
    assert not there.all()
    assert ((edges["probability"] >= 0) & (edges["probability"] <= 1)).all()
    assert quick(edge_predictor=False).fit(graph, split).edges_.size == 0
    two = quick(replicas=2).fit(graph, split).edges_
    assert set(two["replica"]) == {0, 1}


def test_edges_follow_the_nodes_into_another_order():
    edges = np.array([(0, 0, 2, True, 0.5), (0, 1, 2, False, 0.25)], dtype=EDGES)
    blank = np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    moved = Result(*blank, [], "", blank[0], edges=edges).reorder(np.array([2, 0, 1])).edges
    # what was node 2 is now node 0, and so on
    assert moved[["source", "target"]].tolist() == [(0, 1), (0, 2)]
    assert moved["present"].tolist() == [True, False]


def test_without_pairs_the_graph_is_seen_as_it_is(graph, split):
    """An edge predictor that may change nothing and weighs nothing is as good as none."""
    nothing = quick(nodes=0, pairs=0, predictor_weight=0.0).fit(graph, split)
    none = quick(edge_predictor=False).fit(graph, split)
    np.testing.assert_allclose(nothing.proba_, none.proba_, atol=1e-5)


class TestAudit:
    def test_says_why_each_node_was_chosen(self, graph, split, plain):
        table = plain.audit_
        for stage in (1, 2):
            rows = table[table["stage"] == stage]
            assert len(rows)
            assert split.pool[0][rows["node"]].all()
            assert rows["chosen"].sum() == np.ceil(len(rows) / 2)
            taken = rows[rows["chosen"]]
            assert taken["q"].min() >= rows[~rows["chosen"]]["q"].max() - 2e-3
            for label in np.unique(rows["label"]):
                ranks = np.sort(rows[rows["label"] == label]["rank"])
                np.testing.assert_array_equal(ranks, np.arange(len(ranks)))

    def test_the_last_stage_is_what_counts_as_labeled(self, split, plain):
        last = plain.audit_[plain.audit_["stage"] == plain.audit_["stage"].max()]
        chosen = np.zeros(len(plain.labels_), dtype=bool)
        chosen[last["node"][last["chosen"]]] = True
        np.testing.assert_array_equal(plain.labeled_stage_ > 0, chosen)

    def test_candidates_grow(self, plain):
        """K grows by half: 4, 6, 9 for each of three classes, as far as there are so many."""
        counts = [record["candidates"] for record in plain.history_[1:]]
        assert counts[0] <= 12
        assert counts == sorted(counts)
        assert [record["stage"] for record in plain.history_] == [0, 1, 2, 3]

    def test_accuracy_is_told_where_the_truth_is_known(self, graph, split, plain):
        truth = graph.labels[plain.audit_["node"]]
        np.testing.assert_array_equal(plain.audit_["truth"], truth)
        assert all(0 <= record["accuracy"] <= 1 for record in plain.history_[1:])
        hidden = graph.with_labels(np.where(split.pool[0], -1, graph.labels))
        blind = quick().fit(hidden, split)
        assert (blind.audit_["truth"] == -1).all()
        assert all("accuracy" not in record for record in blind.history_)
        np.testing.assert_array_equal(blind.proba_, plain.proba_)

    def test_replicas_are_told_apart(self, graph, split):
        method = quick(replicas=2).fit(graph, split)
        assert set(method.audit_["replica"]) == {0, 1}

    def test_nodes_are_the_users_on_reordered_graphs(self, graph, split, plain, monkeypatch):
        """Large graphs are put into another order inside; the audit speaks of the user's nodes."""
        monkeypatch.setattr(locality, "LARGE", 10)
        method = quick().fit(graph, split)
        assert split.pool[0][method.audit_["node"]].all()
        table = method.audit_
        np.testing.assert_array_equal(table["truth"], graph.labels[table["node"]])
        last = table[(table["stage"] == table["stage"].max()) & table["chosen"]]
        assert (method.labeled_stage_[last["node"]] > 0).all()


class TestOddLabels:
    def test_without_validation(self, graph, split):
        bare = Split(split.train, np.zeros_like(split.val), split.pool | split.val, split.runs)
        for best in ("last", "validation"):
            assert np.isfinite(quick(best_teacher=best).fit(graph, bare).proba_).all()

    def test_one_label_per_class(self, graph):
        method = quick().fit(graph, sample(graph, "uniform", per_class=1, runs=1))
        assert method.audit_["chosen"].any()

    def test_a_class_that_nobody_is_predicted_as(self, graph, split):
        """A fourth class without any label: no candidates, no error."""
        names = (*graph.class_names, "empty")
        wider = dataclasses.replace(graph, class_names=names)
        for quota in ("none", "uniform", "predicted", "balanced"):
            for prior in ("none", "em"):
                method = quick(quota=quota, prior=prior, epochs=40).fit(wider, split)
                assert method.proba_.shape[1] == 4
                assert np.isfinite(method.proba_).all()
                assert not (method.labels_ == 3).any()

    @pytest.mark.parametrize("quota", ["none", "uniform", "predicted", "balanced"])
    def test_more_candidates_wanted_than_there_are_nodes(self, graph, split, quota):
        """K beyond n takes in no validation nodes and leaves given labels alone."""
        settings = {"growth": 9.0, "max_stages": 6, "stage_patience": 9, "quota": quota}
        method = quick(**settings).fit(graph, split)
        assert split.pool[0][method.audit_["node"]].all()
        assert (method.labeled_stage_[split.val[0]] == -1).all()
        assert (method.labeled_stage_[split.train[0]] == 0).all()

    def test_isolated_nodes(self, graph, split):
        coo = graph.adjacency.tocoo()
        kept = (coo.row >= 20) & (coo.col >= 20)
        lonely = Graph.from_edges(
            np.stack([coo.row[kept], coo.col[kept]]), graph.features, graph.labels
        )
        assert np.isfinite(quick().fit(lonely, split).proba_).all()

    def test_no_edges_at_all(self, graph, split):
        bare = Graph.from_edges(np.zeros((2, 0), dtype=int), graph.features, graph.labels)
        assert np.isfinite(quick().fit(bare, split).proba_).all()

    def test_a_pool_smaller_than_k(self, graph):
        """Nearly all labels given: the pool is soon exhausted, and that is why it stops."""
        train = np.ones((1, graph.num_nodes), dtype=bool)
        train[0, :6] = False
        split = Split(train, np.zeros_like(train), ~train, (0,))
        method = quick(max_stages=9, quota="uniform").fit(graph, split)
        assert method.stop_reason_ == "the pool is exhausted"

    def test_an_empty_pool(self, graph):
        train = np.ones((1, graph.num_nodes), dtype=bool)
        method = quick().fit(graph, Split(train, ~train, ~train, (0,)))
        np.testing.assert_array_equal(method.labels_, graph.labels)


class TestCandidates:
    """Ten nodes in the pool, nine predicted as class 0 and one as class 1 of three; K = 3."""

    logits = torch.tensor([[[2.0, 0.0, -9.0]] * 9 + [[0.0, 2.0, -9.0]]])

    def sizes(self, quota, graph_of_ten) -> list[float]:
        sizes = DCGST(quota=quota).candidates_per_class(
            self.logits, torch.tensor([3.0]), graph_of_ten
        )
        return [float(size) for size in sizes[0]]

    @pytest.fixture
    def graph_of_ten(self) -> Problem:
        nothing = torch.full((1, 10), -1)
        empty = SparseMatrix.from_scipy(sp.csr_array((10, 10), dtype=np.float32))
        return Problem(torch.eye(10), empty, nothing, nothing, nothing < 0, (0,), 3)

    def test_uniform(self, graph_of_ten):
        assert self.sizes("uniform", graph_of_ten) == [3, 3, 3]
        assert self.sizes("none", graph_of_ten) == [3, 3, 3]

    def test_in_the_proportions_of_the_predictions(self, graph_of_ten):
        # probabilities .88 and .12: shares (9 * .88 + .12) / 10 = .80 and .20 of nine candidates
        assert self.sizes("predicted", graph_of_ten) == [8, 2, 1]

    def test_balanced_is_between(self, graph_of_ten):
        # square roots: .895 and .442, of 1.337 together, so .67 and .33 of nine
        assert self.sizes("balanced", graph_of_ten) == [7, 3, 1]


def test_stop_reasons(graph, split):
    assert quick().fit(graph, split).stop_reason_ == "all 3 stages done"
    patient = quick(max_stages=40, stage_patience=1, lr=1e-8).fit(graph, split)
    assert patient.stop_reason_ in ("CMD did not fall for 1 stages", "the pool is exhausted")


def test_permuting_nodes_permutes_the_answer(graph, split, rng):
    """The order of nodes means nothing, where nothing is drawn node by node."""
    order = rng.permutation(graph.num_nodes)
    settings = {"dropout": 0.0, "edge_predictor": False}
    here = quick(**settings).fit(graph, split)
    there = quick(**settings).fit(graph.reorder(order), split.reorder(order))
    np.testing.assert_allclose(here.proba_[order], there.proba_, atol=2e-3)
    np.testing.assert_array_equal(here.labeled_stage_[order], there.labeled_stage_)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "sage", "appnp"])
def test_with_edge_predictor_runs_alone_or_together(backbone):
    """Each run's own pairs leave the other runs alone."""
    check_runs_alone_or_together(lambda **more: quick(backbone=backbone, **more))


def test_the_student_begins_as_the_teacher_with_the_lowest_validation_loss(graph, split):
    """Without a student, the answer is that of the best stage, not of the last."""
    settings = {"student": "none", "lr": 0.3, "max_stages": 6, "stage_patience": 9}
    best = quick(best_teacher="validation", **settings).fit(graph, split)
    last = quick(best_teacher="last", **settings).fit(graph, split)
    val, truth = split.val[0], graph.labels[split.val[0]]

    def loss(method):
        return -np.log(method.proba_[val, truth]).mean()

    assert loss(best) < loss(last)


def test_every_paper_preset_has_the_published_weights():
    published = {
        "paper/cora": (8, 0.3, 0.1, 0.01),
        "paper/citeseer": (18, 0.6, 0.4, 0.01),
        "paper/pubmed": (13, 1.5, 0.7, 0.001),
        "paper/ogbn-arxiv": (26, 0.7, 0.6, 0.001),
    }
    for name, expected in published.items():
        m = DCGST.from_preset(name)
        assert (m.cmd_weight, m.predictor_weight, m.ner_weight, m.lr) == expected
        assert (m.growth, m.weight_decay, m.backbone) == (0.5, 5e-4, "gcn")


def test_registered():
    assert METHODS["dcgst"] is DCGST


@pytest.fixture(scope="module")
def digits() -> tuple[Graph, Split]:
    graph = load("digits")
    return graph, sample(graph, "ppr-s", per_class=4, runs=2)


def accuracy(method, graph, split) -> float:
    right = [
        (result.labels == graph.labels)[test].mean()
        for result, test in zip(method.fit_runs(graph, split), split.test(graph), strict=True)
    ]
    return float(np.mean(right))


def test_biased_labels_cost_it_less_than_a_plain_gcn(digits):
    graph, split = digits
    short = {"epochs": 60, "max_stages": 10, "student_epochs": 20}
    plain = accuracy(GCN(epochs=60), graph, split)
    assert accuracy(DCGST(**short), graph, split) > plain + 0.05
    assert accuracy(DCGST(**short, prior="none"), graph, split) > plain + 0.02


def test_the_prior_is_heard(graph, split):
    """A teacher that has learned nothing leaves the answer to EM."""
    deaf = {"epochs": 1, "stage_epochs": 1, "student_epochs": 1, "max_stages": 1, "lr": 1e-8}
    ours = DCGST(**deaf, hidden=8).fit(graph, split)
    assert (ours.labels_ == EM().fit(graph, split).labels_).mean() > 0.9


def test_the_shift_falls_and_faster_than_by_confidence(digits):
    """Chosen by shift, as many pseudo-labels are closer to the pool than the most confident."""
    graph, split = digits
    settings = {"epochs": 60, "max_stages": 3, "prior": "none", "ner_weight": 0.0}
    last = {
        criterion: np.mean(
            [r.cmd_after for r in DCGST(criterion=criterion, **settings).fit_runs(graph, split)]
        )
        for criterion in ("shift", "confidence")
    }
    assert last["shift"] < 0.8 * last["confidence"]
