"""Every registered method keeps the contract, with every backbone."""

from __future__ import annotations

import dataclasses

import pytest

from dcgst.methods import METHODS, method
from dcgst.nn import BACKBONES
from dcgst.testing import CHECKS, check_method, check_runs_alone_or_together


def quick(name):
    fields = {field.name for field in dataclasses.fields(METHODS[name])}
    small = {k: v for k, v in {"epochs": 8, "hidden": 8}.items() if k in fields}
    return lambda **settings: method(name, **{**small, **settings})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_contract(name, check):
    check(quick(name))


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("name", METHODS)
def test_with_every_backbone(name, backbone):
    if "backbone" not in {field.name for field in dataclasses.fields(METHODS[name])}:
        pytest.skip("the method has no backbone")
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
    """A method that peeks at labels, changes given ones and is never the same twice is caught."""
    import numpy as np

    from dcgst.methods import GCN

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
            self.proba_ = self.proba_ * np.random.rand()  # noqa: NPY002
            return self

    for broken in (Forgetful, Peeking, Restless):
        with pytest.raises(AssertionError):
            check_method(lambda kind=broken, **settings: kind(epochs=3, hidden=8, **settings))
