"""Correct and Smooth: both steps by hand, and the effect on accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.features.graph_tensors import GraphTensors, NodeFunction
from dcgst.methods import MLP, CorrectAndSmooth
from dcgst.methods.problem import Problem
from tests.methods.helpers import normalized, path


def problem_of(num_classes: int) -> Problem:
    """Three nodes in a row; the first two are labeled, 0 and 1."""
    graph = path([0, 1, -1])
    tensors = GraphTensors.of(graph.features, graph.adjacency)
    return Problem.build(tensors, graph.labels[None], num_classes)


def constant(values: torch.Tensor) -> NodeFunction:
    return lambda nodes: values[:, nodes.nodes]


DENSE = normalized(path([0, 1, -1]).adjacency)


@pytest.mark.parametrize("alpha", [0.4, 0.9])
def test_correction_by_hand(alpha):
    """Errors of one propagation step are scaled to the mean error of the labeled nodes."""
    proba = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]])
    error = np.array([[0.4, -0.3, -0.1], [-0.5, 0.7, -0.2], [0, 0, 0]])
    propagated = alpha * DENSE @ error + (1 - alpha) * error
    size = np.abs(propagated).sum(axis=1, keepdims=True)
    mean = (0.8 + 1.4) / 2
    problem, model = problem_of(3), constant(torch.tensor(proba[None]).float())
    method = CorrectAndSmooth(correct_alpha=alpha, steps=1)
    found = method.correct(problem, model)(problem.graph)
    np.testing.assert_allclose(found[0].numpy(), proba + mean * propagated / size, rtol=1e-5)


def test_tiny_propagated_errors_are_not_scaled():
    """With α₁ near 0 almost no error reaches node 2: scaling it up would invent an error."""
    proba = torch.full((1, 3, 2), 0.5)
    method = CorrectAndSmooth(correct_alpha=1e-4, steps=1)
    problem = problem_of(2)
    corrected = method.correct(problem, constant(proba))(problem.graph)
    assert float((corrected - proba)[0, 2].abs().max()) < 1e-4


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_smoothing_by_hand(alpha):
    """One propagation step from the given labels and, elsewhere, the corrected predictions."""
    corrected = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.8, 0.2]]])  # wrong for both labels
    method = CorrectAndSmooth(smooth_alpha=alpha, steps=1)
    problem = problem_of(2)
    found = method.smooth(problem, constant(corrected))(problem.graph)
    start = np.array([[1, 0], [0, 1], [0.8, 0.2]])
    expected = alpha * DENSE @ start + (1 - alpha) * start
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-5)


def test_accuracy_increases_if_only_the_edges_are_informative():
    rng = np.random.default_rng(0)
    graph = synthetic(300, 3, features=4, homophily=0.95, labels_per_class=8, shift=0.0, seed=3)
    noise = replace(graph, features=rng.normal(size=(300, 4)).astype(np.float32))
    settings = {"epochs": 30, "hidden": 16}
    plain = MLP(**settings).fit(noise).score(noise)
    assert CorrectAndSmooth(**settings).fit(noise).score(noise) > plain + 0.2


def test_is_applied_to_other_graphs(graph):
    """With the labels of the fit, the same; without labels, the network alone."""
    fitted = CorrectAndSmooth(epochs=2, hidden=4).fit(graph)
    labels = np.where(fitted.split_.train[0], graph.labels, -1)
    np.testing.assert_allclose(fitted.predict_proba(graph, labels), fitted.proba_, atol=1e-6)
    other = synthetic(120, 3, features=graph.num_features, seed=2)
    (network,) = fitted.models_
    x = torch.from_numpy(fitted.scale_features(other.features))
    with torch.no_grad():
        alone = network(x, None).logits.softmax(-1)[0].numpy()
    np.testing.assert_allclose(fitted.predict_proba(other), alone, atol=1e-6)
