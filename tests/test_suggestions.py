"""What to label next: near much doubt, far from all labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst import InputError, sample, suggest, synthetic
from dcgst.suggestions import cover, likeness, nearest


@pytest.fixture(scope="module")
def graph():
    return synthetic(300, 3, features=8, seed=2)


def test_covering_by_hand():
    east, north, west = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]
    candidates = torch.tensor([east, north, west])
    witnesses = torch.tensor([east, north, north, west])
    weight = torch.tensor([0.1, 0.2, 0.2, 0.5])
    chosen, gains = cover(candidates, witnesses, weight, torch.zeros(4), 3)
    assert chosen == [2, 1, 0]
    assert gains == pytest.approx([0.5, 0.4, 0.1])
    near = nearest(witnesses, torch.tensor([west]))
    assert near.tolist() == [0, 0, 0, 1]
    assert cover(candidates, witnesses, weight, near, 1)[0] == [1]
    diagonal = torch.tensor([[0.5**0.5, 0.5**0.5]])
    assert float(likeness(candidates[:1], diagonal)) == pytest.approx(0.25)


def test_suggestions_are_unlabeled_different_and_help(graph):
    split = sample(graph, "ppr-s", per_class=3, runs=1)
    labeled = split.train[0]
    proba = np.full((300, 3), 1 / 3, dtype=np.float32)
    found = suggest(graph, proba, labeled, 12)
    nodes = [s.node for s in found.nodes]
    assert len(set(nodes)) == 12
    assert not labeled[nodes].any()
    assert found.covered_after > found.covered_before
    assert found.shift_after < found.shift_before
    covers = [s.covers for s in found.nodes]
    assert covers == sorted(covers, reverse=True), "each helps no more than the one before"
    more = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:12]
    blind = labeled.copy()
    blind[more] = True
    assert suggest(graph, proba, blind, 1).covered_before < found.covered_after


def test_doubt_draws_suggestions(graph):
    labeled = np.arange(300) < 5
    proba = np.tile(np.array([0.998, 0.001, 0.001], dtype=np.float32), (300, 1))
    doubtful = np.flatnonzero(graph.labels == 1)
    proba[doubtful] = 1 / 3
    nodes = [s.node for s in suggest(graph, proba, labeled, 5).nodes]
    assert np.isin(nodes, doubtful).mean() >= 0.8


def test_too_many_or_too_few(graph):
    proba, labeled = np.full((300, 3), 1 / 3, dtype=np.float32), np.arange(300) < 5
    for count in (0, 296):
        with pytest.raises(InputError, match="from 1 to 295 nodes can be suggested"):
            suggest(graph, proba, labeled, count)
