"""Explanations, checked on a graph of seven nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcgst import Graph, InputError, Result, Run, Split, explain
from dcgst.methods.result import CANDIDATE
from dcgst.shift.ppr import ppr_rows

NAMES = ("x", "y", "z")
PROBA = np.array(
    [
        [0.5, 0.3, 0.2],  # a
        [0.6, 0.3, 0.1],  # b, neighbor of a
        [0.2, 0.7, 0.1],  # c, given label x, neighbor of a by the strongest edge
        [0.9, 0.05, 0.05],  # d, neighbor of a
        [0.1, 0.1, 0.8],  # e, given label z, neighbor of d
        [0.1, 0.8, 0.1],  # f, given label y, neighbor of c
        [0.3, 0.3, 0.4],  # g, no neighbor
    ],
    dtype=np.float32,
)
LABELS = np.array([-1, -1, 0, -1, 2, 1, -1])
EDGES = [[0, 0, 0, 3, 2], [1, 2, 3, 4, 5]]


def candidate(replica, stage, node, rank, selected, score=0.25, ner=0.5):
    return (replica, stage, node, 0, -1, 0.75, rank, score, ner, 1.0, selected)


def make_run(*rows, stages=(-1, 2, 0, -1, 0, 0, -1), method="dcgst") -> Run:
    graph = Graph.from_edges(
        EDGES, np.eye(7), LABELS, weights=[1, 3, 1, 1, 1], ids=list("abcdefg"), class_names=NAMES
    )
    history = [
        {"replica": 1, "stage": 2, "labeled": 4, "cmd_before": 0.4, "cmd": 0.3},
        {"replica": 0, "stage": 2, "labeled": 4, "cmd_before": 0.8, "cmd": 0.6},
    ]
    result = Result(
        proba=PROBA,
        given=LABELS,
        labeled_stage=np.array(stages),
        agreement=np.array([0.8, 1, 1, 1, 1, 1, 1], dtype=np.float32),
        history=history,
        stop_reason="",
        candidates=np.array(list(rows), dtype=CANDIDATE),
    )
    info = {"method": method, "settings": {"replicas": 5}}
    return Run(Path(), info, graph, Split.of(LABELS >= 0), result)


def test_the_class_its_probability_and_the_second_class():
    found = explain(make_run(), "a")
    assert (found.id, found.predicted, found.second, found.source) == ("a", "x", "y", "predicted")
    assert found.probability == pytest.approx(0.5)
    assert found.second_probability == pytest.approx(0.3)
    assert found.summary[:2] == [
        "It is x with probability 50%; the second class is y with 30%.",
        "80% of 5 replicas predict this class.",
    ]


def test_neighbors_are_ordered_by_edge_weight_then_by_probability():
    found = explain(make_run(), "a")
    assert [(n.id, n.weight) for n in found.neighbors] == [("c", 3), ("d", 1), ("b", 1)]
    assert [n.source for n in found.neighbors] == ["given", "predicted", "pseudo"]
    assert [n.predicted for n in found.neighbors] == ["x", "x", "x"]
    assert found.neighbors[0].probability == pytest.approx(0.2), "of the given class"
    assert [n.id for n in explain(make_run(), "a", most=2).neighbors] == ["c", "d"]
    assert "Neighbors of the same class: 3 of the 3 shown." in found.summary


def test_labels_nearby_have_their_share_of_the_pagerank():
    run = make_run()
    found = explain(run, "a")
    exact = _random_walk_shares(run, [2, 5, 4])
    assert [n.id for n in found.labeled] == ["c", "f", "e"]
    np.testing.assert_allclose([n.weight for n in found.labeled], exact, atol=1e-3)
    assert sum(n.weight for n in found.labeled) == pytest.approx(1)
    assert explain(run, "a", most=1).labeled[0].weight == pytest.approx(exact[0], abs=1e-3)
    assert f"Of the labels nearby, {exact[0]:.0%} (weighted by PageRank) are x." in found.summary


def _random_walk_shares(run: Run, nodes: list[int]) -> np.ndarray:
    """Shares by an exact solve: the walk from a node is its symmetric PageRank, by degree."""
    row = ppr_rows(run.graph.adjacency, np.array([0]), 0.1)[0]
    degree = np.asarray(run.graph.adjacency.sum(axis=1)).ravel() + 1
    walk = (row * np.sqrt(degree))[nodes]
    return walk / walk.sum()


def test_a_labeled_node_is_not_its_own_label_nearby():
    assert [n.id for n in explain(make_run(), "c").labeled] == ["f", "e"]


def test_a_given_label_that_the_model_doubts_is_pointed_out():
    found = explain(make_run(), "c")
    assert (found.source, found.predicted, found.second) == ("given", "x", "y")
    assert found.summary == [
        "Its class, x, is a given label.",
        "The model would predict y (70%) instead of x (20%); check the label.",
    ]
    assert explain(make_run(), "f").summary == ["Its class, y, is a given label."]


def test_a_node_without_neighbors():
    found = explain(make_run(), "g")
    assert found.neighbors == found.labeled == []
    assert found.summary[-1] == "It has no neighbors: its class depends on its features only."


def test_a_node_without_a_path_to_a_label():
    run = make_run()
    cut = Graph.from_edges([[0], [1]], np.eye(7), LABELS, ids=list("abcdefg"), class_names=NAMES)
    found = explain(replace(run, graph=cut), "a")
    assert found.labeled == []
    assert found.summary[-1] == "No given label is near it in the graph."


def test_candidacies_hold_the_candidates_and_the_shift_of_the_stage():
    run = make_run(
        candidate(0, 2, 0, rank=3, selected=False),
        candidate(1, 2, 0, rank=1, selected=True, score=np.nan, ner=np.nan),
        candidate(1, 2, 1, rank=1, selected=True),
    )
    first, second = explain(run, "a").candidacies
    assert (first.replica, first.stage, first.predicted, first.rank) == (0, 2, "x", 3)
    assert (first.confidence, first.selection_score, first.ner) == (0.75, 0.25, 0.5)
    assert (first.shift_before, first.shift_after, first.selected) == (0.8, 0.6, False)
    assert (second.selection_score, second.ner, second.selected) == (None, None, True)
    assert (second.shift_before, second.shift_after) == (0.4, 0.3)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([candidate(0, 1, 1, 0, True)], "It was never among the most confident nodes of its"),
        (
            [candidate(0, 3, 0, 1, False), candidate(1, 2, 0, 1, False)],
            "It was a candidate from stage 2 on, but other nodes had a higher selection score.",
        ),
        (
            [candidate(0, 3, 0, 1, False, score=np.nan)],
            "It was a candidate from stage 3 on, but other nodes had a higher confidence.",
        ),
        (
            [candidate(0, 3, 0, 1, True), candidate(1, 2, 0, 4, True), candidate(1, 3, 0, 0, True)],
            "It first got a pseudo-label (x) in stage 2, with confidence 75% and rank 4 in its "
            "class; 2 of 5 replicas trained on it in some stage, but it was not kept to the end.",
        ),
    ],
)
def test_the_summary_says_when_the_node_got_a_pseudo_label(rows, sentence):
    assert any(line.startswith(sentence) for line in explain(make_run(*rows), "a").summary)


def test_a_pseudo_label_that_was_kept():
    line = explain(make_run(candidate(0, 2, 1, 0, True)), "b").summary[2]
    assert line.endswith("1 of 5 replicas trained on it in some stage.")


def test_a_method_without_pseudo_labels():
    summary = explain(make_run(method="gcn"), "a").summary
    assert all(summary)
    assert not any("pseudo-label" in line or "candidate" in line for line in summary)


def test_an_unknown_id_is_reported():
    with pytest.raises(InputError, match="no node has the id 'nobody'"):
        explain(make_run(), "nobody")
