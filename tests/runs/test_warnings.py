"""Warnings about predictions: class shares, and classes that cannot be told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dcgst import Graph, Result, Split
from dcgst.runs import Run
from dcgst.runs.warnings import prediction_warnings

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
        "not 75%. If you know the true shares, give them: --prior fraud=SHARE"
    )


def test_given_shares_are_not_warned_of():
    assert prediction_warnings(run_with(sure(5), prior={"fraud": 0.6})) == []


@pytest.mark.parametrize(("probability", "little"), [(0.65, True), (0.75, False)])
def test_probabilities_close_to_the_shares_are_reported(probability, little):
    """Six of eight nodes lean to one class; the mean probability of that class is the share."""
    lean = np.array([probability, 1 - probability])
    proba = np.where(np.arange(8)[:, None] < 6, lean, lean[::-1])
    found = " ".join(prediction_warnings(run_with(proba)))
    share = proba.mean(axis=0).max()
    assert (probability < share + 0.1) == little
    assert ("say little about these classes" in found) == little


def test_without_nodes_to_predict_there_is_no_warning():
    graph = GRAPH.with_labels([0, 1] * 6)
    proba = np.full((12, 2), 0.5, np.float32)
    result = Result(proba, graph.labels, np.zeros(12), np.ones(12), [], "")
    everything = Split.of(np.ones(12, dtype=bool))
    assert prediction_warnings(Run(Path("run"), {"settings": {}}, graph, everything, result)) == []
