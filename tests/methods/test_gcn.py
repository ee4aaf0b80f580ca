"""Plain training, and what all methods inherit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.methods import GCN, method
from dcgst.methods.neural import scale_rows
from dcgst.methods.params import parse
from dcgst.splits import Split, sample


def test_it_learns():
    graph = synthetic(300, 3, features=12, shift=0.0, labels_per_class=10)
    assert GCN(hidden=16).fit(graph).score(graph) > 0.85


def test_bias_costs_accuracy():
    def accuracy(shift):
        graph = synthetic(600, 4, shift=shift, labels_per_class=5, seed=5)
        return GCN(hidden=16).fit(graph).score(graph)

    assert accuracy(1.0) < accuracy(0.0) - 0.05


def test_the_best_epoch_on_validation_is_kept(shifted):
    split = sample(shifted, per_class=4, runs=1, val_rate=0.2)
    val = split.val[0]

    def loss(settings):
        proba = GCN(hidden=16, **settings).fit(shifted, split).proba_
        return -np.log(proba[val, shifted.labels[val]]).mean()

    kept = GCN(epochs=60, hidden=16, lr=0.05).fit(shifted, split).history_[0]["epochs"]
    losses = [loss({"epochs": e, "lr": 0.05}) for e in (kept, 60)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert loss({"epochs": max(1, kept - 1), "lr": 0.05}) >= losses[0]


def test_a_model_can_be_used_on_another_graph(shifted):
    fitted = GCN(epochs=20, hidden=8, replicas=2).fit(shifted)
    same = dataclasses.replace(shifted)
    np.testing.assert_allclose(fitted.predict_proba(same), fitted.proba_, atol=1e-5)
    grown = synthetic(300, 3, features=12)
    assert fitted.predict(grown).shape == (300,)
    assert 0 <= fitted.score(grown) <= 1
    with pytest.raises(InputError, match="fitted on 12 features, this graph has 5"):
        fitted.predict(synthetic(100, 3, features=5))


def test_the_fitted_graph_is_recognised_by_what_it_holds(shifted):
    data = shifted.to_pyg()
    wrong = shifted.labels.copy()
    given = np.flatnonzero(shifted.masks["train"])
    wrong[given] = (wrong[given] + 1) % 3
    data.y = torch.tensor(wrong)
    fitted = GCN(epochs=5, hidden=8).fit(data)
    np.testing.assert_array_equal(fitted.predict(data)[given], wrong[given])
    blank = dataclasses.replace(shifted, features=np.zeros((240, 12), np.float32))
    assert not np.allclose(fitted.predict_proba(blank), fitted.proba_)


def test_fit_runs_leaves_a_fitted_method_alone(shifted):
    other = synthetic(100, 3, features=12)
    fitted = GCN(epochs=5, hidden=8).fit(shifted)
    before = fitted.predict_proba(other)
    fitted.fit_runs(shifted, sample(shifted, per_class=2, runs=2))
    np.testing.assert_array_equal(fitted.predict_proba(other), before)


def test_the_most_accurate_epoch_or_the_last_can_be_kept(shifted):
    split = sample(shifted, per_class=4, runs=1, val_rate=0.2)
    val = split.val[0]
    settings = {"hidden": 16, "lr": 0.05, "epochs": 60}
    fitted = {k: GCN(keep=k, **settings).fit(shifted, split) for k in ("loss", "accuracy", "last")}
    right = {k: (f.proba_.argmax(1) == shifted.labels)[val].mean() for k, f in fitted.items()}
    assert right["accuracy"] > right["loss"], "they should differ here, or nothing is shown"
    assert fitted["last"].history_[0]["epochs"] == 60
    # Every shorter training with the same seed is a stage of the longer one: none is more accurate.
    for epochs in (5, 20, 40):
        shorter = GCN(keep="last", **{**settings, "epochs": epochs}).fit(shifted, split)
        assert (shorter.proba_.argmax(1) == shifted.labels)[val].mean() <= right["accuracy"]


def test_stop_reasons(shifted):
    split = sample(shifted, per_class=3, runs=1, val_rate=0.1)
    assert GCN(epochs=5).fit(shifted, split).stop_reason_ == "all 5 epochs done"
    early = GCN(epochs=500, patience=3, lr=0.1).fit(shifted, split)
    assert early.stop_reason_ == "validation loss did not fall for 3 epochs"


def test_nothing_left_to_predict(shifted):
    everything = GCN(epochs=3).fit(shifted, Split.of(np.ones(240, bool)))
    assert everything.history_[0]["cmd"] == 0
    assert GCN(hidden=np.int64(4), epochs=2).fit(shifted).proba_.shape == (240, 3)


def test_cmd_in_the_history_is_that_of_the_hidden_layer(shifted):
    from dcgst.engine.sparse import SparseMatrix
    from dcgst.shift import cmd

    fitted = GCN(epochs=20, hidden=8, feature_norm="none").fit(shifted)
    (model,) = fitted.models_
    x = torch.tensor(shifted.features)
    with torch.no_grad():
        operator = model.operator(SparseMatrix.from_scipy(shifted.adjacency))
        hidden = model(x, operator).hidden[0]
    train = torch.tensor(shifted.masks["train"])
    support = hidden.max() - hidden.min()
    expected = cmd(hidden[train], hidden[~train], support=support)
    assert fitted.history_[0]["cmd"] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"hidden": 1.5}, "hidden must be int, got 1.5"),
        ({"dropout": 1.5}, "dropout must be at most 0.99"),
        ({"backbone": "gin"}, "backbone must be one of gcn, gat, sage, appnp, mlp, got 'gin'"),
        ({"patience": "long"}, "patience must be int or None"),
        ({"replicas": True}, "replicas must be int, got True"),
        ({"lr": float("nan")}, "lr must be finite"),
        ({"lr": float("inf")}, "lr must be finite"),
        ({"lr": 0.0}, "lr must be at least 1e-08"),
        ({"lr": 1e30}, "training diverged.*smaller lr"),
        ({"device": "meta"}, "device must be auto, cpu"),
        ({"device": "tpu9"}, "device must be auto, cpu"),
    ],
)
def test_bad_settings_are_refused_at_fit(settings, message, shifted):
    with pytest.raises(InputError, match=message):
        GCN(**settings).fit(shifted)


def test_bad_data_are_refused(shifted):
    with pytest.raises(InputError, match="the split is for 3 nodes, the graph has 240"):
        GCN().fit(shifted, Split.of([True, False, False]))
    with pytest.raises(InputError, match="the split holds 2; use fit_runs"):
        GCN().fit(shifted, sample(shifted, per_class=2, runs=2))
    with pytest.raises(InputError, match=r"must be a Split, got ndarray; Split.of\(mask\)"):
        GCN().fit(shifted, shifted.masks["train"])
    with pytest.raises(InputError, match=r"all of one class \(0\)"):
        GCN().fit(shifted, Split.of(shifted.masks["train"] & (shifted.labels == 0)))
    with pytest.raises(InputError, match="a Graph or PyG Data is needed, got str"):
        GCN().fit("cora")
    with pytest.raises(InputError, match="mask must be 240 booleans, got int64"):
        GCN(epochs=1).fit(shifted).score(shifted, shifted.labels)
    unknown = shifted.with_labels(np.full(240, -1))
    with pytest.raises(InputError, match="its label is unknown"):
        GCN().fit(unknown)
    with pytest.raises(InputError, match="not fitted yet"):
        GCN().predict()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu_no_cuda(shifted):
    with pytest.raises(InputError, match="no CUDA GPU"):
        GCN(device="cuda").fit(shifted)


def test_names_presets_and_settings():
    assert method("gcn", hidden=8).get_params()["hidden"] == 8
    with pytest.raises(InputError, match="unknown method 'gnc'"):
        method("gnc")
    with pytest.raises(InputError, match="unknown preset of gcn 'best'"):
        method("gcn", "best")
    with pytest.raises(InputError, match="unknown setting of gcn 'widht'"):
        method("gcn", widht=8)
    with pytest.raises(InputError, match="unknown setting"):
        GCN().set_params(widht=8)
    assert GCN().set_params(hidden=3).hidden == 3


def test_settings_as_text():
    assert parse(GCN, "hidden", "32") == 32
    assert parse(GCN, "dropout", "0.25") == 0.25
    assert parse(GCN, "patience", "none") is None
    assert parse(GCN, "backbone", "gat") == "gat"
    assert parse(GCN, "hidden", "wide") == "wide"  # refused at fit, with its name
    with pytest.raises(InputError, match="unknown setting 'widht'"):
        parse(GCN, "widht", "3")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_row_scaling(kind):
    features = kind(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))

    def scaled(norm):
        matrix = scale_rows(features, norm)
        return matrix.toarray() if sp.issparse(matrix) else matrix

    np.testing.assert_allclose(scaled("row"), [[3 / 7, 4 / 7], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(scaled("l2"), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert scale_rows(features, "none") is features


def test_large_graphs_are_reordered_and_nobody_notices(shifted, monkeypatch):
    split = sample(shifted, per_class=4, runs=2)

    def results():
        return GCN(epochs=10, hidden=8, dropout=0.0).fit_runs(shifted, split)

    as_it_is = results()
    monkeypatch.setattr("dcgst.engine.locality.LARGE", 0)
    for left, right in zip(as_it_is, results(), strict=True):
        np.testing.assert_allclose(left.proba, right.proba, atol=1e-5)
        np.testing.assert_array_equal(left.labeled_stage, right.labeled_stage)


def test_threads_are_restored(shifted):
    before = torch.get_num_threads()
    GCN(epochs=1).fit(shifted)
    assert torch.get_num_threads() == before
