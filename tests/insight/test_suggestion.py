"""Suggestions: similar to many uncertain nodes, dissimilar to labeled ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst import InputError, sample, suggest, synthetic
from dcgst.insight import suggestion
from dcgst.insight.suggestion import greedy_cover, max_similarity, similarity

EAST, NORTH, WEST = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]
DIAGONAL = [0.5**0.5, 0.5**0.5]


@pytest.fixture(scope="module")
def graph():
    return synthetic(300, 3, features=8, seed=2)


def test_similarity_is_the_fourth_power_of_a_positive_cosine():
    found = similarity(torch.tensor([EAST]), torch.tensor([EAST, NORTH, WEST, DIAGONAL]))
    assert found[0].tolist() == pytest.approx([1, 0, 0, 0.25])


def test_the_most_similar_label_counts(monkeypatch):
    monkeypatch.setattr(suggestion, "CANDIDATES", 2)  # rows per block
    labels = torch.tensor([EAST, WEST, DIAGONAL])
    found = max_similarity(torch.tensor([EAST, NORTH, WEST]), labels)
    assert found.tolist() == pytest.approx([1, 0.25, 1])


def test_the_cover_by_hand():
    candidates = torch.tensor([EAST, NORTH, WEST])
    targets = torch.tensor([EAST, NORTH, NORTH, WEST])
    weight = torch.tensor([0.1, 0.2, 0.2, 0.5])
    choice = greedy_cover(candidates, targets, weight, torch.zeros(4), 3)
    assert choice.selected == [2, 1, 0]
    assert choice.gains == pytest.approx([0.5, 0.4, 0.1])
    assert choice.nearest == [1, 2, 1]
    covered = max_similarity(targets, torch.tensor([WEST]))
    assert greedy_cover(candidates, targets, weight, covered, 1).selected == [1]


def test_a_target_stays_covered_by_earlier_choices():
    candidates = torch.tensor([EAST, DIAGONAL, WEST])
    targets, weight = torch.tensor([EAST, WEST]), torch.tensor([0.8, 0.2])
    choice = greedy_cover(candidates, targets, weight, torch.zeros(2), 3)
    assert choice.selected == [0, 2, 1]
    assert choice.gains == pytest.approx([0.8, 0.2, 0])


def test_a_less_similar_candidate_takes_nothing_away():
    """A target that is covered well is not covered worse by another label."""
    candidates = torch.tensor([DIAGONAL])
    targets, weight = torch.tensor([EAST, NORTH]), torch.tensor([0.5, 0.5])
    choice = greedy_cover(candidates, targets, weight, torch.tensor([1.0, 0.0]), 1)
    assert choice.gains == pytest.approx([0.125])
    assert choice.nearest == [1]


def test_no_candidate_is_chosen_twice():
    candidates = torch.tensor([EAST, EAST, EAST])
    choice = greedy_cover(candidates, torch.tensor([EAST]), torch.ones(1), torch.zeros(1), 3)
    assert sorted(choice.selected) == [0, 1, 2]


def test_near_duplicates_come_last():
    almost_east = [0.999, (1 - 0.999**2) ** 0.5]
    candidates = torch.tensor([EAST, almost_east, NORTH])
    targets, weight = torch.tensor([EAST, almost_east, NORTH]), torch.tensor([0.5, 0.45, 0.05])
    for in_order in (False, True):
        choice = greedy_cover(candidates, targets, weight, torch.zeros(3), 3, in_order=in_order)
        assert choice.selected == [0, 2, 1]


def test_suggestions_for_a_class(graph):
    labeled = np.arange(300) < 30
    proba = np.random.default_rng(0).dirichlet([1, 1, 0.3], size=300).astype(np.float32)
    found = [s.node for s in suggest(graph, proba, labeled, 8, focus=2).nodes]
    rank = (proba[found] > proba[found, 2:]).sum(1)
    assert (rank <= 1).all(), "one of the two likeliest classes"
    top = [s.node for s in suggest(graph, proba, labeled, 8, focus=2, top=True).nodes]
    values = proba[top, 2]
    assert (np.diff(values) <= 0).all()
    assert values[0] == proba[30:, 2].max()
    with pytest.raises(InputError, match="top needs a class"):
        suggest(graph, proba, labeled, 3, top=True)


def test_suggestions_are_unlabeled_distinct_and_useful(graph):
    labeled = sample(graph, "ppr-s", per_class=3, runs=1).train[0]
    proba = np.full((300, 3), 1 / 3, dtype=np.float32)
    found = suggest(graph, proba, labeled, 12)
    nodes = [s.node for s in found.nodes]
    assert len(set(nodes)) == 12
    assert not labeled[nodes].any()
    assert found.shift_after < found.shift_before
    covers = [s.covers for s in found.nodes]
    assert covers == sorted(covers, reverse=True), "each covers no more than the one before"
    assert found.covered_after == pytest.approx(found.covered_before + sum(covers))
    blind = labeled.copy()
    blind[np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:12]] = True
    assert suggest(graph, proba, blind, 1).covered_before < found.covered_after


def test_labels_cover_what_is_similar_to_them(graph):
    proba = np.full((300, 3), 1 / 3, dtype=np.float32)
    few, many = (suggest(graph, proba, np.arange(300) < n, 1).covered_before for n in (5, 100))
    assert 0 < few < many < 1


def test_a_suggestion_holds_the_prediction_of_its_node(graph):
    proba = np.full((300, 3), [0.2, 0.5, 0.3], dtype=np.float32)
    found = suggest(graph, proba, np.arange(300) < 5, 1).nodes[0]
    assert (found.predicted, found.probability) == (1, 0.5)
    entropy = -sum(p * np.log(p) for p in (0.2, 0.5, 0.3))
    assert found.entropy == pytest.approx(entropy, rel=1e-4)


def test_uncertain_nodes_attract_suggestions(graph):
    labeled = np.arange(300) < 5
    proba = np.tile(np.array([0.998, 0.001, 0.001], dtype=np.float32), (300, 1))
    uncertain = np.flatnonzero(graph.labels == 1)
    proba[uncertain] = 1 / 3
    nodes = [s.node for s in suggest(graph, proba, labeled, 5).nodes]
    assert np.isin(nodes, uncertain).mean() >= 0.8


def test_uncertainty_is_weighted_by_entropy():
    """Two groups of equal size: the share that is covered is the share of the entropy."""
    graph = synthetic(200, 2, features=4, homophily=1, noise=0, degree=20, seed=1)
    proba = np.where(graph.labels[:, None] == 0, [[0.5, 0.5]], [[0.99, 0.01]]).astype(np.float32)
    labeled = graph.labels == 0
    found = suggest(graph, proba, labeled, 1)
    assert graph.labels[found.nodes[0].node] == 1
    swapped = suggest(graph, proba, ~labeled, 1)
    assert graph.labels[swapped.nodes[0].node] == 0


def test_the_number_of_suggestions_is_checked(graph):
    proba, labeled = np.full((300, 3), 1 / 3, dtype=np.float32), np.arange(300) < 5
    for count in (0, 296):
        with pytest.raises(InputError, match=f"between 1 and 295 nodes can be .* got {count}"):
            suggest(graph, proba, labeled, count)
    assert len(suggest(graph, proba, labeled, 295).nodes) == 295


def test_on_a_large_graph_candidates_are_drawn(graph, monkeypatch):
    monkeypatch.setattr(suggestion, "CANDIDATES", 20)
    monkeypatch.setattr(suggestion, "TARGETS", 50)
    proba, labeled = np.full((300, 3), 1 / 3, dtype=np.float32), np.arange(300) < 5
    first, same, other = (
        [s.node for s in suggest(graph, proba, labeled, 20, seed=seed).nodes] for seed in (0, 0, 1)
    )
    assert first == same
    assert set(first) != set(other)
    with pytest.raises(InputError, match="between 1 and 20 nodes"):
        suggest(graph, proba, labeled, 21)
