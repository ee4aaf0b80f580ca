"""EERM: candidate pairs, draws of the editors, and the loss by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.methods import EERM
from dcgst.methods.eerm import Editors, flippable_pairs
from dcgst.methods.problem import Problem
from dcgst.splits import sample
from dcgst.train.checkpoint import Checkpoint
from dcgst.train.random import Streams
from tests.methods.helpers import problem_of, ring_problem


@pytest.fixture(scope="module")
def problem(graph) -> Problem:
    return problem_of(graph, sample(graph, "ppr-s", per_class=4, runs=2, val_rate=0.05), (5, 6))


@pytest.fixture(scope="module")
def pairs(problem) -> torch.Tensor:
    return flippable_pairs(problem, similar=2)


class TestPairs:
    def test_are_the_edges_and_the_similar_nodes(self):
        """Four nodes in a ring; nodes 0 and 2, and nodes 1 and 3, have equal features."""
        features = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]], dtype=np.float32)
        found = flippable_pairs(ring_problem([0, 1, -1, -1], features=features), similar=1)
        assert sorted(found.tolist()) == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]

    def test_contain_every_edge_once(self, problem, pairs):
        listed = {tuple(pair) for pair in pairs.tolist()}
        assert len(listed) == len(pairs)
        assert all(low < high for low, high in listed)
        pattern = problem.adjacency.pattern
        edges = set(zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True))
        assert {(a, b) for a, b in edges if a < b} < listed


class TestDraw:
    @pytest.mark.parametrize("flips", [1, 2])
    def test_every_node_flips_its_number_of_candidates(self, problem, pairs, flips):
        editors = Editors(problem.adjacency, pairs, 3, 2)
        drawn = editors.draw(1, flips, Streams([0, 1]))
        changed = (drawn.graph.values != editors.variants.base.values).to(torch.float32)
        # Each node has at least its own flips; two ends may flip the same pair.
        candidates = torch.bincount(editors.owner, minlength=240).clamp_max(flips)
        assert (drawn.graph.pattern.row_sums(changed) >= candidates).all()
        assert (changed.sum(1) / 2 <= flips * 240).all()

    def test_graph_stays_undirected(self, problem, pairs):
        drawn = Editors(problem.adjacency, pairs, 3, 2).draw(0, 1, Streams([0, 1]))
        for values in drawn.graph.values:
            dense = drawn.graph.with_values(values).to_scipy().toarray()
            np.testing.assert_array_equal(dense, dense.T)

    def test_log_probability_is_that_of_the_distribution(self, problem, pairs):
        """Its mean over draws is minus the entropy of every node's distribution."""
        editors = Editors(problem.adjacency, pairs, 2, 2)
        with torch.no_grad():
            editors.logits.normal_(generator=torch.Generator().manual_seed(0))
            draws = [editors.draw(0, 1, Streams([7 * i, 7 * i + 1])) for i in range(200)]
            found = torch.stack([drawn.log_proba for drawn in draws]).mean(0) * 240
            entropy = 0.0
            for node in range(240):
                log_proba = editors.logits[0][:, editors.owner == node].log_softmax(-1)
                entropy = entropy - (log_proba.exp() * log_proba).sum(1)
        torch.testing.assert_close(found, -entropy, rtol=0.02, atol=0)


def test_rewarded_draws_become_more_likely(problem, pairs):
    """Run 0 has a reward, run 1 none."""
    editors = Editors(problem.adjacency, pairs, 2, 2, lr=0.01)

    def drawn():
        return torch.stack([editors.draw(k, 1, Streams([0, 1])).log_proba for k in range(2)])

    before = drawn()
    editors.learn(before, reward=torch.tensor([1.0, 0.0]))
    after = drawn()
    assert (after[:, 0] > before[:, 0] + 1e-4).all()
    assert torch.equal(after[:, 1], before[:, 1])


def test_loss_is_variance_plus_weighted_mean_of_the_risks(problem, monkeypatch):
    """Risks are 1, 3, 5 in run 0 and 2, 2, 2 in run 1; the reward is the variance."""
    risks = iter([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0]), torch.tensor([5.0, 2.0])])
    zero = torch.zeros((), requires_grad=True)
    monkeypatch.setattr("dcgst.methods.eerm.cross_entropy", lambda *_: next(risks) + 0 * zero)
    rewards = []
    monkeypatch.setattr(Editors, "learn", lambda self, _, reward: rewards.append(reward))
    method = EERM(environments=3, risk_weight=10.0, epochs=1, hidden=8, keep_epoch="last")
    problem = replace(problem, checkpoint=Checkpoint())
    training = method.train_against_editors(method.create_network(problem), problem)
    torch.testing.assert_close(training.loss[0], torch.tensor([4 + 10 * 3.0, 0 + 10 * 2.0]))
    torch.testing.assert_close(rewards[0], torch.tensor([4.0, 0.0]))


def test_predictions_are_those_on_the_original_graph(graph, split):
    fitted = EERM(environments=3, epochs=30, hidden=16).fit(graph, split)
    assert fitted.score(graph) > 0.5
    model = fitted.models_[0]
    adjacency = problem_of(graph, split).adjacency
    with torch.no_grad():
        output = model(
            torch.tensor(fitted.scale_features(graph.features)), model.operator(adjacency)
        )
    np.testing.assert_allclose(output.logits[0].softmax(-1).numpy(), fitted.proba_, atol=1e-5)
