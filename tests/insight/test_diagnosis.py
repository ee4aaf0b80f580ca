"""Diagnosis: biased labels are found, random labels rarely, and warnings have sharp limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst import Graph, InputError, diagnose, sample, synthetic
from dcgst.insight.diagnosis import (
    DRAWS,
    SHIFT_NAMES,
    Shift,
    cmd_distances,
    degree_distances,
    distances,
    position_distances,
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic(400, 3, features=8, seed=3)


@pytest.fixture(scope="module")
def popular(graph):
    """The 30 nodes with the most neighbors."""
    mask = np.zeros(400, dtype=bool)
    mask[np.argsort(-graph.degrees)[:30]] = True
    return mask


def test_biased_labels_are_significant(graph):
    biased = sample(graph, "ppr-s", per_class=6, runs=3)
    assert all(diagnose(graph, mask).biased for mask in biased.train)


def test_random_labels_are_rarely_significant():
    graph = synthetic(150, 3, features=8, seed=3)
    rng = np.random.default_rng(0)
    significant = 0
    for _ in range(30):
        mask = np.zeros(150, dtype=bool)
        mask[rng.permutation(150)[:20]] = True
        significant += bool(diagnose(graph, mask).biased)
    assert significant <= 5, "one in twenty is expected"


def test_popular_nodes_differ_in_degree(graph, popular):
    found = diagnose(graph, popular)
    degree = next(shift for shift in found.shifts if shift.name == "degree")
    assert degree.significant
    assert degree.ratio == degree.value / degree.expected > 3
    assert SHIFT_NAMES["degree"] in found.headline
    assert degree.description.endswith("more than in a random sample")
    assert "The default counts biased labels less; compare it with the method gcn." in found.advice


def test_the_p_value_counts_the_labels_and_is_corrected(graph, popular):
    """No random set of 200 is as far away: p = 1/201, times five by Holm's correction."""
    degree = next(shift for shift in diagnose(graph, popular).shifts if shift.name == "degree")
    assert DRAWS == 200
    assert degree.p == pytest.approx(5 / 201)


def test_all_nodes_labeled_are_never_significant():
    graph = synthetic(60, 2, features=4, seed=1)
    found = diagnose(graph, np.ones(60, dtype=bool))
    assert [shift.p for shift in found.shifts] == [1] * 5
    assert found.headline == "The labels look like a random sample of the nodes."
    assert any("The method gp is faster" in line for line in found.advice)


def test_the_ratio_compares_with_random_sets():
    assert Shift("degree", 3.0, 1.5, 0.01, "").ratio == 2
    assert Shift("degree", 3.0, 0.0, 0.01, "").ratio == float("inf")
    assert Shift("degree", 3.0, 1.5, 0.049, "").significant
    assert not Shift("degree", 3.0, 1.5, 0.05, "").significant


def test_masks_say_which_labels_were_given(graph, popular):
    assert diagnose(replace(graph, masks={"train": popular})).labels == 30
    masks = {"train": popular, "val": np.arange(400) == np.flatnonzero(~popular)[0]}
    assert diagnose(replace(graph, masks=masks)).labels == 31
    assert diagnose(replace(graph, masks={})).labels == 400


def test_degrees_are_compared_by_their_logarithm():
    graph = Graph.from_edges([[0, 1], [1, 2]], np.ones((4, 1)))  # a path and an isolated node
    mean = (2 * np.log(2) + np.log(3)) / 4
    found = degree_distances(graph, [np.arange(4), np.array([3]), np.array([1])])
    np.testing.assert_allclose(found, [0, mean, np.log(3) - mean], atol=1e-12)


def test_positions_are_compared_by_the_walks_from_them():
    graph = Graph.from_edges([[0, 2], [1, 3]], np.ones((4, 1)))  # two components
    found = position_distances(graph, [np.arange(4), np.array([0, 1]), np.array([1, 2])])
    np.testing.assert_allclose(found[:2], [0, 0.5], atol=1e-6)
    assert 0 < found[2] < 0.1, "one node of each component"


