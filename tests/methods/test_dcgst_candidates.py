"""The candidates and history of DC-GST: every candidate of every stage."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst.methods import DCGST
from dcgst.train import device as locality


def quick(**settings) -> DCGST:
    few = {"hidden": 8, "epochs": 6, "stage_epochs": 3, "student_epochs": 2, "max_stages": 3}
    return DCGST(**{**few, "class_balance": "none", "stage_patience": 9, **settings})


@pytest.fixture(scope="module")
def fitted(small, one_run) -> DCGST:
    return quick().fit(small, one_run)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_half_of_the_candidates_with_the_largest_scores_are_selected(fitted, one_run, stage):
    rows = fitted.candidates_[fitted.candidates_["stage"] == stage]
    assert one_run.pool[0][rows["node"]].all()
    assert rows["selected"].sum() == np.ceil(len(rows) / 2)
    selected, others = rows[rows["selected"]], rows[~rows["selected"]]
    # Scores are compared in steps of 1/1000.
    assert selected["selection_score"].min() >= others["selection_score"].max() - 2e-3


@pytest.mark.parametrize(("stage", "k"), [(1, 4), (2, 6), (3, 9)])
def test_candidates_are_ranked_from_one_to_k_in_each_class(fitted, stage, k):
    rows = fitted.candidates_[fitted.candidates_["stage"] == stage]
    for label in range(3):
        ranks = np.sort(rows["rank"][rows["label"] == label])
        assert len(ranks) <= k
        np.testing.assert_array_equal(ranks, 1 + np.arange(len(ranks)))
    assert len(rows) == fitted.history_[stage]["candidates"]


def test_selected_nodes_of_the_last_stage_are_labeled(fitted):
    last = fitted.candidates_[fitted.candidates_["stage"] == 3]
    selected = np.zeros(150, dtype=bool)
    selected[last["node"][last["selected"]]] = True
    np.testing.assert_array_equal(fitted.labeled_stage_ > 0, selected)
    assert fitted.history_[-1]["labeled"] == 12 + selected.sum()


def test_truth_and_accuracy_are_for_evaluation_only(small, one_run, fitted):
    candidates = fitted.candidates_
    np.testing.assert_array_equal(candidates["truth"], small.labels[candidates["node"]])
    assert all("accuracy" in record for record in fitted.history_[1:])
    hidden = quick().fit(small.with_labels(np.where(one_run.pool[0], -1, small.labels)), one_run)
    assert (hidden.candidates_["truth"] == -1).all()
    assert not any("accuracy" in record for record in hidden.history_)
    np.testing.assert_array_equal(hidden.proba_, fitted.proba_)


def test_replicas_have_their_own_rows(small, one_run, fitted):
    two = quick(replicas=2).fit(small, one_run)
    np.testing.assert_array_equal(
        two.candidates_[two.candidates_["replica"] == 0], fitted.candidates_
    )
    assert (two.candidates_["replica"] == 1).any()


def test_nodes_are_in_the_order_of_the_user_if_the_graph_is_reordered(small, one_run, monkeypatch):
    settings = {"dropout": 0.0, "max_stages": 1}
    expected = quick(**settings).fit(small, one_run)
    monkeypatch.setattr(locality, "LARGE", 10)
    found = quick(**settings).fit(small, one_run)
    for column in ("node", "label", "truth", "rank", "selected"):
        np.testing.assert_array_equal(found.candidates_[column], expected.candidates_[column])
    np.testing.assert_array_equal(found.labeled_stage_, expected.labeled_stage_)


@pytest.mark.parametrize(
    ("settings", "share"),
    [({}, 1 / 2), ({"class_balance": "uniform"}, 1), ({"budget": "total"}, 1 / 2)],
)
def test_stops_when_a_larger_k_selects_no_more_nodes(small, one_run, settings, share):
    fitted = quick(growth=3.0, max_stages=30, stage_patience=30, **settings).fit(small, one_run)
    assert fitted.stop_reason_ == "no further candidates"
    pool = int(one_run.pool.sum())
    selected = [
        int(fitted.candidates_["selected"][fitted.candidates_["stage"] == stage].sum())
        for stage in range(1, len(fitted.history_))
    ]
    assert selected[-1] == np.ceil(share * pool)
    assert selected[-2] < selected[-1]
