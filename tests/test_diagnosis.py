"""Diagnosis: biased labels are called biased, random ones not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst import Graph, InputError, diagnose, load, sample, synthetic


@pytest.fixture(scope="module")
def digits() -> Graph:
    return load("digits")


def test_biased_labels_are_told_from_random_ones(digits):
    biased = sample(digits, "ppr-s", per_class=6, runs=3)
    assert all(diagnose(digits, mask).biased for mask in biased.train)


def test_random_labels_are_seldom_called_biased():
    graph = synthetic(250, 3, features=8, seed=3)
    rng = np.random.default_rng(0)
    called = 0
    for _ in range(40):
        mask = np.zeros(250, dtype=bool)
        mask[rng.permutation(250)[:20]] = True
        called += bool(diagnose(graph, mask).biased)
    assert called <= 6, "one in twenty, give or take"


def test_masks_say_which_labels_were_given():
    graph = synthetic(400, 3, features=8, seed=3)
    popular = np.zeros(400, dtype=bool)
    popular[np.argsort(-graph.degrees)[:30]] = True
    assert diagnose(replace(graph, masks={"train": popular})).labels == 30


def test_popular_nodes_have_another_degree():
    graph = synthetic(400, 3, features=8, seed=3)
    popular = np.zeros(400, dtype=bool)
    popular[np.argsort(-graph.degrees)[:30]] = True
    found = diagnose(graph, popular)
    degree = next(shift for shift in found.shifts if shift.name == "degree")
    assert degree.unusual
    assert degree.ratio > 3
    assert "how many neighbours they have" in found.headline
    assert any("suggest" in line for line in found.advice)


def test_labels_of_one_part_leave_others_out_of_reach():
    edges = np.array([[0, 1, 2, 4, 5], [1, 2, 3, 5, 6]])
    labels = [0, 1, -1, -1, -1, -1, -1, -1]
    graph = Graph.from_edges(edges, np.eye(8), labels, class_names=["x", "y"])
    found = diagnose(graph)
    assert (found.components, found.unreached, found.isolated) == (3, 4, 1)
    assert found.counts == {"x": 1, "y": 1}
    assert found.homophily == 0
    words = " ".join(found.warnings)
    assert "4 nodes lie in parts of the graph without a label" in words
    assert "fewer than two labels: x (1), y (1)" in words
    assert "only 0% of the edges" in words


def test_it_needs_a_label():
    graph = synthetic(50, 2, features=4).with_labels(np.full(50, -1))
    with pytest.raises(InputError, match="nothing to diagnose"):
        diagnose(graph)