def test_features_are_compared_by_their_moments():
    z = torch.tensor([[0.0], [0.0], [0.0], [4.0]])
    found = cmd_distances(z, [np.arange(4), np.array([3]), np.array([1])])
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert found[1] > found[2] > 0, "means differ by 3 and by 1"


def test_there_are_five_distances(graph):
    names = list(distances(graph, [np.arange(5)]))
    assert names == ["features", "degree", "position", "representation", "concentration"]


def path_graph(labels, classes=2) -> Graph:
    """A path; unknown labels are -1."""
    n = len(labels)
    names = [f"c{code}" for code in range(classes)]
    edges = [np.arange(n - 1), np.arange(1, n)]
    return Graph.from_edges(edges, np.eye(n), labels, class_names=names)


def warnings_of(labels, classes=2) -> str:
    return " | ".join(diagnose(path_graph(labels, classes)).warnings)


def test_classes_with_fewer_than_two_labels_are_named():
    found = warnings_of([0, 0, -1, 1, -1, -1], classes=3)
    assert "classes with fewer than two labels: c1 (1), c2 (0)" in found
    assert "fewer than two labels" not in warnings_of([0, 0, -1, 1, 1, -1])


def test_only_ten_classes_are_named():
    found = warnings_of([*range(12), -1], classes=12)
    assert "c9 (1) and 2 more" in found


def test_homophily_is_compared_with_chance():
    alternating = [0, 1] * 6  # 11 edges, none within a class
    found = diagnose(path_graph(alternating))
    assert (found.labeled_edges, found.homophily, found.homophilous) == (11, 0, False)
    assert found.homophily_by_chance == pytest.approx(0.5)
    assert "0% of the 11 edges between labeled nodes connect nodes of the same class" in (
        warnings_of(alternating)
    )
    assert any("the method gp or mlp" in line for line in found.advice)
    blocks = [0] * 6 + [1] * 6  # 10 of 11 edges; p = 12 / 2048
    found = diagnose(path_graph(blocks))
    assert (found.homophily, found.homophilous) == (pytest.approx(10 / 11), True)
    assert "same class" not in warnings_of(blocks)


def test_a_share_above_one_half_may_be_chance():
    """Nine tenths of the labels are of one class, so most edges connect it to itself."""
    labels = [0] * 4 + [1] + [0] * 10
    found = diagnose(path_graph(labels))
    assert found.homophily == pytest.approx(12 / 14)
    assert found.homophily_by_chance == pytest.approx((26 / 28) ** 2 + (2 / 28) ** 2)
    assert found.homophilous is None
    one_class = diagnose(path_graph([0] * 15 + [-1, 1]))
    assert (one_class.homophily, one_class.homophily_by_chance) == (1, 1)
    assert one_class.homophilous is None


def test_few_edges_between_labels_are_not_judged():
    found = diagnose(path_graph([0, 1] * 5))  # 9 edges
    assert (found.labeled_edges, found.homophilous) == (9, None)
    assert "same class" not in warnings_of([0, 1] * 5)


def test_concentration_of_labels_is_measured():
    graph = synthetic(400, 4, seed=3)
    uniform, biased = (
        sample(graph, sampler, per_class=8, runs=1).train[0] for sampler in ("uniform", "ppr-s")
    )
    assert diagnose(graph, uniform).concentration < 1.7
    assert diagnose(graph, biased).concentration > diagnose(graph, uniform).concentration + 0.5


def test_five_times_as_many_labels_are_a_warning():
    assert "labels per class range from 2 to 10" in warnings_of([0] * 10 + [1] * 2 + [-1])
    assert "range" not in warnings_of([0] * 9 + [1] * 2 + [-1])
    assert "range from 0 to 5" in warnings_of([0] * 5 + [-1])
    assert "range" not in warnings_of([0] * 4 + [-1])


