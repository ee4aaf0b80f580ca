"""Experts of DC-GST: weights and scales by hand, fits with validation labels, refit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import DCGST, EM, MLP, CorrectAndSmooth
from dcgst.methods.core.problem import GraphTensors, Problem
from dcgst.methods.dcgst import experts as module
from dcgst.methods.dcgst.experts import STUDENT, Experts, fit_experts, fit_factor
from dcgst.splits import Split, sample

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
def three(monkeypatch):
    """Replace the fitted experts: EM and another one; the teacher is the third."""
    fitted = {"em": predicting(0, 0, 1, 1), "lp": predicting(0, 0, 1, 0)}
    monkeypatch.setattr(module, "fit_experts", lambda problem, val_labels: fitted)
    return {"gcn": predicting(0, 0, 0, 0), **fitted}


NONE = torch.full((2, 10), -1)


def test_agreement_is_measured_on_the_pool_against_the_others(problem, three):
    experts = Experts(problem, three["gcn"], NONE)
    got = {name: experts.agreement(name, p).tolist() for name, p in three.items()}
    prior = dict(zip(experts.names, experts.prior[0].tolist(), strict=True))
    em = prior["em"]
    assert prior["gcn"] == prior["lp"] == 1
    assert got["gcn"][0] == pytest.approx((em * 2 / 4 + 3 / 4) / (em + 1))
    assert got["em"][0] == pytest.approx((2 / 4 + 3 / 4) / 2)
    student = experts.agreement(STUDENT, predicting(1, 1, 1, 1))
    assert float(student[0]) == pytest.approx((0 + em * 2 / 4 + 1 / 4) / (em + 2))


def test_the_mean_confidence_is_the_agreement(problem, three, monkeypatch):
    monkeypatch.setattr(module, "MAX_SCALE", 100.0)
    everywhere = {name: p[:, 2:6].repeat(1, 3, 1)[:, :10] for name, p in three.items()}
    monkeypatch.setattr(
        module, "fit_experts", lambda problem, val: {k: everywhere[k] for k in ("em", "lp")}
    )
    experts = Experts(problem, everywhere["gcn"], NONE)
    for name, log_proba in everywhere.items():
        scaled = (experts.members[name].scale[:, None, None] * log_proba).softmax(-1)
        expected = experts.agreement(name, log_proba)[0]
        assert float(scaled[0].amax(-1).mean()) == pytest.approx(float(expected), abs=1e-3)


def test_flat_predictions_are_not_scaled_up(problem, three, monkeypatch):
    flat = predicting(0, 0, 1, 1, confidence=0.501)
    monkeypatch.setattr(module, "fit_experts", lambda problem, val: {"em": flat})
    experts = Experts(problem, three["gcn"], NONE)
    assert experts.members["em"].scale.tolist() == [4.0, 4.0]


def test_weights_are_prior_times_squared_agreement(problem, three):
    pool = Experts(problem, three["gcn"], NONE).pool(predicting(0, 0, 1, 1))
    experts = Experts(problem, three["gcn"], NONE)
    agreement = {name: float(experts.agreement(name, p)[0]) for name, p in three.items()}
    agreement[STUDENT] = float(experts.agreement(STUDENT, predicting(0, 0, 1, 1))[0])
    prior = dict(zip(experts.names, experts.prior[0].tolist(), strict=True)) | {STUDENT: 1.0}
    mass = {name: prior[name] * agreement[name] ** 2 for name in agreement}
    got = {name: float(weight[0]) for name, weight in pool.weights.items()}
    assert got == pytest.approx({name: x / sum(mass.values()) for name, x in mass.items()})


def test_the_pool_is_the_weighted_mean_of_log_probabilities(problem, three):
    experts = Experts(problem, three["gcn"], NONE)
    student = predicting(1, 1, 1, 1)
    pool = experts.pool(student)
    expected = sum(
        weight[:, None, None]
        * (
            pool.members[name].scale[:, None, None] * ({**three, STUDENT: student})[name]
        ).log_softmax(-1)
        for name, weight in pool.weights.items()
    )
    assert torch.allclose(pool.log_proba, expected.log_softmax(-1), atol=1e-6)
    assert torch.allclose(pool.log_proba.exp().sum(-1), torch.ones(2, 10))


def test_validation_labels_change_weights_by_the_likelihood(problem, three):
    val = NONE.clone()
    val[0, 4], val[0, 5] = 1, 1  # em is right about both, lp about one, gcn about none
    val[1, 5] = 0  # gcn and lp are right
    without = Experts(problem, three["gcn"], NONE).members
    members = Experts(problem, three["gcn"], val).members
    for name, log_proba in three.items():
        scale = without[name].scale[:, None, None]
        factor, likelihood = fit_factor(scale * log_proba, val)
        expected = without[name].log_weight + likelihood / torch.tensor([2.0, 1.0]).sqrt()
        assert torch.allclose(members[name].log_weight, expected)
        assert torch.allclose(members[name].scale, factor * without[name].scale)
    change = {name: members[name].log_weight - without[name].log_weight for name in three}
    assert change["em"][0] > max(change["lp"][0], change["gcn"][0])
    assert change["gcn"][1] > change["em"][1]


def test_very_unlikely_labels_give_finite_predictions(problem, three, monkeypatch):
    """As with tens of thousands of validation labels."""
    monkeypatch.setattr(
        module, "fit_factor", lambda log_proba, labels: (torch.ones(2), torch.full((2,), -500.0))
    )
    experts = Experts(problem, three["gcn"], NONE)
    assert bool(experts.pool(three["em"]).log_proba.isfinite().all())


def test_the_progress_bar_knows_all_trainings():
    assert DCGST(ensemble="em", max_stages=4).trainings == 6
    assert DCGST(ensemble="experts", max_stages=4, refit=False).trainings == 9
    assert DCGST(ensemble="experts", max_stages=4).trainings == 18


def test_known_members_keep_their_evidence(problem, three):
    val = NONE.clone()
    val[:, 4] = 1
    first = Experts(problem, three["gcn"], val).pool(three["em"]).members
    again = Experts(problem, three["gcn"], NONE, first).pool(three["em"]).members
    for name, member in first.items():
        assert torch.equal(again[name].evidence, member.evidence)
        assert torch.allclose(again[name].log_weight, member.log_weight)
        assert torch.allclose(again[name].scale, member.scale)


def test_em_has_more_weight_if_labels_are_concentrated(three):
    graph = synthetic(nodes=400, seed=3)
    names = {}
    for sampler in ("uniform", "ppr-s"):
        split = sample(graph, sampler, per_class=8, runs=1)
        labels = np.where(split.train, graph.labels, -1)
        tensors = GraphTensors(graph.features, graph.adjacency)
        problem = Problem.build(tensors, labels, graph.num_classes)
        names[sampler] = problem
    fake = {"em": torch.zeros(1, 400, 4), "lp": torch.zeros(1, 400, 4)}
    priors = {}
    for sampler, problem in names.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "fit_experts", lambda problem, val: fake)
            experts = Experts(problem, torch.zeros(1, 400, 4), torch.full((1, 400), -1))
        priors[sampler] = dict(zip(experts.names, experts.prior[0].tolist(), strict=True))
    assert priors["uniform"] == {"gcn": 1, "em": pytest.approx(1, abs=0.8), "lp": 1}
    assert priors["ppr-s"]["em"] > priors["uniform"]["em"] + 1
    assert priors["ppr-s"]["em"] <= 10


def test_the_factor_maximizes_likelihood_times_prior():
    log_proba = predicting(0, 0, 0, 0)
    val = NONE.clone()
    val[0, 2:6] = torch.tensor([0, 0, 0, 1])
    factor, likelihood = fit_factor(log_proba, val)
    assert float(factor[1]) == pytest.approx(1)
    assert float(likelihood[1]) == 0

    def posterior(f):
        odds = 4**f
        right, wrong = odds / (1 + odds), 1 / (1 + odds)
        return 3 * math.log(right) + math.log(wrong) - math.log(f) ** 2 / 2

    grid = [10 ** (-0.9 + 0.05 * k) for k in range(31)]
    best = max(grid, key=posterior)
    assert float(factor[0]) == pytest.approx(best, rel=1e-4)
    assert float(likelihood[0]) == pytest.approx(
        posterior(best) + math.log(best) ** 2 / 2, rel=1e-4
    )


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
    tensors = GraphTensors(MLP().features(graph), graph.adjacency)
    labels = np.where(split.train, graph.labels, -1)
    val = torch.from_numpy(np.where(split.val, graph.labels, -1))
    problem = Problem.build(tensors, labels, graph.num_classes, pool=split.pool, seeds=(7,))
    found = fit_experts(problem, val)
    assert tuple(found) == ("appnp", "mlp", "cs", "sign", "lp", "em", "gp")
    for kind, own in (
        (MLP, problem),
        (CorrectAndSmooth, problem),
        (EM, replace(problem, val_labels=val)),
    ):
        (alone,) = kind().solve(replace(own, checkpoint=type(problem.checkpoint)()))
        got = found[kind.name][0].exp().numpy()
        assert got == pytest.approx(np.clip(alone.proba, 1e-6, None), abs=1e-5)


def test_validation_nodes_keep_predictions_that_did_not_see_them(graph):
    split = with_validation(graph)
    node = int(np.flatnonzero(split.val[0])[0])
    wrong = graph.labels.copy()
    wrong[node] = (wrong[node] + 1) % graph.num_classes
    model = DCGST(ensemble="experts", **QUICK).fit(replace(graph, labels=wrong), split)
    assert model.proba_[node].argmax() == graph.labels[node]
    assert model.labels_[node] == wrong[node]  # given labels are kept


def test_refit_learns_from_the_validation_labels(graph):
    split = with_validation(graph)
    refit = DCGST(ensemble="experts", **QUICK).fit(graph, split)
    assert (refit.labeled_stage_[split.val[0]] == 0).all()
    once = DCGST(ensemble="experts", refit=False, **QUICK).fit(graph, split)
    assert (once.labeled_stage_[split.val[0]] == -1).all()


def test_the_refit_can_be_resumed(graph, tmp_path):
    split = with_validation(graph)
    model = DCGST(ensemble="experts", **QUICK)
    first = model.fit(graph, split, checkpoint=tmp_path).proba_
    steps = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.step")}
    assert any("refit/mlp/training.step" in step for step in steps)
    second = DCGST(ensemble="experts", **QUICK).fit(graph, split, checkpoint=tmp_path).proba_
    assert np.array_equal(first, second)
