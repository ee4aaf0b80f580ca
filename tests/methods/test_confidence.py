"""The confidence of the mean of several replicas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst import EM, GCN, Ensemble
from dcgst.methods.result import results_without_stages
from dcgst.methods.running import restore_confidence
from tests.methods.helpers import ring_problem


def test_the_mean_of_calibrated_replicas_is_as_confident_as_they_are(rng):
    logits = 2 * rng.normal(size=(3, 200, 4))
    proba = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).astype(np.float32)
    problem = ring_problem([[0, 1] + [-1] * 198] * 3, seeds=(0, 1, 2))
    z = torch.zeros(3, 200, 1)
    results = results_without_stages(problem, torch.from_numpy(proba), z, ["end"] * 3)
    replicas = [result.proba for result in results]
    mean, pool = proba.mean(0), np.ones(200, dtype=bool)
    pool[:2] = False
    assert mean[pool].max(1).mean() < proba[:, pool].max(-1).mean() - 0.05
    found = restore_confidence(mean, replicas, pool)
    assert found[pool].max(1).mean() == pytest.approx(proba[:, pool].max(-1).mean(), abs=1e-3)
    assert (found.argmax(1) == mean.argmax(1)).all()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    nothing = np.zeros_like(pool)
    np.testing.assert_array_equal(restore_confidence(mean, replicas, nothing), mean)


def test_only_calibrated_methods_get_their_confidence_restored(small, one_run):
    pool = one_run.pool[0]
    members = (EM(), GCN(epochs=5))
    for model, restored in (
        (Ensemble(members=members, replicas=2), True),
        (GCN(epochs=5, replicas=2), False),
    ):
        result = model.fit(small, one_run).result_
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dcgst.methods.running.restore_confidence", lambda mean, *_: mean)
            mean = model.fit(small, one_run).result_
        confidence = [r.proba[pool].max(1).mean() for r in (result, mean)]
        assert (confidence[0] > confidence[1]) == restored


def test_equal_replicas_keep_their_confidence_on_a_large_graph(rng):
    """The mean confidence of large graphs is measured on some of the nodes only."""
    proba = rng.dirichlet(np.ones(3), 5000).astype(np.float32)
    problem = ring_problem([[0, 1] + [-1] * 4998] * 2, seeds=(0, 1))
    both, z = torch.from_numpy(np.stack([proba, proba])), torch.zeros(2, 5000, 1)
    replicas = [r.proba for r in results_without_stages(problem, both, z, ["end"] * 2)]
    pool = np.arange(5000) >= 2
    found = restore_confidence(proba, replicas, pool)
    np.testing.assert_allclose(found, proba, atol=2e-4)
