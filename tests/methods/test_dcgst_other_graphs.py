"""DC-GST on another graph: the combined prediction of all experts, without a new fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.methods import DCGST, EM
from dcgst.methods.core.problem import Problem
from dcgst.methods.pooling import Prediction
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import Split
from tests.methods.helpers import draw, ring_problem

QUICK = {"hidden": 8, "epochs": 6, "stage_epochs": 3, "student_epochs": 2, "max_stages": 1}


class TestOtherGraphs:
    @pytest.fixture
    def other(self) -> Graph:
        return synthetic(90, 3, features=8, labels_per_class=4, seed=6)

    def test_em_starts_from_the_labels_and_from_the_network(self, monkeypatch):
        problem = ring_problem([0, 1, -1, -1], pool=[[False, False, True, False]])
        starts = []

        def recorded(self, problem, start):
            starts.append(start)
            return Prediction(torch.zeros_like(start), torch.zeros(1), torch.zeros(1))

        monkeypatch.setattr(EM, "predict_nodes", recorded)
        logits = torch.tensor([[[9.0, 0], [9, 0], [1, 0], [9, 0]]])
        EM().average_with(problem, logits)
        p = 1 / (1 + np.exp(-1))
        assert starts[0].tolist() == [[[3, 0], [0, 3], [0, 0], [0, 0]]]
        expected = [[3, 0], [0, 3], [p, 1 - p], [0, 0]]
        np.testing.assert_allclose(starts[1][0].numpy(), expected, rtol=1e-6)

    def test_network_and_em_have_equal_weights(self, monkeypatch):
        problem = ring_problem([0, 1, -1, -1])
        zero = torch.zeros(1)
        em = [Prediction(draw(i, 1, 4, 2), zero, zero) for i in (0, 1)]
        logits = draw(2, 1, 4, 2)
        network = Prediction.from_logits(logits, problem.val_labels).log_proba
        expected = (em[0].log_proba + em[1].log_proba + network) / 3
        monkeypatch.setattr(EM, "predict_nodes", lambda *_: em.pop(0))
        torch.testing.assert_close(EM().average_with(problem, logits), expected)

    @pytest.mark.parametrize("replicas", [1, 2])
    def test_the_same_nodes_have_the_same_probabilities(self, small, replicas):
        split = Split.known_labels(small)
        fitted = DCGST(**QUICK, replicas=replicas).fit(small, split)
        labels = np.where(split.train[0], small.labels, -1)
        order = np.random.default_rng(0).permutation(small.num_nodes)
        found = fitted.predict_proba(small.reorder(order), labels[order])
        pool = split.pool[0][order]
        np.testing.assert_allclose(found[pool], fitted.proba_[order][pool], atol=1e-4)

    def test_without_labels_the_experts_that_propagate_them_are_left_out(
        self, small, one_run, other
    ):
        fitted = DCGST(**QUICK).fit(small, one_run)
        (pool,) = fitted.result_.predictors
        assert set(pool.log_weights) - set(pool.members) == {"lp", "cs"}
        labels = np.where(np.arange(90) % 2 == 0, other.labels, -1)
        with_labels, without = fitted.predict_proba(other, labels), fitted.predict_proba(other)
        assert not np.allclose(with_labels, without, atol=0.01)
        np.testing.assert_allclose(without.sum(axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("count", [1, 4])
    def test_a_few_labels_there_do_not_outweigh_the_fit(self, small, one_run, other, count):
        """Label propagation from one label would predict its class everywhere."""
        fitted = DCGST(**QUICK).fit(small, one_run)
        labels = np.full(other.num_nodes, -1)
        labels[np.flatnonzero(other.labels == 1)[:count]] = 1
        np.testing.assert_array_equal(
            fitted.predict_proba(other, labels), fitted.predict_proba(other)
        )

    def test_members_whose_weight_is_tiny_remain_if_the_others_are_missing(self, small, one_run):
        fitted = DCGST(**QUICK).fit(small, one_run)
        (pool,) = fitted.result_.predictors
        lower = {
            name: own - 500 * (name not in ("lp", "cs")) for name, own in pool.log_weights.items()
        }
        pool = replace(pool, log_weights=lower)
        fitted.result_ = replace(fitted.result_, predictors=(pool,))
        found = fitted.predict_proba(synthetic(60, 3, features=8, seed=9))
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)

    def test_results_of_version_0_1_have_network_and_em(self, small, one_run, other):
        fitted = DCGST(**QUICK).fit(small, one_run)
        fitted.result_ = replace(fitted.result_, predictors=(), learned=None)
        labels = np.where(other.masks["train"], other.labels, -1)
        tensors = GraphTensors(
            fitted.scale_features(other.features), other.adjacency, unscaled=other.features
        )
        problem = Problem.build(tensors, labels[None], 3)
        (model,) = fitted.models_
        with torch.no_grad():
            output = model(model.inputs(tensors), model.operator(tensors.adjacency))
        alone = output.logits.softmax(-1)[0].numpy()
        np.testing.assert_allclose(fitted.predict_proba(other), alone, atol=1e-6)
        averaged = EM().average_with(problem, output.logits).softmax(-1)[0].numpy()
        found = fitted.predict_proba(other, labels)
        np.testing.assert_allclose(found, averaged, atol=1e-5)
        assert not np.allclose(found, alone, atol=0.05)

    def test_without_experts_the_network_decides(self, small, one_run, other):
        fitted = DCGST(experts=False, **QUICK).fit(small, one_run)
        labels = np.where(other.masks["train"], other.labels, -1)
        np.testing.assert_array_equal(
            fitted.predict_proba(other, labels), fitted.predict_proba(other)
        )
