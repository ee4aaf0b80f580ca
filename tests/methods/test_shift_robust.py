"""SR-GNN and EERM: networks that shift is to do less harm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.engine.random import Streams
from dcgst.engine.sparse import SparseMatrix
from dcgst.methods import EERM, SRGNN
from dcgst.methods.eerm import Editors, flippable_pairs
from dcgst.methods.outcome import Problem
from dcgst.splits import Split, sample

QUICK = {"epochs": 30, "hidden": 16}


@pytest.fixture(scope="module")
def split(graph):
    return sample(graph, "ppr-s", per_class=4, runs=2, val_rate=0.05)


@pytest.fixture(scope="module")
def problem(graph, split) -> Problem:
    def masked(mask):
        return torch.tensor(np.where(mask, graph.labels, -1))

    return Problem(
        torch.tensor(graph.features),
        SparseMatrix.from_scipy(graph.adjacency),
        masked(split.train),
        masked(split.val),
        torch.tensor(split.pool),
        (5, 6),
        3,
    )


def test_the_sample_is_of_unlabeled_nodes_and_new_each_time(problem):
    count = torch.tensor([12, 20])
    first, second = (SRGNN().sample(count, problem, number) for number in (0, 1))
    for drawn in (first, second):
        assert drawn.sum(1).tolist() == [12, 20]
        assert not (drawn & ~problem.pool).any()
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


def test_a_sample_larger_than_the_pool_is_the_pool(problem):
    assert torch.equal(SRGNN().sample(torch.tensor([999, 999]), problem, 0), problem.pool)


def test_with_nothing_to_be_near_to_it_is_a_plain_network(graph):
    """An empty pool is no reason to draw everything to zero."""
    everyone = Split.of(np.ones(graph.num_nodes, dtype=bool))
    near, far = (SRGNN(cmd_weight=w, **QUICK).fit(graph, everyone).proba_ for w in (0.0, 10.0))
    np.testing.assert_array_equal(near, far)


def test_the_hidden_layer_is_bounded_and_the_shift_falls(graph, split):
    def shift(weight):
        fitted = SRGNN(cmd_weight=weight, keep="last", **QUICK).fit(graph, split[0])
        model = fitted.models_[0]
        hidden = model(
            torch.tensor(fitted.features(graph)),
            model.operator(SparseMatrix.from_scipy(graph.adjacency)),
        ).hidden
        assert hidden.abs().max() <= 1
        assert hidden.min() < 0
        return fitted.history_[0]["cmd"]

    assert shift(1.0) < 0.8 * shift(0.0)


def test_kernel_mean_matching_weighs_the_labeled_nodes(problem):
    method = SRGNN(weighting="kmm", least_weight=0.3)
    labeled = problem.labels >= 0
    sample_of_pool = method.sample(labeled.sum(1), problem, 0)
    weights = method.weights(problem.labels, sample_of_pool, problem)
    for run in range(2):
        for code in range(3):
            own = weights[run, problem.labels[run] == code]
            assert float(own.sum()) == pytest.approx(4, abs=1e-4)
            assert float(own.min()) >= 0.3 - 1e-6
    assert float(weights[labeled].std()) > 0.01
    assert SRGNN().weights(problem.labels, labeled, problem) is None


def test_weights_change_what_is_learned(graph, split):
    plain, weighted = (
        SRGNN(weighting=w, **QUICK).fit(graph, split[0]).proba_ for w in ("none", "kmm")
    )
    assert not np.allclose(plain, weighted, atol=1e-3)


# --- EERM --------------------------------------------------------------------------------------


def test_pairs_hold_every_edge_once_and_similar_nodes(problem):
    pairs = flippable_pairs(problem, similar=2)
    listed = {tuple(pair) for pair in pairs.tolist()}
    assert len(listed) == len(pairs)
    assert all(low < high for low, high in listed)
    pattern = problem.adjacency.pattern
    edges = set(zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True))
    assert {(a, b) for a, b in edges if a < b} <= listed
    assert len(listed) > len(edges) / 2


@pytest.mark.parametrize("flips", [1, 2])
def test_every_node_flips_so_many_of_its_candidates(problem, flips):
    pairs = flippable_pairs(problem, similar=2)
    editors = Editors(problem.adjacency, pairs, 3, 2)
    drawn = editors.draw(1, flips, Streams([0, 1]))
    before = editors.variants.base.values
    changed = (drawn.graph.values != before).to(torch.float32)
    pattern = drawn.graph.pattern
    per_node = pattern.row_sums(changed)
    assert per_node.min() >= 1  # its own, and those that the other end has flipped
    total = changed.sum(1) / 2
    assert (total <= flips * 240).all()
    assert (total > 0.5 * flips * 240).all()
    for values in drawn.graph.values:  # undirected still
        dense = torch.zeros(240, 240)
        dense[pattern.rows, pattern.indices] = values
        assert torch.equal(dense, dense.T)


def test_draws_are_as_likely_as_they_say(problem):
    pairs = flippable_pairs(problem, similar=2)
    editors = Editors(problem.adjacency, pairs, 2, 2)
    with torch.no_grad():
        editors.logits.normal_(generator=torch.Generator().manual_seed(0))
    draws = [editors.draw(0, 1, Streams([7 * i, 7 * i + 1])) for i in range(200)]
    said = torch.stack([d.log_proba for d in draws]).mean(0) * 240
    # the mean over draws of a node's log-probability is minus the entropy of its distribution
    owner, logits = editors.owner, editors.logits[0]
    entropy = 0.0
    for node in range(240):
        log_proba = logits[:, owner == node].log_softmax(-1)
        entropy = entropy - (log_proba.exp() * log_proba).sum(1)
    torch.testing.assert_close(said, -entropy, rtol=0.02, atol=0)


def test_editors_learn_to_make_risks_differ(problem):
    """What was rewarded becomes likelier, and nothing else changes."""
    pairs = flippable_pairs(problem, similar=2)
    editors = Editors(problem.adjacency, pairs, 2, 2, lr=0.01)

    def drawn():
        return torch.stack([editors.draw(k, 1, Streams([0, 1])).log_proba for k in range(2)])

    before = drawn()
    editors.learn(before, reward=torch.tensor([1.0, 0.0]))
    after = drawn()
    assert (after[:, 0] > before[:, 0] + 1e-4).all()
    assert torch.equal(after[:, 1], before[:, 1])


def test_the_loss_is_variance_and_mean_of_the_risks(problem, monkeypatch):
    """With risks that are known the loss is known; the variance is the editors' reward."""
    risks = iter([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0]), torch.tensor([5.0, 2.0])])
    zero = torch.zeros((), requires_grad=True)
    monkeypatch.setattr("dcgst.methods.eerm.cross_entropy", lambda *_: next(risks) + 0 * zero)
    rewards = []
    monkeypatch.setattr(Editors, "learn", lambda self, _, reward: rewards.append(reward))
    method = EERM(environments=3, risk_weight=10.0, epochs=1, hidden=8, keep="last")
    training = method.train_against_editors(method.network(problem), problem)
    # of 1, 3 and 5: variance 4, mean 3; of 2, 2 and 2: variance 0, mean 2
    torch.testing.assert_close(training.loss[0], torch.tensor([34.0, 20.0]))
    torch.testing.assert_close(rewards[0], torch.tensor([4.0, 0.0]))


def test_eerm_predicts_on_the_graph_as_it_is(graph, split):
    fitted = EERM(environments=3, epochs=60, hidden=16).fit(graph, split[0])
    assert fitted.score(graph) > 0.5
    model = fitted.models_[0]
    again = model(
        torch.tensor(fitted.features(graph)),
        model.operator(SparseMatrix.from_scipy(graph.adjacency)),
    ).logits.softmax(-1)
    np.testing.assert_allclose(again[0].detach().numpy(), fitted.proba_, atol=1e-5)
