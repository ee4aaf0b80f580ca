"""The protocol: how labels are used, and the measures of a record."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from dcgst.bench.cells import Cell, Records, key_of
from dcgst.bench.grid import _by_labeled_nodes, run_grid
from dcgst.bench.protocol import Labels, pseudo_labels_after, run_cell, stage_histories
from dcgst.datasets import load, synthetic
from dcgst.methods import DCGST, Majority, method
from dcgst.splits import Split, sample
from dcgst.testing import small_graph

LABELS = Labels("uniform", per_class=3, runs=2, validation=8)


def test_validation_nodes_move_to_training_and_the_test_nodes_stay():
    graph = load("synthetic/120")
    choosing = LABELS.sample(graph)
    training = replace(LABELS, train_on_validation=True).sample(graph)
    assert (training.train == choosing.train | choosing.val).all()
    assert not training.val.any()
    assert (training.test(graph) == choosing.test(graph)).all()
    assert (training.train.sum(axis=1) == 3 * graph.num_classes + 8).all()


def test_cells_that_train_on_validation_labels_have_their_own_records(tmp_path):
    cell = Cell("synthetic/120", "lp", None, "uniform", per_class=3, runs=2, validation=8)
    cells = [cell, replace(cell, train_on_validation=True)]
    assert cells[0].key != cells[1].key
    assert str(cells[1]).endswith("8 validation labels, also trained on")
    records = Records(tmp_path / "records.jsonl")
    run_grid(cells, records, device="cpu", workers=1)
    choosing, training = (Records(records.path).find(each) for each in cells)
    assert (choosing["train_on_validation"], training["train_on_validation"]) == (False, True)
    assert (choosing["per_class"], training["per_class"]) == (3, None)
    assert choosing["accuracy"] != training["accuracy"]


def test_labels_are_drawn_once_for_both_uses_of_the_validation_labels():
    cell = Cell("synthetic/120", "lp", None, "uniform", per_class=3, runs=2, validation=8)
    others = [
        replace(cell, validation=0),
        replace(cell, train_on_validation=True),
        replace(cell, validation=None, validation_per_class=4),
    ]
    assert _by_labeled_nodes([cell, *others]) == [[cell, *others]]
    assert len(_by_labeled_nodes([cell, replace(cell, per_class=4)])) == 2


def test_keys_of_earlier_records_are_the_same():
    graph = load("synthetic/120")
    cell = Cell("synthetic/120", "lp", None, "uniform", per_class=3, runs=2, validation=8)
    record = asdict(run_cell(graph, method("lp"), cell.labels))
    for name in ("validation_per_class", "train_on_validation", "balanced_accuracy"):
        del record[name]
    assert key_of({**record, "dataset": cell.dataset}) == cell.key


def test_balanced_accuracy_is_the_mean_recall_of_the_classes_with_test_nodes():
    graph = small_graph()
    first, second = (np.flatnonzero(graph.labels == label) for label in (0, 1))
    train, pool = np.zeros(graph.num_nodes, bool), np.zeros(graph.num_nodes, bool)
    train[[*first[:3], second[0]]] = True
    pool[[first[3], second[1], second[2]]] = True  # the majority class is right once of three times
    record = run_cell(graph, Majority(), LABELS, split=Split.of(train, pool=pool))
    assert record.accuracy == [pytest.approx(33.33, abs=0.01)]
    assert record.balanced_accuracy == 50.0
    assert record.macro_f1 == 25.0


def test_histories_have_the_shift_in_a_fixed_space_and_the_accuracy_of_pseudo_labels():
    graph = synthetic(200, 3, features=8, seed=1)
    split = sample(graph, "ppr-s", per_class=4, runs=1)
    for settings in ({"accumulate": True}, {"accumulate": False}):
        model = DCGST(
            epochs=10, stage_epochs=3, max_stages=3, hidden=8, edge_predictor=False, **settings
        )
        results = model.fit_runs(graph, split)
        ((first, *stages),) = stage_histories(graph, split, results)
        assert first["fixed_cmd"] == first["cmd"], "this method measures it in the same space"
        assert "right" not in first
        for record in stages:
            assert record["fixed_cmd"] == pytest.approx(record["cmd"], abs=2e-4)
            labels = pseudo_labels_after(results[0], record)
            assert len(np.unique(labels["node"])) + 12 == record["labeled"]
            expected = (labels["label"] == graph.labels[labels["node"]]).mean()
            assert record["right"] == pytest.approx(expected, abs=1e-4)
