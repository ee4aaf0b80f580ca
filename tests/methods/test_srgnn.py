"""SR-GNN: the sample of the pool, the loss by hand, and kernel mean matching."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.methods import SRGNN, SRGNNST
from dcgst.methods.problem import Problem
from dcgst.splits import Split, sample
from tests.methods.helpers import cmd_by_hand, draw, first_losses, problem_of, ring_problem

QUICK = {"epochs": 20, "hidden": 16}


@pytest.fixture(scope="module")
def two_runs(graph) -> Problem:
    return problem_of(graph, sample(graph, "ppr-s", per_class=4, runs=2, val_rate=0.05), (5, 6))


class TestSample:
    def test_is_drawn_from_the_pool(self, two_runs):
        drawn = SRGNN().sample_pool(torch.tensor([12, 20]), two_runs, 0)
        assert drawn.sum(1).tolist() == [12, 20]
        assert not (drawn & ~two_runs.pool).any()

    def test_differs_between_runs_and_stages(self, two_runs):
        count = torch.tensor([12, 12])
        first, second = (SRGNN().sample_pool(count, two_runs, stage) for stage in (0, 1))
        assert not torch.equal(first, second)
        assert not torch.equal(first[0], first[1])

    def test_is_the_whole_pool_if_that_is_smaller(self, two_runs):
        drawn = SRGNN().sample_pool(torch.tensor([999, 999]), two_runs, 0)
        assert torch.equal(drawn, two_runs.pool)

    def test_is_as_large_as_the_set_of_labels(self, monkeypatch):
        """In SR-GNN with self-training, pseudo-labels count."""
        counts = []
        sample_pool = SRGNN.sample_pool

        def recorded(self, count, problem, stage):
            counts.append(count.tolist())
            return sample_pool(self, count, problem, stage)

        monkeypatch.setattr(SRGNN, "sample_pool", recorded)
        problem = ring_problem([0, 1] + [-1] * 18)
        SRGNNST(stages=1, per_class=3, epochs=1, hidden=2).solve(problem)
        (first,), (second,) = counts
        assert first == 2
        assert 2 < second <= 8


class TestLoss:
    """The first epoch's loss of a network without dropout, computed from its outputs."""

    def problem(self, events) -> Problem:
        features = draw(0, 12, 4).numpy()
        labels = [0, 1, 0, 1] + [-1] * 8
        return ring_problem(labels, features=features, callbacks=[events.append])

    @pytest.mark.parametrize("cmd_weight", [0.0, 1.0, 3.0])
    def test_is_cross_entropy_plus_weighted_cmd(self, cmd_weight):
        events = []
        problem = self.problem(events)
        method = SRGNN(cmd_weight=cmd_weight, epochs=1, hidden=3, dropout=0.0)
        method.train_robust(problem.train_labels, problem, 0)
        output = method.create_network(problem).predict()
        log_proba = output.logits[0].log_softmax(-1).double().numpy()
        cross_entropy = -log_proba[[0, 1, 2, 3], [0, 1, 0, 1]].mean()
        hidden = output.embedding[0].double().numpy()
        drawn = method.sample_pool(torch.tensor([4]), problem, 0)[0].numpy()
        distance = cmd_by_hand(hidden[:4], hidden[drawn], support=1)
        expected = cross_entropy + cmd_weight * distance
        assert first_losses(events) == [pytest.approx(expected, rel=1e-4)]

    def test_weights_multiply_the_cross_entropy(self, monkeypatch):
        events = []
        problem = self.problem(events)
        weights = torch.arange(12.0)[None]
        monkeypatch.setattr(SRGNN, "weights", lambda *_: weights)
        method = SRGNN(cmd_weight=0.0, epochs=1, hidden=3, dropout=0.0)
        method.train_robust(problem.train_labels, problem, 0)
        log_proba = method.create_network(problem).predict().logits[0].log_softmax(-1).numpy()
        each = -log_proba[[0, 1, 2, 3], [0, 1, 0, 1]]
        assert first_losses(events) == [pytest.approx((each * [0, 1, 2, 3]).sum() / 6, rel=1e-4)]

    def test_has_no_penalty_if_the_pool_is_empty(self, graph):
        everything = Split.of(np.ones(graph.num_nodes, dtype=bool))
        low, high = (
            SRGNN(cmd_weight=w, epochs=5, hidden=8).fit(graph, everything).proba_
            for w in (0.0, 10.0)
        )
        np.testing.assert_array_equal(low, high)


def test_penalty_reduces_the_shift_of_a_bounded_hidden_layer(graph, split):
    def shift(weight):
        fitted = SRGNN(cmd_weight=weight, keep_epoch="last", **QUICK).fit(graph, split)
        hidden = fitted.embed()
        assert hidden.min() < 0, "tanh, not ReLU"
        assert np.abs(hidden).max() <= 1
        return fitted.history_[0]["cmd"]

    assert shift(1.0) < 0.8 * shift(0.0)


class TestKernelMeanMatching:
    def test_weights_have_mean_one_per_class_and_a_lower_bound(self, two_runs):
        method = SRGNN(weighting="kmm", least_weight=0.3)
        labeled = two_runs.train_labels >= 0
        drawn = method.sample_pool(labeled.sum(1), two_runs, 0)
        weights = method.weights(two_runs.train_labels, drawn, two_runs)
        for run in range(2):
            for code in range(3):
                own = weights[run, two_runs.train_labels[run] == code]
                assert float(own.sum()) == pytest.approx(4, abs=1e-4)
                assert float(own.min()) >= 0.3 - 1e-6
        assert float(weights[labeled].std()) > 0.01

    def test_labels_near_the_sample_get_larger_weights(self):
        """Nodes 0 and 10 of a ring are labeled; the sample is next to node 0."""
        problem = ring_problem([0] + [-1] * 9 + [0] + [-1] * 9)
        drawn = torch.zeros(1, 20, dtype=torch.bool)
        drawn[0, [1, 2, 18, 19]] = True
        weights = SRGNN(weighting="kmm").weights(problem.train_labels, drawn, problem)
        assert float(weights[0, 0]) > 1 > float(weights[0, 10])

    def test_is_off_by_default(self, two_runs):
        assert SRGNN().weights(two_runs.train_labels, two_runs.pool, two_runs) is None
