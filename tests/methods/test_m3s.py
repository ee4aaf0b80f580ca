"""M3S: the class of each cluster, and which confident nodes are selected."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.features.components import group_means
from dcgst.methods import M3S
from dcgst.methods import st as module
from dcgst.nn import Output
from tests.methods.helpers import draw, ring_problem


def test_cluster_gets_the_class_of_the_nearest_labeled_mean():
    """Three bundles of directions; the third has no label and is nearest to the second."""
    degrees = torch.tensor([0.0, 1, 2, 90, 91, 92, 120, 121, 122])
    hidden = torch.stack([torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))], -1)
    problem = ring_problem([0, -1, -1, 1, -1, -1, -1, -1, -1])
    unlabeled = problem.train_labels < 0
    for stage in range(5):  # for any random start of the clusters
        found = M3S(clusters=9).cluster_labels(
            5 * hidden[None], problem.train_labels, problem, stage
        )
        assert found[unlabeled].tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_no_cluster_gets_a_class_without_labels():
    problem = ring_problem([0, 1] + [-1] * 8, 3)
    found = M3S(clusters=4).cluster_labels(
        draw(0, 1, 10, 4) / 100, problem.train_labels, problem, 0
    )
    assert found.max() < 2


def test_selected_nodes_are_the_most_confident_whose_cluster_agrees(monkeypatch):
    """Nodes 0 to 3 are predicted as class 0; the quota is two, and node 1 is in another cluster."""
    proba = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.5, 0.5]]])
    clusters = torch.tensor([[0, 1, 0, 0, 1, 0]])
    monkeypatch.setattr(M3S, "cluster_labels", lambda *_: clusters)
    problem = ring_problem([-1, -1, -1, -1, -1, 0])
    output = Output(proba.log(), proba.log())
    selection = M3S(stages=1, per_class=2).select(output, problem.train_labels, problem, 1)
    assert selection.selected.tolist() == [[True, False, False, False, False, False]]
    assert selection.candidates.tolist() == [[True, True, True, True, False, False]]
    assert selection.selection_score.tolist() == [[1, 0, 1, 1, 1, 1]]


@pytest.mark.parametrize("per_class", [5, 70])
def test_candidates_show_agreement_as_selection_score(graph, split, per_class):
    method = M3S(stages=1, per_class=per_class, clusters=6, epochs=15, hidden=16)
    candidates = method.fit(graph, split).candidates_
    agrees = candidates["selection_score"] == 1
    np.testing.assert_array_equal(
        candidates["selected"], agrees & (candidates["rank"] <= per_class)
    )
    if per_class == 70:
        assert set(candidates["selection_score"]) == {0.0, 1.0}, "choose data where some disagree"


@pytest.mark.parametrize("code", [0, 1])
def test_labeled_nodes_of_no_class_belong_to_a_cluster(code):
    """Labeled and unlabeled nodes are far apart: a cluster of labeled nodes alone has no mean."""
    problem = ring_problem([code, 1 - code, -1, -1, -1, -1])
    hidden = torch.tensor([[[1.0, 0], [0, 1.0], [1, 0.1], [1, 0.2], [0.1, 1], [0.2, 1]]])
    seen = []

    def recorded(z, groups, count):
        seen.append(groups)
        return group_means(z, groups, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "group_means", recorded)
        M3S(clusters=2).cluster_labels(hidden, problem.train_labels, problem, 0)
    assert seen[1][0, :2].tolist() == [-1, -1]
    assert (seen[1][0, 2:] >= 0).all()
