"""Fits with experts: the experts alone, validation labels, the second fit, reported weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import DCGST, EM, MLP, CorrectAndSmooth
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import AGREEMENT, LEFT_OUT
from dcgst.methods.core.row_models import MeanRows
from dcgst.methods.dcgst.expert_fits import em_from_two_starts, fit_experts
from dcgst.methods.dcgst.experts import GP_STUDENT, STUDENT
from dcgst.methods.gaussian_process import GaussianProcess
from dcgst.methods.pooling import Prediction
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import Split, sample
from tests.methods.helpers import draw, ring_problem

QUICK = {"epochs": 10, "stage_epochs": 2, "max_stages": 2, "student_epochs": 3}


@pytest.fixture(scope="module")
def graph():
    return synthetic(nodes=200, seed=5)


def with_validation(graph) -> Split:
    split = sample(graph, "uniform", per_class=4, runs=1)
    val = np.zeros_like(split.train)
    val[0, np.flatnonzero(~split.train[0])[:12]] = True
    return Split(split.train, val, ~split.train & ~val, (0,))


def test_experts_are_the_methods_fitted_alone(graph):
    split = with_validation(graph)
    tensors = GraphTensors(MLP().scale_features(graph.features), graph.adjacency)
    labels = np.where(split.train, graph.labels, -1)
    val = torch.from_numpy(np.where(split.val, graph.labels, -1))
    problem = Problem.build(tensors, labels, graph.num_classes, pool=split.pool, seeds=(7,))
    teacher = torch.full((1, graph.num_nodes, graph.num_classes), 1 / graph.num_classes)
    fitted = fit_experts(problem, val, {"sign": teacher}, torch.ones(1))
    found = fitted.log_proba
    assert tuple(found) == ("sign", "gcn", "mlp", "cs", "lp", "em", "gp")
    torch.testing.assert_close(found["sign"], teacher.log())
    for kind, own in (
        (MLP, problem),
        (CorrectAndSmooth, problem),
        (EM, replace(problem, val_labels=val)),
    ):
        (alone,) = kind().solve(replace(own, checkpoint=type(problem.checkpoint)()))
        got = found[kind.name][0].exp().numpy()
        assert got == pytest.approx(np.clip(alone.proba, 1e-6, None), abs=1e-5)
    (gp,) = GaussianProcess().solve(problem)
    assert fitted.left_out == [gp.expectation[LEFT_OUT]]
    other = replace(problem, checkpoint=type(problem.checkpoint)())
    by_mlp = fit_experts(other, val, {"mlp": teacher}, torch.ones(1)).log_proba
    assert set(by_mlp) == set(found)
    torch.testing.assert_close(by_mlp["mlp"], teacher.log())


def test_the_second_start_of_em_counts_as_far_as_labels_are_not_trusted(monkeypatch):
    problem = ring_problem([[0, 1, -1, -1]] * 3, seeds=(0, 1, 2))
    network = torch.tensor([[[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]] * 3)
    starts = []

    def predicted(self, problem, start):
        starts.append(start)
        zero = torch.zeros(3)
        model = MeanRows([], [])  # not used
        return Prediction(draw(len(starts), 3, 4, 2).log_softmax(-1), zero, zero, model)

    monkeypatch.setattr(EM, "predict_nodes", predicted)
    trust = torch.tensor([1.0, 0.0, 0.5])
    found = em_from_two_starts(problem, network, trust).proba.log()
    first, second = (draw(i, 3, 4, 2).log_softmax(-1) for i in (1, 2))
    weight = torch.tensor([0, 1 / 2, 1 / 3])[:, None, None]
    expected = ((1 - weight) * first + weight * second).log_softmax(-1)
    torch.testing.assert_close(found, expected)
    assert starts[1][0].tolist() == pytest.approx(
        np.array([[3, 0], [0, 3], [0.9, 0.1], [0.2, 0.8]])
    )
    starts.clear()
    em_from_two_starts(problem, network, torch.ones(3))
    assert len(starts) == 1


def test_validation_nodes_keep_predictions_that_did_not_see_them(graph):
    split = with_validation(graph)
    node = int(np.flatnonzero(split.val[0])[0])
    wrong = graph.labels.copy()
    wrong[node] = (wrong[node] + 1) % graph.num_classes
    model = DCGST(**QUICK).fit(replace(graph, labels=wrong), split)
    assert model.proba_[node].argmax() == graph.labels[node]
    assert model.labels_[node] == wrong[node]  # given labels are kept


def test_refit_learns_from_the_validation_labels(graph):
    split = with_validation(graph)
    refit = DCGST(**QUICK).fit(graph, split)
    once = DCGST(refit=False, **QUICK).fit(graph, split)
    val = split.val[0]
    for fitted in (refit, once):
        assert (fitted.labeled_stage_[val] == -1).all()
        np.testing.assert_array_equal(fitted.labels_[val], graph.labels[val])
    assert not np.allclose(refit.proba_[split.pool[0]], once.proba_[split.pool[0]], atol=0.01)


def test_weights_of_all_members_are_reported(graph):
    result = DCGST(replicas=2, **QUICK).fit(graph, with_validation(graph)).result_
    weights = result.expert_weights
    assert set(weights) == {"gcn", "mlp", "cs", "sign", "lp", "em", "gp", STUDENT, GP_STUDENT}
    assert sum(weights.values()) == pytest.approx(1, abs=1e-5)
    assert set(result.expectation) == {LEFT_OUT, AGREEMENT}
    assert all(0.3 < share <= 1 for share in result.expectation.values())


def test_the_refit_can_be_resumed(graph, tmp_path):
    split = with_validation(graph)
    model = DCGST(**QUICK)
    first = model.fit(graph, split, checkpoint=tmp_path).proba_
    steps = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.step")}
    assert any("refit/mlp/training.step" in step for step in steps)
    second = DCGST(**QUICK).fit(graph, split, checkpoint=tmp_path).proba_
    assert np.array_equal(first, second)
