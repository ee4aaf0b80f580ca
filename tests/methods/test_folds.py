"""Replicas that leave out validation labels, so that predictions for these nodes are honest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from dcgst import DCGST, GCN, Split
from dcgst.methods import Method
from dcgst.methods.core.averaging import restore_confidence
from dcgst.methods.core.result import results_without_stages
from dcgst.methods.core.runner import validation_folds
from tests.methods.helpers import ring_problem


@pytest.fixture
def two_runs(small) -> Split:
    """Two runs with 12 training and 13 validation labels."""
    nodes = np.random.default_rng(0).permutation(small.num_nodes)
    train, val = np.zeros((2, 2, small.num_nodes), dtype=bool)
    train[:, nodes[:12]] = True
    val[0, nodes[12:25]] = val[1, nodes[20:33]] = True
    return Split(train, val, ~train & ~val, (3, 4))


def test_every_validation_label_is_left_out_once(small, two_runs):
    folds = validation_folds(DCGST(replicas=5), small, two_runs)
    assert ((folds >= 0) == two_runs.val).all()
    for run in range(2):
        counts = np.bincount(folds[run][two_runs.val[run]], minlength=5)
        assert sorted(counts) == [2, 2, 3, 3, 3]
    again = validation_folds(DCGST(replicas=5), small, two_runs[1])
    assert (again[0] == folds[1]).all(), "a run does not depend on others"
    assert (validation_folds(DCGST(replicas=5, seed=1), small, two_runs) != folds).any()


def test_folds_do_not_depend_on_the_order_of_nodes(small, two_runs):
    order = np.random.default_rng(1).permutation(small.num_nodes)
    folds = validation_folds(DCGST(replicas=3), small, two_runs)
    moved = validation_folds(DCGST(replicas=3), small.reorder(order), two_runs.reorder(order))
    assert (moved == folds[:, order]).all()


@pytest.mark.parametrize(
    "method",
    [DCGST(), GCN(replicas=3), DCGST(replicas=3, refit=False), DCGST(replicas=3, experts=False)],
)
def test_other_methods_and_single_replicas_get_all_labels(small, two_runs, method):
    assert (validation_folds(method, small, two_runs) == -1).all()


@dataclass(eq=False, kw_only=True)
class Recorder(Method):
    """Records the validation labels of each fit; predicts the number of the fit."""

    name: ClassVar[str] = "recorder"
    trains_on_validation = True

    def solve(self, problem):
        self.seen.append(problem.val_labels.numpy() >= 0)
        fit = len(self.seen) - 1
        proba = torch.full((1, *problem.pool.shape[1:], problem.num_classes), 0.1)
        proba[..., fit % 3] = 0.8
        return results_without_stages(problem, proba, proba, ["done"])


def test_a_replica_does_not_get_the_labels_that_it_leaves_out(small, two_runs):
    method = Recorder(replicas=3, chunk_size=1)
    method.seen = []
    split = two_runs[0]
    result = method.fit_runs(small, split)[0]
    left_out = np.stack([split.val[0] & ~seen[0] for seen in method.seen])
    assert (left_out.sum(axis=0) == split.val[0]).all()
    for replica in range(3):
        own = result.proba[left_out[replica]]
        assert (own.argmax(1) == replica).all()
        assert own.max(1) == pytest.approx(0.8)
    assert result.proba[split.pool[0]] == pytest.approx(1 / 3, abs=1e-6)
    assert (result.given[split.val[0]] == small.labels[split.val[0]]).all()
    assert (result.agreement[split.given[0]] == 1).all()


def test_the_mean_of_calibrated_replicas_is_as_confident_as_they_are(rng):
    logits = 2 * rng.normal(size=(3, 200, 4))
    proba = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).astype(np.float32)
    problem = ring_problem([[0, 1] + [-1] * 198] * 3, seeds=(0, 1, 2))
    z = torch.zeros(3, 200, 1)
    results = results_without_stages(problem, torch.from_numpy(proba), z, ["end"] * 3)
    replicas = [result.proba for result in results]
    mean, pool, unchanged = proba.mean(0), np.ones(200, dtype=bool), np.zeros(200, dtype=bool)
    pool[:2], unchanged[5:9] = False, True
    assert mean[pool].max(1).mean() < proba[:, pool].max(-1).mean() - 0.05
    found = restore_confidence(mean, replicas, pool, ~pool)
    assert found[pool].max(1).mean() == pytest.approx(proba[:, pool].max(-1).mean(), abs=1e-3)
    assert (found.argmax(1) == mean.argmax(1)).all()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    kept = restore_confidence(mean, replicas, pool, unchanged)
    np.testing.assert_array_equal(kept[5:9], mean[5:9])
    np.testing.assert_array_equal(
        restore_confidence(mean, replicas, ~pool & False, unchanged), mean
    )


def test_only_calibrated_methods_get_their_confidence_restored(small, two_runs):
    settings = {"epochs": 5, "replicas": 2, "stage_epochs": 1, "max_stages": 1, "student_epochs": 1}
    for model, restored in ((DCGST(**settings), True), (GCN(epochs=5, replicas=2), False)):
        pool = two_runs.pool[0]
        result = model.fit(small, two_runs[0]).result_
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dcgst.methods.core.runner.restore_confidence", lambda mean, *_: mean)
            mean = model.fit(small, two_runs[0]).result_
        confidence = [r.proba[pool].max(1).mean() for r in (result, mean)]
        assert (confidence[0] > confidence[1]) == restored


def test_equal_replicas_keep_their_confidence_on_a_large_graph(rng):
    """The mean confidence of large graphs is measured on some of the nodes only."""
    proba = rng.dirichlet(np.ones(3), 5000).astype(np.float32)
    problem = ring_problem([[0, 1] + [-1] * 4998] * 2, seeds=(0, 1))
    both, z = torch.from_numpy(np.stack([proba, proba])), torch.zeros(2, 5000, 1)
    replicas = [r.proba for r in results_without_stages(problem, both, z, ["end"] * 2)]
    pool = np.arange(5000) >= 2
    found = restore_confidence(proba, replicas, pool, ~pool)
    np.testing.assert_allclose(found, proba, atol=2e-4)
