"""The scikit-learn API of all methods: predict, score, embed, config, reordering."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.features.sparse import SparseMatrix
from dcgst.methods import DCGST, GCN, METHODS, Majority, method
from dcgst.nn import GATBackbone
from dcgst.splits import sample
from tests.methods.helpers import LinearBackbone, normalized


@pytest.fixture(scope="module")
def other():
    """Another graph with the same features."""
    return synthetic(100, 3, features=12, seed=8)


@pytest.fixture(scope="module")
def two(graph) -> GCN:
    """A fitted method with two replicas."""
    return GCN(epochs=10, hidden=8, replicas=2).fit(graph)


class TestPredict:
    def test_on_another_graph_is_the_mean_over_the_networks(self, two, other):
        x = torch.tensor(two.scale_features(other.features))
        adjacency = SparseMatrix.from_scipy(other.adjacency)
        with torch.no_grad():
            each = [m(x, m.operator(adjacency)).logits[0].softmax(-1) for m in two.models_]
        assert len(each) == 2
        expected = torch.stack(each).mean(0).numpy()
        np.testing.assert_allclose(two.predict_proba(other), expected, atol=1e-6)
        np.testing.assert_array_equal(two.predict(other), expected.argmax(axis=1))

    def test_on_an_equal_graph_is_the_fitted_result(self, two, graph):
        np.testing.assert_array_equal(two.predict_proba(dataclasses.replace(graph)), two.proba_)

    def test_given_labels_are_kept_on_the_fitted_graph_only(self, graph):
        data = graph.to_pyg()
        wrong = graph.labels.copy()
        given = np.flatnonzero(graph.masks["train"])
        wrong[given] = (wrong[given] + 1) % 3
        data.y = torch.tensor(wrong)
        fitted = GCN(epochs=5, hidden=8).fit(data)
        np.testing.assert_array_equal(fitted.predict(data)[given], wrong[given])
        blank = dataclasses.replace(graph, features=np.zeros((240, 12), np.float32))
        np.testing.assert_array_equal(
            fitted.predict(blank), fitted.predict_proba(blank).argmax(axis=1)
        )
        assert not np.allclose(fitted.predict_proba(blank), fitted.proba_)

    def test_other_number_of_features_is_refused(self, two):
        with pytest.raises(InputError, match="fitted on 12 features, this graph has 5"):
            two.predict(synthetic(100, 3, features=5))

    def test_labels_of_wrong_shape_are_refused(self, two, other):
        with pytest.raises(InputError, match=r"labels must be 100 class codes, got \(3,\)"):
            two.predict_proba(other, labels=np.zeros(3, dtype=int))

    def test_majority_predicts_the_class_shares_of_the_fit(self, graph, other):
        fitted = Majority().fit(graph)
        expected = np.tile(fitted.proba_[0], (other.num_nodes, 1))
        np.testing.assert_array_equal(fitted.predict_proba(other), expected)

    def test_method_without_a_model_is_refused(self, graph, other):
        fitted = GCN(epochs=1).fit(graph)
        fitted.result_ = dataclasses.replace(fitted.result_, models=())
        with pytest.raises(InputError, match="gcn has no model that can be applied"):
            fitted.predict(other)
        with pytest.raises(InputError, match="gcn has no network, and so no embeddings"):
            fitted.embed()

    def test_fit_runs_does_not_change_the_fitted_result(self, two, graph, other):
        before = two.predict_proba(other)
        two.fit_runs(graph, sample(graph, per_class=2, runs=2))
        np.testing.assert_array_equal(two.predict_proba(other), before)


class TestScore:
    def test_is_the_accuracy_on_the_test_nodes(self, two, graph):
        test = graph.masks["test"]
        assert two.score(graph) == pytest.approx((two.labels_ == graph.labels)[test].mean())

    def test_is_the_accuracy_on_a_mask(self, two, graph):
        mask = np.arange(240) < 50
        assert two.score(graph, mask) == pytest.approx((two.labels_ == graph.labels)[:50].mean())

    def test_is_the_accuracy_on_all_nodes_of_another_graph(self, two, other):
        assert two.score(other) == pytest.approx((two.predict(other) == other.labels).mean())

    def test_without_known_classes_is_refused(self, two, graph):
        with pytest.raises(InputError, match="no node to score has a known class"):
            two.score(graph.with_labels(np.full(240, -1)))


class TestEmbed:
    def test_is_the_hidden_layer_of_each_replica(self, two, graph):
        x, w = (
            two.scale_features(graph.features),
            [m.weight1[0].detach().numpy() for m in two.models_],
        )
        b = [m.bias1[0].detach().numpy() for m in two.models_]
        smooth = normalized(graph.adjacency) @ x
        expected = np.concatenate([np.maximum(smooth @ w[i] + b[i], 0) for i in (0, 1)], axis=1)
        assert two.embed().shape == (240, 2 * 8)
        np.testing.assert_allclose(two.embed(), expected, atol=1e-5)

    def test_of_another_graph_has_its_nodes(self, two, other):
        assert two.embed(other).shape == (100, 16)

    def test_without_network_is_refused(self, graph):
        with pytest.raises(InputError, match="majority has no network"):
            Majority().fit(graph).embed()


class TestConfig:
    @pytest.mark.parametrize("name", METHODS)
    def test_is_json_and_creates_the_method_again(self, name):
        config = json.loads(json.dumps(METHODS[name](seed=3).config()))
        again = method(name, **config)
        assert again.get_params() == METHODS[name](seed=3).get_params()

    def test_backbone_class_becomes_its_registered_name(self):
        assert DCGST(backbone=GATBackbone).config()["backbone"] == "gat"

    def test_unregistered_backbone_class_becomes_its_import_path(self):
        name = DCGST(backbone=LinearBackbone).config()["backbone"]
        assert name == "tests.methods.helpers:LinearBackbone"
        DCGST(backbone=name).check()


class TestReordering:
    """Large graphs are reordered inside; users see their own node order."""

    def test_results_are_in_the_order_of_the_user(self, graph, monkeypatch):
        split = sample(graph, per_class=4, runs=2)

        def results():
            return GCN(epochs=10, hidden=8, dropout=0.0).fit_runs(graph, split)

        in_order = results()
        monkeypatch.setattr("dcgst.train.device.LARGE", 0)
        for left, right in zip(in_order, results(), strict=True):
            np.testing.assert_allclose(left.proba, right.proba, atol=1e-5)
            np.testing.assert_array_equal(left.labeled_stage, right.labeled_stage)


def test_a_method_has_one_training_unless_it_has_stages():
    assert [METHODS[name]().count_trainings() for name in ("gcn", "em", "srgnn", "eerm")] == [
        1,
        1,
        1,
        1,
    ]
    assert DCGST(max_stages=3).count_trainings() == 5  # with the first and last network
