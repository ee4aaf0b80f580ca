"""Concentration of labeled nodes: by hand, and on labels from different samplers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.shift.concentration import concentration, representativeness
from dcgst.splits import sample


def matrix(dense) -> sp.csr_array:
    return sp.csr_array(np.asarray(dense, dtype=np.float32))


def mask(*rows) -> list[np.ndarray]:
    return [np.flatnonzero(row) for row in rows]


TWO_PAIRS = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


def test_two_pairs_by_hand():
    # A walk from node 0 is at node 1 after one and three steps: with probability 2/3 on average.
    # Node 1 has a quarter of all edge ends.
    together, apart = concentration(mask([1, 1, 0, 0], [1, 0, 1, 0]), matrix(TWO_PAIRS)).tolist()
    assert together == pytest.approx((2 * 2 / 3 + 1) / (2 / 4 + 1))
    assert apart == pytest.approx(1 / (2 / 4 + 1))


def test_weights_of_edges_count():
    # From node 0, a walk goes to node 1 three times as often as to node 2, and back to 0.
    star = [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    (value,) = concentration(mask([1, 1, 0]), matrix(star)).tolist()
    from_center = (3 / 4 + 0 + 3 / 4) / 3
    from_leaf = (1 + 0 + 1) / 3
    expected_by_chance = 3 / 8 + 4 / 8
    assert value == pytest.approx((from_center + from_leaf + 1) / (expected_by_chance + 1))


def test_walks_around_a_triangle_do_not_count():
    # From node 0: at node 1 with probability 1/2, 1/4 and 3/8 after one, two and three steps.
    triangle = 1 - np.eye(3)
    (value,) = concentration(mask([1, 1, 0]), matrix(triangle)).tolist()
    observed = 2 * (1 / 2 + 1 / 4 + 3 / 8) / 3
    assert value == pytest.approx((observed + 1) / (2 / 3 + 1))


def test_nodes_without_edges_are_never_reached():
    (value,) = concentration(mask([1, 1, 0]), matrix(np.zeros((3, 3)))).tolist()
    assert value == 1


def test_labels_around_one_node_are_concentrated_and_random_labels_are_not():
    graph = synthetic(nodes=600, seed=1)
    adjacency = graph.adjacency
    values = {}
    for sampler in ("uniform", "degree", "ppr-s"):
        split = sample(graph, sampler, per_class=8, runs=3)
        values[sampler] = concentration(mask(*split.train), adjacency).mean()
    assert 0.7 < values["uniform"] < 1.4
    assert 0.7 < values["degree"] < 1.4
    assert values["ppr-s"] > 1.8


def test_trust_falls_from_one_to_zero():
    values = representativeness(torch.tensor([0.5, 1.25, 1.75, 2.25, 9.0])).tolist()
    assert values == [1, 1, 0.5, 0, 0]


def test_many_labels_are_compared_from_some_of_them():
    graph = synthetic(nodes=600, seed=1)
    adjacency = graph.adjacency
    labeled = mask(*sample(graph, "ppr-s", per_class=40, runs=1).train)
    exact = concentration(labeled, adjacency)[0]
    assert concentration(labeled, adjacency, starts=50)[0] == pytest.approx(exact, rel=0.15)
    every_second = concentration(labeled, adjacency, starts=159)[0]  # of 160
    assert every_second != exact


@pytest.mark.parametrize("limit", ["LABELS_AT_ONCE", "ENTRIES_AT_ONCE"])
def test_sets_can_be_computed_in_any_groups(monkeypatch, limit):
    graph = synthetic(nodes=300, seed=1)
    sets = mask(*sample(graph, "ppr-s", per_class=8, runs=5).train)
    together = concentration(sets, graph.adjacency)
    monkeypatch.setattr(f"dcgst.shift.concentration.{limit}", 40)
    np.testing.assert_allclose(concentration(sets, graph.adjacency), together, rtol=1e-6)


def test_a_set_without_nodes_is_not_concentrated():
    assert concentration(mask([0] * 4, [1, 0, 1, 0]), matrix(TWO_PAIRS))[0] == 1
