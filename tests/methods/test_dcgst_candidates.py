"""The candidates and history of DC-GST: every candidate of every stage."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from dcgst.methods import DCGST, self_training
from dcgst.train import device as locality
from tests.methods.helpers import quick_dcgst

quick = partial(
    quick_dcgst, backbone="gcn", edge_predictor=True, class_balance="none", stage_patience=9
)


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
    "settings",
    [{}, {"class_balance": "uniform"}, {"class_balance": "balanced"}, {"budget": "total"}],
)
def test_stops_when_a_larger_k_selects_no_more_nodes(small, one_run, settings):
    fitted = quick(growth=3.0, max_stages=30, stage_patience=30, **settings).fit(small, one_run)
    assert fitted.stop_reason_ == "no further candidates"
    pool, stages = int(one_run.pool.sum()), range(1, len(fitted.history_))
    rows = [fitted.candidates_[fitted.candidates_["stage"] == stage] for stage in stages]
    selected = [int(own["selected"].sum()) for own in rows]
    assert pool / 2 <= selected[-1] <= pool / 2 + 3, "each class is rounded up"
    assert selected[-2] < selected[-1]


def test_kept_pseudo_labels_become_more_when_k_covers_the_pool(small, one_run):
    settings = {"growth": 3.0, "max_stages": 12, "stage_patience": 30, "accumulate": True}
    fitted = quick(**settings).fit(small, one_run)
    covered = [record["candidates"] == one_run.pool.sum() for record in fitted.history_[1:]]
    first = 1 + covered.index(True)
    assert fitted.history_[-1]["labeled"] > fitted.history_[first]["labeled"]


@pytest.mark.parametrize(("compares_with", "stages"), [("previous", 6), ("lowest", 4)])
def test_the_shift_is_compared_with_the_previous_stage_or_the_lowest(
    small, one_run, monkeypatch, compares_with, stages
):
    shifts = iter([9.0, 1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0])
    before = torch.ones(1)
    monkeypatch.setattr(  # called twice in a stage: for the training labels, and for all labels
        self_training,
        "labeled_shift",
        lambda z, labeled, *_: before if int(labeled.sum()) == 12 else before * next(shifts),
    )
    fitted = quick(max_stages=8, stage_patience=2, stop_compares_with=compares_with)
    fitted.fit(small, one_run)
    assert fitted.stop_reason_ == "CMD did not decrease for 2 stages"
    assert len(fitted.history_) == 1 + stages
