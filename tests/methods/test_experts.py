"""Experts of DC-GST: weights and scales by hand, fits with validation labels, refit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import DCGST
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import AGREEMENT, LEFT_OUT
from dcgst.methods.core.row_models import Affine
from dcgst.methods.dcgst import experts as module
from dcgst.methods.dcgst.calibration import Correction, fit_factor
from dcgst.methods.dcgst.expert_fits import Fitted
from dcgst.methods.dcgst.experts import (
    GP_STUDENT,
    STUDENT,
    Evidence,
    Experts,
)
from dcgst.numerics.graph_tensors import GraphTensors
from dcgst.splits import sample

QUICK = {"epochs": 10, "stage_epochs": 2, "max_stages": 2, "student_epochs": 3}


@pytest.fixture
def problem() -> Problem:
    """Two fits on ten nodes: three pool nodes, one labeled node, and six without a role."""
    adjacency = synthetic(nodes=40, seed=0).adjacency[:10, :10]
    labels = np.full((2, 10), -1)
    labels[:, 0], labels[:, 1] = 0, 1
    pool = np.zeros((2, 10), dtype=bool)
    pool[:, 2:6] = True
    graph = GraphTensors(np.eye(10, dtype=np.float32), adjacency)
    return Problem.build(graph, labels, 2, pool=pool, seeds=(0, 1))


def predicting(*classes: int, confidence: float = 0.8) -> torch.Tensor:
    """``(2, 10, 2)`` log-probabilities: pool nodes 2 to 5 have the given classes."""
    proba = torch.full((2, 10, 2), 0.5)
    for node, code in enumerate(classes, start=2):
        proba[:, node] = 1 - confidence
        proba[:, node, code] = confidence
    return proba.log()


@pytest.fixture
def four(monkeypatch):
    """Replace the fitted experts by EM, label propagation and GP; the teacher is the fourth."""
    fitted = {
        "em": predicting(0, 0, 1, 1),
        "lp": predicting(0, 0, 1, 0),
        "gp": predicting(0, 0, 1, 1, confidence=0.9),
    }
    everything = {"sign": predicting(0, 0, 0, 0), **fitted}
    monkeypatch.setattr(module, "fit_experts", lambda *_: Fitted(everything, {}, [0.75, 0.5]))
    return everything


NONE = torch.full((2, 10), -1)


def experts_of(problem, four, val_labels=NONE, **options) -> Experts:
    return Experts(problem, four["sign"], "sign", val_labels, **options)


def test_agreement_is_measured_on_the_pool_against_the_others(problem, four):
    experts = experts_of(problem, four)
    got = {name: experts.agreement(name, p)[0] for name, p in four.items()}
    em = float(experts.prior("em")[0])
    assert 1 <= em <= 10
    assert [float(experts.prior(name)[0]) for name in ("sign", "lp", "gp")] == [1, 1, 1]
    assert float(got["sign"]) == pytest.approx((em * 2 / 4 + 3 / 4 + 2 / 4) / (em + 2))
    assert float(got["em"]) == pytest.approx((2 / 4 + 3 / 4 + 4 / 4) / 3)
    student = experts.agreement(STUDENT, predicting(1, 1, 1, 1))
    assert float(student[0]) == pytest.approx((0 + em * 2 / 4 + 1 / 4 + 2 / 4) / (em + 3))


def test_predictions_are_scaled_to_their_agreement(problem, four, monkeypatch):
    monkeypatch.setattr(module, "MAX_SCALE", 100.0)
    experts = experts_of(problem, four)
    for name, log_proba in four.items():
        everywhere = log_proba[:, 2:6].repeat(1, 3, 1)[:, :10]
        agreement = max(float(experts.agreement(name, everywhere)[0]), experts.chance)
        scaled = experts.weigh(name, everywhere).exp()
        assert float(scaled[0].amax(-1).mean()) == pytest.approx(agreement, abs=1e-3)


def test_flat_predictions_are_not_scaled_up(problem, four):
    flat = predicting(0, 0, 1, 1, confidence=0.501)
    scaled = experts_of(problem, four).weigh("em", flat)
    torch.testing.assert_close(scaled, (4 * flat).log_softmax(-1))


def test_weights_are_prior_times_squared_agreement(problem, four):
    experts = experts_of(problem, four)
    students = {STUDENT: predicting(0, 0, 1, 1), GP_STUDENT: predicting(0, 1, 1, 1)}
    pool = experts.pool(students)
    mass = {
        name: float(experts.prior(name)[0] * experts.agreement(name, p)[0] ** 2)
        for name, p in {**four, **students}.items()
    }
    got = {name: float(weight[0]) for name, weight in pool.weights.items()}
    assert got == pytest.approx({name: x / sum(mass.values()) for name, x in mass.items()})
    assert sum(got.values()) == pytest.approx(1)


def test_the_pool_is_the_calibrated_weighted_mean_of_log_probabilities(problem, four, monkeypatch):
    seen = []

    def recorded(problem, log_proba, confidence, val_labels, trust, **_):
        seen.append((log_proba, confidence))
        return Affine(torch.ones(2)), Correction(torch.ones(2), torch.zeros(2, 2))

    monkeypatch.setattr(module, "calibrate", recorded)
    experts = experts_of(problem, four)
    student = predicting(1, 1, 1, 1)
    pool = experts.pool({STUDENT: student})
    expected = sum(
        weight[:, None, None] * experts.weigh(name, {**four, STUDENT: student}[name])
        for name, weight in pool.weights.items()
    )
    torch.testing.assert_close(pool.log_proba, expected.log_softmax(-1), atol=1e-6, rtol=1e-5)
    # The expected confidence: 0.9 of GP if labels are representative, else that of the pool.
    own = float(pool.log_proba.exp()[0, 2:6].amax(-1).mean())
    trust = float(experts.trust[0])
    assert float(seen[0][1][0]) == pytest.approx(trust * 0.9 + (1 - trust) * own, abs=1e-5)


def test_validation_labels_change_weights_by_the_likelihood(problem, four):
    val = NONE.clone()
    val[0, 4], val[0, 5] = 1, 1  # em is right about both, lp about one, sign about none
    val[1, 5] = 0  # sign and lp are right
    without, experts = experts_of(problem, four), experts_of(problem, four, val)
    change = {name: experts.log_weights[name] - without.log_weights[name] for name in four}
    for name, log_proba in four.items():
        _, likelihood = fit_factor(without.weigh(name, log_proba), val)
        torch.testing.assert_close(change[name], likelihood * torch.tensor([2 / 22, 1 / 21]))
    assert change["em"][0] > max(change["lp"][0], change["sign"][0])
    assert change["sign"][1] > change["em"][1]


@pytest.mark.parametrize("best", ["em", STUDENT])
def test_many_validation_labels_leave_the_decision_to_the_best_member(
    problem, four, monkeypatch, best
):
    """As with tens of thousands of labels: log-likelihoods differ by more than numbers can hold."""
    experts = experts_of(problem, four)
    students = {STUDENT: predicting(1, 0, 1, 0)}
    for name in (*four, STUDENT):
        likelihood = torch.full((2,), -1e3 if name == best else -9e4)
        experts.log_likelihood[name] = likelihood
    evidence = Evidence(
        experts.trust, experts.log_likelihood, Correction(torch.ones(2), torch.zeros(2, 2))
    )
    pool = experts_of(problem, four, evidence=evidence).pool(students)
    assert pool.weights[best].tolist() == [1, 1]
    expected = {**four, **students}[best]
    assert torch.equal(pool.log_proba[:, 2:6].argmax(-1), expected[:, 2:6].argmax(-1))
    assert bool(pool.log_proba.isfinite().all())


def test_the_progress_bar_knows_all_trainings():
    assert DCGST(experts=False, max_stages=4).count_trainings(validation=True) == 6
    assert DCGST(max_stages=4, refit=False).count_trainings(validation=True) == 8
    assert DCGST(max_stages=4).count_trainings() == 8
    assert DCGST(max_stages=4).count_trainings(validation=True) == 11


def test_evidence_of_an_earlier_fit_is_used_again(problem, four):
    val = NONE.clone()
    val[:, 4] = 1
    students = {STUDENT: four["em"]}
    first = experts_of(problem, four, val).pool(students)
    again = experts_of(problem, four, NONE, evidence=first.evidence).pool(students)
    for name, weight in first.weights.items():
        torch.testing.assert_close(again.weights[name], weight)
    torch.testing.assert_close(again.log_proba, first.log_proba)
    other = replace(first.evidence, trust=torch.zeros(2))
    assert experts_of(problem, four, NONE, evidence=other).trust.tolist() == [0, 0]


def test_expectations_are_the_left_out_accuracy_and_the_agreement_of_two_experts(problem, four):
    # sign 0 0 0 0, em 0 0 1 1, lp 0 0 1 0, gp 0 0 1 1: 2 3 2, 3 4, 3 of 4 nodes.
    first, second = experts_of(problem, four, NONE).expectations()
    assert first == pytest.approx({LEFT_OUT: 0.75, AGREEMENT: 17 / 24})
    assert second == pytest.approx({LEFT_OUT: 0.5, AGREEMENT: 17 / 24})


def test_em_and_the_gp_student_have_more_weight_if_labels_are_concentrated(monkeypatch):
    graph = synthetic(nodes=400, seed=3)
    fake = {name: torch.zeros(1, 400, 4) for name in ("sign", "em", "gp")}
    monkeypatch.setattr(module, "fit_experts", lambda *_: Fitted(fake, {}, [0.5]))
    priors = {}
    for sampler in ("uniform", "ppr-s"):
        split = sample(graph, sampler, per_class=8, runs=1)
        labels = np.where(split.train, graph.labels, -1)
        tensors = GraphTensors(graph.features, graph.adjacency)
        problem = Problem.build(tensors, labels, graph.num_classes)
        nothing = torch.full((1, 400), -1)
        experts = Experts(problem, torch.zeros(1, 400, 4), "sign", nothing)
        names = ("em", GP_STUDENT, "sign", STUDENT)
        priors[sampler] = [float(experts.prior(name)[0]) for name in names]
    assert priors["uniform"][0] == pytest.approx(1, abs=0.8)
    assert priors["uniform"][0] + 1 < priors["ppr-s"][0] <= 10
    for em, gp_student, sign, student in priors.values():
        assert em == gp_student
        assert sign == student == 1
