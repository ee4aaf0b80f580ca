"""DC-GST on another graph: the network alone, or averaged with EM."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.methods import DCGST, EM
from dcgst.methods.core.problem import Problem
from dcgst.methods.pooling import Prediction
from dcgst.numerics.graph_tensors import GraphTensors
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

    def test_em_helps_only_if_labels_are_known_there(self, small, one_run, other):
        fitted = DCGST(**QUICK).fit(small, one_run)
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
