"""The SIGN backbone: its inputs, on its own graph and on others, and its stored projection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.features.graph_features import GraphFeatures
from dcgst.features.graph_tensors import GraphTensors
from dcgst.methods.networks import SIGN
from dcgst.nn import BACKBONES, Backbone


def tensors(seed: int, features: int = 12) -> GraphTensors:
    graph = synthetic(60, 3, features=features, degree=4, labels_per_class=2, seed=seed)
    return GraphTensors.of(graph.features, graph.adjacency)


@pytest.fixture
def model() -> Backbone:
    return BACKBONES["sign"]([1, 2], 12, 8, 3)


def test_inputs_on_its_own_graph_are_the_propagated_features(model):
    graph = tensors(0)
    model.adapt(graph)
    expected = torch.cat(list(graph.propagated.values()), 1)
    torch.testing.assert_close(model.inputs(graph), expected)
    assert expected.shape == (60, model.num_inputs) == (60, 5 * 12 + 1)


def test_inputs_on_another_graph_use_the_projection_of_the_first(model):
    first, other = tensors(0), tensors(1)
    model.adapt(first)
    learned = first.source.learned
    expected = GraphFeatures(other.source.features, other.source.neighbors, learned=learned)
    blocks = expected.propagated(slice(None))
    torch.testing.assert_close(model.inputs(other), torch.cat(list(blocks.values()), 1))
    own = torch.cat(list(other.propagated.values()), 1)
    assert not torch.allclose(model.inputs(other), own, atol=0.1)


def test_projection_is_stored_with_the_parameters(model):
    graph, other = tensors(0), tensors(1)
    model.adapt(graph)
    copy = Backbone.from_config(model.config())
    copy.load_state_dict(model.state_dict())
    torch.testing.assert_close(copy.inputs(other), model.inputs(other))


def test_a_selected_replica_gives_its_own_output(model):
    graph = tensors(0)
    model.adapt(graph)
    one = model.select_replica(1)
    both = model(model.inputs(graph), graph.adjacency).logits
    torch.testing.assert_close(one(one.inputs(graph), graph.adjacency).logits[0], both[1])


def test_a_graph_smaller_than_the_projection_has_inputs_of_the_same_width():
    x = sp.random_array((20, 300), density=0.2, rng=np.random.default_rng(0), format="csr")
    ring = sp.csr_array(np.roll(np.eye(20), 1, 0) + np.roll(np.eye(20), -1, 0))
    graph = GraphTensors.of(x.astype(np.float32), ring)
    model = BACKBONES["sign"]([1], 300, 8, 3)
    model.adapt(graph)
    inputs = model.inputs(graph)
    assert inputs.shape == (20, model.num_inputs) == (20, 5 * 64 + 1)
    assert bool(inputs.isfinite().all())


def test_the_method_predicts_on_another_graph_of_the_same_kind():
    first, other = (
        synthetic(300, 3, features=16, seed=seed, labels_per_class=15) for seed in (2, 3)
    )
    # Classes have the same features in both graphs.
    other = replace(other, features=first.features, labels=first.labels)
    fitted = SIGN(epochs=60).fit(first)
    assert fitted.score(other) > 0.6
