"""Settings of methods: validated at fit, parsed from text, named in presets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.errors import InputError
from dcgst.methods import DRGST, GCN, ST, method
from dcgst.methods.base import parse_setting
from dcgst.splits import Split, sample


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"hidden": 1.5}, "hidden must be a whole number, got 1.5"),
        ({"dropout": 1.5}, "dropout must be at most 0.99, got 1.5"),
        ({"backbone": "gin"}, "unknown backbone 'gin'"),
        ({"backbone": GCN}, "is not a subclass of dcgst.nn.backbones.Backbone"),
        ({"keep_epoch": "best"}, "keep_epoch must be one of loss, accuracy, last, got 'best'"),
        ({"patience": "long"}, "patience must be a whole number or none, got 'long'"),
        ({"replicas": True}, "replicas must be a whole number, got True"),
        ({"lr": float("nan")}, "lr must be finite, got nan"),
        ({"lr": float("inf")}, "lr must be finite, got inf"),
        ({"lr": 0.0}, "lr must be at least 1e-08, got 0.0"),
        ({"lr": 1e30}, "training diverged.*smaller lr"),
        ({"device": "meta"}, "device must be auto, cpu"),
        ({"device": "tpu9"}, "device must be auto, cpu"),
    ],
)
def test_invalid_setting_is_refused_at_fit(settings, message, graph):
    with pytest.raises(InputError, match=message):
        GCN(**settings).fit(graph)


def test_the_smallest_and_the_largest_value_are_allowed():
    GCN(hidden=1, dropout=0.99, lr=1e-8).check()
    DRGST(threshold=1.0, stages=40, passes=2, drop_rate=0.01).check()
    for settings in ({"threshold": 1.001}, {"stages": 41}, {"passes": 1}, {"drop_rate": 0.009}):
        with pytest.raises(InputError, match=r"must be at (least|most)"):
            DRGST(**settings).check()


def test_numpy_integer_is_accepted(graph):
    assert GCN(hidden=np.int64(4), epochs=2).fit(graph).proba_.shape == (240, 3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_gpu_is_refused(graph):
    with pytest.raises(InputError, match="no CUDA GPU is available"):
        GCN(device="cuda").fit(graph)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (lambda g: Split.of([True, False, False]), "split is for 3 nodes, the graph has 240"),
        (lambda g: sample(g, per_class=2, runs=2), "the split has 2; use fit_runs"),
        (lambda g: g.masks["train"], r"must be a Split, got ndarray; use Split.of\(mask\)"),
        (
            lambda g: Split.of(g.masks["train"] & (g.labels == 0)),
            r"all training labels are of one class \(0\); label",
        ),
    ],
)
def test_invalid_split_is_refused(split, message, graph):
    with pytest.raises(InputError, match=message):
        GCN().fit(graph, split(graph))


def test_training_node_without_label_is_refused(graph):
    with pytest.raises(InputError, match="its label is unknown"):
        GCN().fit(graph.with_labels(np.full(240, -1)))


def test_other_types_than_graphs_are_refused():
    with pytest.raises(InputError, match="got str"):
        GCN().fit("cora")


def test_labels_in_place_of_a_mask_are_refused(graph):
    with pytest.raises(InputError, match="mask must be 240 booleans, got int64"):
        GCN(epochs=1, hidden=4).fit(graph).score(graph, graph.labels)


@pytest.mark.parametrize("call", ["predict", "predict_proba", "embed"])
def test_unfitted_method_is_refused(call):
    with pytest.raises(InputError, match="this gcn is not fitted yet; call fit first"):
        getattr(GCN(), call)()


def test_unfitted_method_has_no_score(graph):
    with pytest.raises(InputError, match="this gcn is not fitted yet; call fit first"):
        GCN().score(graph)


def test_settings_override_presets():
    assert method("gcn", "paper/pubmed").lr == 0.001
    assert method("gcn", "paper/pubmed", lr=0.5).lr == 0.5
    assert method("gcn", hidden=8).get_params()["hidden"] == 8
    assert GCN().set_params(hidden=3).hidden == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: method("gnc"), "unknown method 'gnc'"),
        (lambda: method("gcn", "best"), "unknown preset of gcn 'best'"),
        (lambda: method("gcn", widht=8), "unknown setting of gcn 'widht'"),
        (lambda: GCN().set_params(widht=8), "unknown setting of gcn 'widht'"),
        (lambda: parse_setting(GCN, "widht", "3"), "unknown setting 'widht'"),
    ],
)
def test_unknown_names_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hidden", "32", 32),
        ("dropout", "0.25", 0.25),
        ("patience", "none", None),
        ("patience", "5", 5),
        ("hidden", "none", "none"),  # refused at fit
        ("backbone", "gat", "gat"),
        ("hidden", "wide", "wide"),  # refused at fit, with the name of the setting
    ],
)
def test_text_is_parsed_to_the_type_of_the_setting(name, text, value):
    assert parse_setting(GCN, name, text) == value


def test_booleans_are_parsed():
    assert parse_setting(DRGST, "best_stage", "False") is False
    assert parse_setting(DRGST, "best_stage", "true") is True


def test_nearest_preset_is_the_nearest_number_of_labels_per_class():
    assert DRGST.nearest_preset("paper/cora", 8) == "paper/cora/10"
    assert DRGST.nearest_preset("paper/cora", 2) == "paper/cora/3"
    assert DRGST.nearest_preset("default", 8) == "default"
    assert ST.nearest_preset("paper/cora", 8) == "paper/cora"
