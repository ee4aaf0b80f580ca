"""Warnings about predictions: class shares, and classes that cannot be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dcgst import Graph, Result, Split
from dcgst.runs import Run
from dcgst.runs.assessment import prediction_warnings

GRAPH = Graph.from_edges(
    [[0, 1], [1, 2]], np.eye(12), [0, 0, 0, 1] + [-1] * 8, class_names=("ok", "fraud")
)


def run_with(proba, prior=None) -> Run:
    """Four labels, one of them fraud, and eight predictions."""
    full = np.full((12, 2), 0.5, dtype=np.float32)
    full[4:] = proba
    train = GRAPH.labels >= 0
    result = Result(full, GRAPH.labels, np.where(train, 0, -1), np.ones(12), [], "")
    info = {"settings": {"prior": prior}}
    return Run(Path("run"), info, GRAPH, Split.of(train), result)


def sure(fraud: int) -> np.ndarray:
    """So many of eight nodes are predicted to be fraud, with probability 0.95."""
    return np.where(np.arange(8)[:, None] < fraud, [0.05, 0.95], [0.95, 0.05])


def test_shares_like_those_of_the_labels_give_no_warning():
    assert prediction_warnings(run_with(sure(2))) == []


def test_other_shares_than_those_of_the_labels_are_named():
    (line,) = prediction_warnings(run_with(sure(5)))
    assert line == (
        "the predicted class shares differ from those of your labels: fraud 61%, not 25%; ok 39%, "
        "not 75%. If you know the true shares, give them: prior fraud=SHARE"
    )


def test_given_shares_are_not_warned_of():
    assert prediction_warnings(run_with(sure(5), prior={"fraud": 0.6})) == []


@pytest.mark.parametrize(("second", "little"), [(0.7, True), (0.4, False)])
def test_probabilities_close_to_the_shares_are_reported(second, little):
    """Half of the nodes have probability 0.75 of one class, the others less."""
    first = np.where(np.arange(8) < 4, 0.75, second)
    proba = np.stack([first, 1 - first], axis=1)
    found = " ".join(prediction_warnings(run_with(proba)))
    share, confidence = first.mean(), proba.max(axis=1).mean()
    assert ((confidence - share) / (1 - share) < 0.1) == little
    assert ("say little about these classes" in found) == little


def test_a_rare_class_that_is_found_is_no_reason_to_warn():
    """One of eight nodes is surely fraud: the confidence is hardly above the share of the rest."""
    assert prediction_warnings(run_with(sure(1), prior={"fraud": 0.1})) == []


def test_without_nodes_to_predict_there_is_no_warning():
    graph = GRAPH.with_labels([0, 1] * 6)
    proba = np.full((12, 2), 0.5, np.float32)
    result = Result(proba, graph.labels, np.zeros(12), np.ones(12), [], "")
    everything = Split.of(np.ones(12, dtype=bool))
    assert prediction_warnings(Run(Path("run"), {"settings": {}}, graph, everything, result)) == []
