"""Every registered method keeps the contract, with every backbone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dcgst import testing
from dcgst.methods import GCN, METHODS, method
from dcgst.methods.outcome import majority_stage
from dcgst.testing import CHECKS, check_method, check_runs_alone_or_together


def quick(name):
    fields = {field.name for field in dataclasses.fields(METHODS[name])}
    few = {
        "epochs": 8,
        "hidden": 8,
        "stage_epochs": 3,
        "student_epochs": 3,
        "max_stages": 3,
        "passes": 4,
        "environments": 3,
        "clusters": 9,
        "threshold": 0.2,  # so little training makes no one confident
    }
    small = {k: v for k, v in few.items() if k in fields}
    return lambda **settings: method(name, **{**small, **settings})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_contract(name, check):
    check(quick(name))


@pytest.mark.parametrize("name", ["dcgst", "st", "m3s", "drgst", "srgnn_st"])
def test_the_contract_is_tried_on_pseudo_labels(name):
    graph = testing.small_graph()
    fitted = quick(name)().fit(graph, testing.small_split(graph))
    assert fitted.audit_["chosen"].any() or fitted.stop_reason_.startswith("stage 0")


VARIANTS = [
    ("srgnn", {"weighting": "kmm"}),
    ("srgnn_st", {"weighting": "kmm"}),
    ("drgst", {"gain": "dropedge"}),
    ("drgst", {"best_stage": False, "stages": 2}),
    ("gcn", {"keep": "accuracy"}),
    ("gcn", {"keep": "last"}),
    ("st", {"stages": 3}),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
def test_contract_with_other_settings(name, settings, check):
    make = quick(name)
    check(lambda **more: make(**{**settings, **more}))


WITH_BACKBONES = [
    (name, backbone)
    for name, kind in METHODS.items()
    for field in dataclasses.fields(kind)
    if field.name == "backbone"
    for backbone in field.metadata["choices"]
]


@pytest.mark.parametrize(("name", "backbone"), WITH_BACKBONES)
def test_with_every_backbone(name, backbone):
    make = quick(name)
    check_runs_alone_or_together(lambda **settings: make(backbone=backbone, **settings))


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_and_setting_is_in_order(name):
    for preset in METHODS[name].presets:
        settings = METHODS[name].from_preset(preset).get_params()
        assert settings
    for field in dataclasses.fields(METHODS[name]):
        assert field.metadata["doc"], field.name


def test_the_checks_can_fail():
    """A method that peeks at labels, changes given ones or is never the same twice is caught."""

    class Forgetful(GCN):
        def fit(self, graph, split=None, **kwargs):
            super().fit(graph, split, **kwargs)
            self.labels_ = np.zeros_like(self.labels_)
            return self

    class Peeking(GCN):
        def fit(self, graph, split=None, **kwargs):
            super().fit(graph, split, **kwargs)
            self.proba_ = np.eye(graph.num_classes)[graph.labels]
            return self

    class Restless(GCN):
        def fit(self, graph, split=None, **kwargs):
            super().fit(graph, split, **kwargs)
            mixed = self.proba_ + np.random.default_rng().random(self.proba_.shape)
            self.proba_ = (mixed / mixed.sum(axis=1, keepdims=True)).astype(np.float32)
            return self

    caught = {
        Forgetful: testing.check_given_labels_stay,
        Peeking: testing.check_pool_labels_unused,
        Restless: testing.check_seed_decides,
    }
    for broken, check in caught.items():
        with pytest.raises((AssertionError, IndexError)):
            check(lambda kind=broken, **settings: kind(epochs=3, hidden=8, **settings))


def test_all_checks_run_in_a_row():
    check_method(lambda **settings: GCN(**{"epochs": 2, "hidden": 8, **settings}))


def test_an_ensemble_that_is_only_its_first_member_is_caught(monkeypatch):
    monkeypatch.setattr("dcgst.methods.base.average", lambda replicas: replicas[0])
    with pytest.raises(AssertionError):
        testing.check_replicas_are_averaged(quick("gcn"))


def test_stages_of_an_ensemble():
    # Replicas by row: most must have labeled a node, and then at a stage at which one did.
    stages = np.array([[0, -1, -1, 3, 1], [0, 1, -1, 5, -1], [0, -1, -1, 9, 4]])
    assert majority_stage(stages).tolist() == [0, -1, -1, 5, 1]
    assert majority_stage(np.array([[-1], [1]])).tolist() == [-1]
