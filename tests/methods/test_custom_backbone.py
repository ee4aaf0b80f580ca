"""Backbones as classes: a custom one in DC-GST, and networks that are stored and split."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.features.sparse import SparseMatrix
from dcgst.methods import DCGST, GCN
from dcgst.nn import BACKBONES, Backbone, GCNBackbone, register_backbone
from tests.methods.helpers import LinearBackbone, draw, normalized, ring

FEW = {"hidden": 4, "epochs": 4, "stage_epochs": 2, "student_epochs": 2, "max_stages": 2}


@pytest.fixture(scope="module")
def fitted(graph, split) -> DCGST:
    return DCGST(backbone=LinearBackbone, edge_predictor=True, **FEW).fit(graph, split)


class TestCustomBackbone:
    def test_is_the_network_of_the_method(self, fitted):
        (model,) = fitted.models_
        assert isinstance(model, LinearBackbone)
        assert fitted.candidates_["selected"].any()

    def test_predicts_on_another_graph(self, graph, split):
        """``softmax(A X W1 W2)`` with the weights that were learned."""
        fitted = DCGST(backbone=LinearBackbone, **FEW).fit(graph, split)
        other = synthetic(60, 3, features=12, seed=9)
        (model,) = fitted.models_
        w1, w2 = (w.detach()[0].numpy() for w in (model.weight1, model.weight2))
        logits = normalized(other.adjacency) @ fitted.scale_features(other.features) @ w1 @ w2
        expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(fitted.predict_proba(other), expected, atol=1e-5)

    def test_embeds_its_hidden_layer(self, fitted, graph):
        w1 = fitted.models_[0].weight1.detach()[0].numpy()
        expected = normalized(graph.adjacency) @ fitted.scale_features(graph.features) @ w1
        np.testing.assert_allclose(fitted.embed(), expected, atol=1e-5)

    def test_replicas_are_equal_together_and_alone(self, graph, split):
        settings = {"backbone": LinearBackbone, "replicas": 2, "epochs": 4, "hidden": 4}
        together, alone = (GCN(chunk_size=c, **settings).fit(graph, split) for c in (2, 1))
        np.testing.assert_allclose(together.proba_, alone.proba_, atol=1e-5)
        assert [m.replicas for m in together.models_] == [1, 1]

    def test_can_be_named_by_its_import_path(self, graph, split):
        settings = {"epochs": 2, "hidden": 4}
        by_class = GCN(backbone=LinearBackbone, **settings).fit(graph, split)
        by_path = GCN(backbone="tests.methods.helpers:LinearBackbone", **settings)
        np.testing.assert_array_equal(by_path.fit(graph, split).proba_, by_class.proba_)

    def test_can_be_registered(self, monkeypatch):
        monkeypatch.setattr(BACKBONES, "_items", dict(BACKBONES._items))
        register_backbone("linear", LinearBackbone)
        DCGST(backbone="linear").check()
        assert DCGST(backbone=LinearBackbone).config()["backbone"] == "linear"


class TestNetworkWithThreeReplicas:
    @pytest.fixture(
        params=[*(n for n in BACKBONES if n != "sign"), "tests.methods.helpers:LinearBackbone"]
    )
    def model(self, request) -> Backbone:
        return BACKBONES[request.param]([3, 1, 4], 5, 8, 2, dropout=0.25, activation="tanh")

    @torch.no_grad()
    def test_selected_replica_has_the_outputs_of_that_replica(self, model):
        x, operator = draw(0, 7, 5), model.operator(SparseMatrix.from_scipy(ring(7)))
        together = model(x, operator)
        for replica in range(3):
            alone = model.select_replica(replica)
            assert alone.replicas == 1
            output = alone(x, operator)
            torch.testing.assert_close(output.embedding[0], together.embedding[replica])
            torch.testing.assert_close(output.logits[0], together.logits[replica])

    @torch.no_grad()
    def test_network_from_config_and_parameters_is_the_same(self, model):
        config = json.loads(json.dumps(model.config()))
        again = Backbone.from_config(config)
        again.load_state_dict(model.state_dict())
        assert type(again) is type(model)
        assert again.config() == model.config()
        x, operator = draw(0, 7, 5), model.operator(SparseMatrix.from_scipy(ring(7)))
        torch.testing.assert_close(again(x, operator).logits, model(x, operator).logits)

    def test_config_has_everything_but_the_parameters(self, model):
        config = model.config()
        assert (config["dropout"], config["activation"], config["replicas"]) == (0.25, "tanh", 3)
        assert (config["num_features"], config["hidden"], config["num_classes"]) == (5, 8, 2)


def test_only_replica_is_the_network_itself():
    model = GCNBackbone([0], 5, 8, 2)
    assert model.select_replica(0) is model


def test_unknown_activation_is_refused():
    config = GCNBackbone([0], 5, 8, 2).config()
    with pytest.raises(InputError, match="unknown activation 'sin'"):
        Backbone.from_config({**config, "activation": "sin"})
