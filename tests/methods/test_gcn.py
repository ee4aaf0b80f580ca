"""Supervised training: what is learned, which epoch is kept, and when training stops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import GCN
from dcgst.splits import Split, sample
from dcgst.train.training import TrainingLog
from tests.methods.helpers import cmd_by_hand, draw, ring_problem


@pytest.fixture(scope="module")
def validated(graph) -> Split:
    return sample(graph, per_class=4, runs=1, val_rate=0.2)


def test_accuracy_is_high_without_shift():
    graph = synthetic(300, 3, features=12, shift=0.0, labels_per_class=10)
    assert GCN(hidden=16, epochs=100).fit(graph).score(graph) > 0.85


def test_biased_labels_reduce_accuracy():
    def accuracy(shift):
        graph = synthetic(600, 4, shift=shift, labels_per_class=5, seed=5)
        return GCN(hidden=16, epochs=100).fit(graph).score(graph)

    assert accuracy(1.0) < accuracy(0.0) - 0.05


class TestKeptEpoch:
    """Trainings of different lengths with one seed are prefixes of each other."""

    epochs = 60

    def fit(self, graph, split, **more) -> GCN:
        return GCN(**{"hidden": 16, "lr": 0.05, "epochs": self.epochs, **more}).fit(graph, split)

    def test_lowest_validation_loss(self, graph, validated):
        val = validated.val[0]

        def loss(fitted):
            return -np.log(fitted.proba_[val, graph.labels[val]]).mean()

        kept = self.fit(graph, validated)
        best = kept.history_[0]["epochs"]
        assert 1 < best < self.epochs
        assert loss(self.fit(graph, validated, epochs=best, keep_epoch="last")) == pytest.approx(
            loss(kept), rel=1e-5
        )
        for other in (best - 1, best + 1, self.epochs):
            assert loss(self.fit(graph, validated, epochs=other, keep_epoch="last")) > loss(kept)

    def test_highest_validation_accuracy(self, graph, validated):
        val = validated.val[0]

        def right(fitted):
            return (fitted.proba_.argmax(1) == graph.labels)[val].mean()

        kept = right(self.fit(graph, validated, keep_epoch="accuracy"))
        assert kept > right(self.fit(graph, validated, keep_epoch="loss")), (
            "choose data where they differ"
        )
        for epochs in (5, 20, 40, 60):
            assert right(self.fit(graph, validated, epochs=epochs, keep_epoch="last")) <= kept

    def test_last(self, graph, validated):
        assert self.fit(graph, validated, keep_epoch="last").history_[0]["epochs"] == self.epochs


def test_stop_reason_states_why_training_ended(graph, validated):
    assert GCN(epochs=5).fit(graph, validated).stop_reason_ == "maximum number of epochs (5)"
    early = GCN(epochs=500, patience=3, lr=0.1).fit(graph, validated)
    assert early.stop_reason_ == "validation loss did not decrease for 3 epochs"
    by_accuracy = GCN(epochs=500, patience=3, lr=0.1, keep_epoch="accuracy").fit(graph, validated)
    assert by_accuracy.stop_reason_ == "validation accuracy did not increase for 3 epochs"


def test_cmd_in_history_is_the_shift_of_the_hidden_layer(graph):
    fitted = GCN(epochs=20, hidden=8).fit(graph)
    hidden = fitted.embed().astype(np.float64)
    train = graph.masks["train"]
    expected = cmd_by_hand(hidden[train], hidden[~train], hidden.max() - hidden.min())
    assert fitted.history_[0]["cmd"] == pytest.approx(expected, rel=1e-3)


def test_cmd_is_zero_if_the_pool_is_empty(graph):
    everything = GCN(epochs=3, hidden=8).fit(graph, Split.of(np.ones(240, bool)))
    assert everything.history_[0]["cmd"] == 0


def test_number_of_threads_is_restored(graph):
    before = torch.get_num_threads()
    GCN(epochs=1, hidden=4).fit(graph)
    assert torch.get_num_threads() == before


def test_stop_reason_depends_on_the_epochs_since_the_best_one():
    log = TrainingLog(torch.zeros(100, 2), torch.zeros(100, 2), torch.tensor([94, 95]))
    reasons = GCN(epochs=100, patience=5).stop_reasons(log)
    waited = "validation loss did not decrease for 5 epochs"
    assert reasons == [waited, "maximum number of epochs (100)"]


def test_validation_value_is_the_number_of_errors_plus_a_fraction_that_grows_with_the_loss():
    """Two runs: all validation nodes are predicted wrongly, or all but the first."""
    n = 30
    problem = ring_problem([[0, 1] + [-1] * 28] * 2, features=draw(0, n, 6).numpy(), seeds=(3, 3))
    network = GCN(keep_epoch="accuracy", hidden=4).create_network(problem)
    logits = network.predict().logits
    predicted = logits.argmax(-1)
    assert {0, 1} == set(predicted[0, 2:].tolist()), "choose features with both classes"
    val_labels = 1 - predicted
    val_labels[:, :2] = -1
    val_labels[1, 2] = predicted[1, 2]
    validation = network.validation(dataclasses.replace(problem, val_labels=val_labels))
    log_proba = logits.log_softmax(-1)[:, 2:].gather(-1, val_labels[:, 2:, None])
    loss = -log_proba.mean(dim=(1, 2))
    expected = torch.tensor([28.0, 27.0]) + loss / (1 + loss)
    torch.testing.assert_close(validation.measure(), expected)