def test_components_without_a_label_are_counted():
    edges = np.array([[0, 1, 2, 4, 5], [1, 2, 3, 5, 6]])
    labels = [0, 1, -1, -1, -1, -1, -1, -1]
    graph = Graph.from_edges(edges, np.eye(8), labels, class_names=["x", "y"])
    found = diagnose(graph)
    assert (found.components, found.unreached, found.isolated) == (3, 4, 1)
    assert (found.nodes, found.edges, found.labels, found.rate) == (8, 5, 2, 0.25)
    assert found.counts == {"x": 1, "y": 1}
    assert found.homophily == 0
    text = " ".join(found.warnings)
    assert "4 nodes are in components without a label" in text
    assert "1 nodes have no edge" in text
    assert "Label a node in the larger components that have no label." in found.advice


def test_homophily_is_unknown_without_edges_between_labels():
    assert diagnose(path_graph([0, -1, 1, -1, 0])).homophily is None


def test_labels_outside_the_mask_do_not_count():
    graph = path_graph([0, 1, 0, 1, 1, 1])
    found = diagnose(graph, np.array([False, False, False, True, True, True]))
    assert found.homophily == 1
    assert found.counts == {"c0": 0, "c1": 3}


def test_a_graph_without_labels_is_refused():
    graph = synthetic(50, 2, features=4).with_labels(np.full(50, -1))
    with pytest.raises(InputError, match="nothing to diagnose"):
        diagnose(graph)


def test_homophily_is_not_judged_if_one_class_has_most_labels():
    """30 edges between labeled nodes; two of three connect the same class, most of them one."""
    left = np.zeros(30, dtype=int)
    right = np.where(np.arange(30) % 3 == 0, 1, 0)
    graph = Graph.from_edges(
        np.stack([np.arange(30), np.arange(30) + 30]),
        np.ones((60, 1)),
        np.concatenate([left, right]),
    )
    found = diagnose(graph, np.ones(60, dtype=bool))
    assert found.homophily == pytest.approx(2 / 3)
    assert found.homophily_by_chance > 0.6
    assert found.homophilous is None


def test_columns_in_which_labeled_nodes_differ_are_named():
    rng = np.random.default_rng(0)
    year, words = rng.normal(size=(300, 1)), rng.normal(size=(300, 5))
    labels = np.full(300, -1)
    oldest = np.argsort(year[:, 0])[:20]  # only old papers are labeled
    labels[oldest] = np.arange(20) % 2
    pairs = rng.integers(0, 300, (2, 600))
    graph = Graph.from_edges(pairs, np.hstack([words, year]).astype(np.float32), labels)
    found = diagnose(graph, columns={"words": 5, "year": 1})
    assert [column.name for column in found.columns] == ["year", "words"]
    assert [column.significant for column in found.columns] == [True, False]
    assert found.columns[0].ratio > 5
    assert "columns: year (" in found.biased_columns
    assert diagnose(graph).biased_columns == ""
    noise = rng.normal(size=(300, 30)).astype(np.float32)  # however many other columns there are
    wide = replace(graph, features=np.hstack([graph.features, noise]))
    many = {"words": 5, "year": 1} | {f"noise {number}": 1 for number in range(30)}
    assert [c.name for c in diagnose(wide, columns=many).columns if c.significant] == ["year"]


def test_random_labels_rarely_differ_in_a_column():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(200, 4)).astype(np.float32)
    pairs = rng.integers(0, 200, (2, 400))
    named = 0
    for seed in range(20):
        labels = np.full(200, -1)
        labels[np.random.default_rng(seed).permutation(200)[:16]] = np.arange(16) % 2
        graph = Graph.from_edges(pairs, features, labels)
        named += bool(diagnose(graph, columns=dict.fromkeys("abcd", 1)).biased_columns)
    assert named <= 4


def test_labels_around_one_node_are_biased_although_nothing_else_differs():
    """A ring of equal nodes: only that the labeled ones are neighbors tells them from others."""
    n = 600
    nodes = np.arange(n)
    edges = [np.r_[nodes, nodes], np.r_[(nodes + 1) % n, (nodes + 2) % n]]
    graph = Graph.from_edges(edges, np.ones((n, 2)), nodes % 2)
    together, apart = diagnose(graph, nodes < 12), diagnose(graph, nodes % 50 == 0)
    assert "reach each other" in together.headline
    assert not apart.biased
    shift = next(shift for shift in together.shifts if shift.name == "concentration")
    assert together.concentration == shift.value > 2
