"""Predictions as rows, their sources, and the key figures of a run."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from dcgst import GCN, Graph, Majority, Result, Split, fit, open_run
from dcgst.evaluate.calibration import Calibration, expected_calibration_error
from dcgst.files import rows_to_csv
from dcgst.runs import Run, fitting
from dcgst.runs.assessment import compute_metrics
from dcgst.runs.predictions import Predictions, count_sources, source_of
from tests.runs.helpers import with_known_truth

GRAPH = Graph.from_edges([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], np.eye(6), [0, 0, 1, 1, 2, 2])


def make_result(**changes) -> Result:
    """Four nodes: a given label that the model doubts, a validation label, a pseudo-label, none."""
    parts = {
        "proba": np.array(
            [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [0.3, 0.45, 0.25]], np.float32
        ),
        "given": np.array([2, 0, -1, -1]),
        "labeled_stage": np.array([0, -1, 3, -1]),
        "agreement": np.array([1, 0.5, 0.25, 0.75], dtype=np.float32),
        "history": [{"replica": 0, "stage": 0, "labeled": 1, "cmd": 0.5}],
        "stop_reason": "",
    }
    return Result(**{**parts, **changes})


def test_sources_are_given_pseudo_or_predicted():
    result = make_result()
    found = [source_of(result, node) for node in range(4)]
    assert found == ["given", "given", "pseudo", "predicted"]
    assert count_sources(result) == {"given": 2, "pseudo": 1, "predicted": 1}


def prediction_rows(ids, names, result):
    return list(Predictions(ids, names, result).rows())


def test_rows_by_hand():
    rows = prediction_rows(np.array(["a", "b", "c", "d"]), ("x", "y", "z"), make_result())
    assert rows[0] == {
        "id": "a", "class": "z", "probability": 0.3, "margin": 0.2, "source": "given", "stage": 0,
        "agreement": 1.0, "p(x)": 0.2, "p(y)": 0.5, "p(z)": 0.3,
    }  # fmt: skip
    assert [row["class"] for row in rows] == ["z", "x", "z", "y"]
    assert [row["probability"] for row in rows] == [0.3, 0.6, 0.9, 0.45]
    assert [row["margin"] for row in rows] == [0.2, 0.3, 0.85, 0.15]
    assert [row["stage"] for row in rows] == [0, "", 3, ""]
    assert [row["agreement"] for row in rows] == [1, 0.5, 0.25, 0.75]


def test_classes_have_a_column_each_up_to_fifty():
    for classes, columns in ((50, 57), (51, 7)):
        proba = np.full((4, classes), 1 / classes, dtype=np.float32)
        names = [str(code) for code in range(classes)]
        rows = prediction_rows(np.arange(4), names, make_result(proba=proba))
        assert len(rows[0]) == columns


def test_the_file_holds_the_calibrated_predictions_of_all_nodes(run, graph):
    text = (run.folder / "predictions.csv").read_text()
    assert text == rows_to_csv(run.predictions)
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["id"] for row in rows] == [str(node_id) for node_id in graph.ids]
    known = graph.labels >= 0
    assert [row["source"] == "given" for row in rows] == known.tolist()
    given = [row["class"] for row, k in zip(rows, known, strict=True) if k]
    assert given == [graph.class_names[code] for code in graph.labels[known]]
    assert {row["source"] for row in rows} == {"given", "pseudo", "predicted"}


def test_stored_probabilities_are_calibrated(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "calibrate", lambda *_: Calibration(2.0, 50, ""))
    model = Majority()
    run = fit(graph.with_labels(np.where(np.arange(120) < 1, 1, graph.labels)), tmp_path / "run",
              model)  # fmt: skip
    raw = np.array([3, 5, 4]) / 12
    expected = raw**0.5 / (raw**0.5).sum()
    for found in (run, open_run(run.folder)):
        np.testing.assert_allclose(found.result.proba[50], expected, rtol=1e-5)
    np.testing.assert_allclose(model.proba_[50], raw, rtol=1e-5)
    assert run.predictions[50]["p(1)"] == pytest.approx(expected[1], abs=1e-4)


def make_run(split: Split, **changes) -> Run:
    """A run on a graph of six nodes."""
    proba = np.full((6, 3), 0.1, dtype=np.float32)
    proba[np.arange(6), [0, 0, 1, 0, 2, 0]] = [0.8, 0.7, 0.6, 0.5, 0.9, 0.4]
    result = make_result(
        proba=proba,
        given=np.where(split.given[0], GRAPH.labels, -1),
        labeled_stage=np.where(split.train[0], 0, np.array([-1, 1, -1, -1, -1, -1])),
        agreement=np.array([1, 0.5, 1, 1, 1, 0.25], dtype=np.float32),
        **changes,
    )
    return Run(None, {}, GRAPH, split, result)


TRAIN = np.array([True, False, True, False, True, False])
HISTORY = [
    {"replica": 0, "stage": 0, "labeled": 3, "cmd": 0.9},
    {"replica": 0, "stage": 1, "labeled": 4, "cmd_before": 0.5, "cmd": 0.3},
    {"replica": 1, "stage": 0, "labeled": 3, "cmd": 0.8},
    {"replica": 1, "stage": 1, "labeled": 4, "cmd_before": 0.6, "cmd": 0.35},
    {"replica": 1, "stage": 2, "labeled": 5, "cmd_before": 0.7, "cmd": 0.1},
]


def test_metrics_by_hand():
    found = compute_metrics(make_run(Split.of(TRAIN), history=HISTORY))
    assert found == {
        "nodes": 6,
        "edges": 5,
        "classes": 3,
        "given": 3,
        "pseudo": 1,
        "predicted": 2,
        "mean_probability": round((0.7 + 0.5 + 0.4) / 3, 4),
        "mean_agreement": round((0.5 + 1 + 0.25) / 3, 4),
        "shift_before": 0.6,  # mean of 0.5 and 0.7: the last stage of each replica
        "shift_after": 0.2,
        "evaluation_nodes": 3,
        "evaluated_on_validation": False,
        "accuracy": round(1 / 3, 4),
        "ece": round((abs(1 - 0.7) + 0.5 + 0.4) / 3, 4),
    }


def test_the_shift_is_rounded_to_four_digits():
    history = [{**HISTORY[0], "cmd_before": 0.123456, "cmd": 0.654321}]
    found = compute_metrics(make_run(Split.of(TRAIN), history=history))
    assert (found["shift_before"], found["shift_after"]) == (0.1235, 0.6543)


def test_probabilities_have_four_digits_and_the_agreement_has_three():
    proba = np.array([[0.123456, 0.876544]], dtype=np.float32)
    result = make_result(
        proba=proba,
        given=np.array([-1]),
        labeled_stage=np.array([-1]),
        agreement=np.array([2 / 3], dtype=np.float32),
    )
    (row,) = prediction_rows(np.array(["a"]), ("x", "y"), result)
    assert (row["probability"], row["margin"], row["agreement"]) == (0.8765, 0.7531, 0.667)
    assert (row["p(x)"], row["p(y)"]) == (0.1235, 0.8765)


def test_without_stages_the_shift_does_not_change():
    found = compute_metrics(make_run(Split.of(TRAIN), history=HISTORY[:1]))
    assert found["shift_before"] == found["shift_after"] == 0.9


def test_nodes_of_known_class_outside_the_fit_are_evaluated():
    run = make_run(Split.of(TRAIN, val=[False, True, False, False, False, False]))
    assert np.flatnonzero(run.evaluation_nodes).tolist() == [3, 5]


def test_if_all_known_classes_were_given_the_validation_nodes_are_evaluated():
    split = Split.of(TRAIN, val=[False, True, False, False, False, False])
    run = make_run(split)
    given = replace(run, graph=run.graph.with_labels(run.result.given))
    assert np.flatnonzero(given.evaluation_nodes).tolist() == [1]
    found = compute_metrics(given)
    assert (found["evaluation_nodes"], found["evaluated_on_validation"]) == (1, True)
    assert found["accuracy"] == 1


def test_without_evaluation_nodes_there_is_no_accuracy(run):
    found = json.loads((run.folder / "metrics.json").read_text())
    assert not run.evaluation_nodes.any()
    assert not {"accuracy", "ece", "evaluation_nodes"} & found.keys()
    assert found["given"] + found["pseudo"] + found["predicted"] == found["nodes"] == 120


def test_a_fit_with_known_truth_stores_its_accuracy(graph, tmp_path):
    known = with_known_truth(graph)
    run = fit(known, tmp_path / "run", GCN(epochs=20, hidden=8))
    found = json.loads((run.folder / "metrics.json").read_text())
    pool = ~known.masks["train"]
    assert found["evaluation_nodes"] == 108
    right = run.result.labels[pool] == known.labels[pool]
    assert found["accuracy"] == pytest.approx(right.mean(), abs=1e-4)
    ece = expected_calibration_error(run.result.proba[pool], known.labels[pool])
    assert found["ece"] == pytest.approx(ece, abs=1e-4)


def test_all_nodes_given_have_no_mean_probability():
    split = Split.of(np.ones(6, dtype=bool))
    found = compute_metrics(make_run(split))
    assert found["mean_probability"] is found["mean_agreement"] is None
