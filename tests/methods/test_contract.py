"""Every registered method keeps the contract, with every backbone; every check can fail."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
import torch

from dcgst import testing
from dcgst.features import smoothing as views
from dcgst.graph import Graph
from dcgst.methods import EM, GCN, METHODS, LabelPropagation, Majority, method
from dcgst.methods.base import choices_of
from dcgst.methods.result import results_without_stages
from dcgst.testing import CHECKS, check_method

FEW = {
    "epochs": 4,
    "hidden": 8,
    "stage_epochs": 2,
    "student_epochs": 2,
    "max_stages": 2,
    "stages": 2,
    "passes": 3,
    "environments": 2,
    "clusters": 9,
    "threshold": 0.2,  # after so few epochs, no node is confident
}
VARIANTS = [
    ("dcgst", {"edge_predictor": False, "backbone": "sign"}),
    ("srgnn", {"weighting": "kmm"}),
    ("drgst", {"gain": "dropedge", "best_stage": False}),
    ("gcn", {"keep_epoch": "accuracy"}),
    ("gcn", {"keep_epoch": "last"}),
]
WITH_BACKBONES = [
    (name, backbone)
    for name, kind in METHODS.items()
    for field in dataclasses.fields(kind)
    if field.name == "backbone"
    for backbone in choices_of(field)
]


def quick(name):
    """A function that creates the method with few epochs and stages."""
    fields = {field.name for field in dataclasses.fields(METHODS[name])}
    few = {name: value for name, value in FEW.items() if name in fields}
    return lambda **settings: method(name, **{**few, **settings})


@pytest.fixture(autouse=True, scope="module")
def shared_data():
    """Create graph and splits of the checks once; for speed, EM uses one of three filters."""
    graph = testing.small_graph()
    splits = {runs: testing.small_split(graph, runs) for runs in (1, 2, 3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "small_graph", lambda: graph)
        patch.setattr(testing, "small_split", lambda graph, runs=1: splits[runs])
        patch.setattr(views, "FILTERS", views.FILTERS[-1:])
        yield


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_method_keeps_contract(name, check):
    check(quick(name))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
def test_method_keeps_contract_with_other_settings(name, settings, check):
    make = quick(name)
    check(lambda **more: make(**{**settings, **more}))


@pytest.mark.parametrize("name", ["dcgst", "st", "m3s", "drgst", "srgnn_st"])
def test_contract_is_checked_with_pseudo_labels(name):
    """Otherwise the checks of the candidates would hold without having checked anything."""
    graph = testing.small_graph()
    settings = {"best_stage": False} if name == "drgst" else {}
    fitted = quick(name)(**settings).fit(graph, testing.small_split(graph))
    assert fitted.candidates_["selected"].any()


@pytest.mark.parametrize(("name", "backbone"), WITH_BACKBONES)
def test_runs_are_independent_with_every_backbone(name, backbone):
    edges = backbone not in ("mlp", "sign")
    settings = {"edge_predictor": edges} if name == "dcgst" else {}
    make = quick(name)
    graph = testing.small_graph()
    split = testing.small_split(graph, runs=2)
    together = make(backbone=backbone, chunk_size=2, **settings).fit_runs(graph, split)[1]
    (alone,) = make(backbone=backbone, **settings).fit_runs(graph, split[1])
    np.testing.assert_allclose(together.proba, alone.proba, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (EM, [3]),
        (Majority, [3]),
        (LabelPropagation, [3]),
        (GCN, [1, 1, 1]),
        (lambda: GCN(chunk_size=2), [2, 1]),
    ],
)
def test_how_many_fits_are_computed_together_on_a_cpu(make, sizes, monkeypatch):
    found = []

    def solve(self, problem):
        found.append(problem.num_fits)
        proba = torch.full((*problem.pool.shape, problem.num_classes), 1 / 3)
        reasons = [""] * problem.num_fits
        return results_without_stages(problem, proba, torch.zeros_like(proba), reasons)

    method = make()
    monkeypatch.setattr(type(method), "solve", solve)
    graph = testing.small_graph()
    method.set_params(device="cpu").fit_runs(graph, testing.small_split(graph, runs=3))
    assert found == sizes


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_is_valid_and_every_setting_is_documented(name):
    for preset in METHODS[name].presets:
        METHODS[name].from_preset(preset).check()
    for field in dataclasses.fields(METHODS[name]):
        assert field.metadata["doc"], field.name


# --- every check can fail ----------------------------------------------------------------------


def broken(change):
    """A GCN whose results are changed by ``change(result, problem)``."""

    class Broken(GCN):
        def solve(self, problem):
            return [change(result, problem) for result in super().solve(problem)]

    return Broken


def all_class_zero(result, problem):
    """Predict the first class everywhere, also for nodes with a given label."""
    proba = np.eye(problem.num_classes, dtype=np.float32)[np.zeros_like(result.given)]
    return dataclasses.replace(result, proba=proba, given=np.full_like(result.given, -1))


def noisy(result, problem):
    noise = np.random.default_rng().random(result.proba.shape, dtype=np.float32)
    return dataclasses.replace(result, proba=(result.proba + noise) / (1 + noise.sum(1))[:, None])


def invalid_if(condition):
    """Change the probabilities to NaN where the condition on the problem holds."""

    def change(result, problem):
        return (
            dataclasses.replace(result, proba=result.proba * np.nan)
            if condition(problem)
            else result
        )

    return broken(change)


def uniform_if_together(result, problem):
    """Ignore the network if several runs are computed together."""
    even = np.full_like(result.proba, 1 / problem.num_classes)
    return dataclasses.replace(result, proba=even) if problem.num_fits > 1 else result


class ChangesSettings(GCN):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.seed += 1


class UsesGlobalGenerator(GCN):
    def solve(self, problem):
        torch.rand(1)
        return super().solve(problem)


class IgnoresReplicas(GCN):
    def solve(self, problem):
        return super().solve(dataclasses.replace(problem, seeds=(0,) * problem.num_fits))


class ReadsPoolLabels(GCN):
    def fit(self, graph, split=None, **more):
        super().fit(graph, split, **more)
        proba = np.eye(graph.num_classes, dtype=np.float32)[graph.labels]
        self.result_ = dataclasses.replace(self.result_, proba=proba)
        return self


class LosesEdgesOfData(GCN):
    def fit(self, graph, split=None, **more):
        if not isinstance(graph, Graph):
            graph.edge_index = graph.edge_index[:, :0]
        return super().fit(graph, split, **more)


BROKEN = [
    (testing.check_constructor_only_stores, ChangesSettings),
    (testing.check_results, broken(lambda r, _: dataclasses.replace(r, proba=2 * r.proba))),
    (testing.check_given_labels_are_kept, broken(all_class_zero)),
    (
        testing.check_candidates,
        broken(lambda r, _: dataclasses.replace(r, labeled_stage=np.ones_like(r.labeled_stage))),
    ),
    (testing.check_pool_labels_are_unused, ReadsPoolLabels),
    (testing.check_seed, broken(noisy)),
    (testing.check_seed, UsesGlobalGenerator),
    (testing.check_runs_are_independent, broken(uniform_if_together)),
    (testing.check_runs_without_validation_are_independent, broken(uniform_if_together)),
    (testing.check_replicas_are_averaged, IgnoresReplicas),
    (testing.check_without_validation, invalid_if(lambda p: not p.has_validation.all())),
    (testing.check_class_without_labels, invalid_if(lambda p: (p.class_shares() == 0).any())),
    (testing.check_empty_pool, broken(all_class_zero)),
    (testing.check_pyg_data, LosesEdgesOfData),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda value: value.__name__)
def test_check_detects_broken_method(check, kind):
    with pytest.raises(AssertionError):
        check(lambda **settings: kind(**{"epochs": 3, "hidden": 8, **settings}))


def test_every_check_is_shown_to_fail():
    assert {check for check, _ in BROKEN} == set(CHECKS)


def test_check_detects_ensemble_of_one_member(monkeypatch):
    monkeypatch.setattr("dcgst.methods.running.average", lambda replicas: replicas[0])
    with pytest.raises(AssertionError):
        testing.check_replicas_are_averaged(quick("gcn"))


def test_check_method_runs_all_checks():
    check_method(lambda **settings: GCN(**{"epochs": 2, "hidden": 4, **settings}))
    named = {f for name, f in inspect.getmembers(testing) if name.startswith("check_")}
    assert named - {check_method} == set(CHECKS)
