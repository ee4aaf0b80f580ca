"""The teacher of DC-GST: its joint loss by hand, its gradients, and its graph variants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dcgst.methods import DCGST
from dcgst.methods.dcgst import teacher as module
from dcgst.methods.dcgst.teacher import Teacher, gradient_only_through
from dcgst.methods.problem import Problem
from dcgst.nn.edge_predictor import pair_logits, reconstruction_loss
from dcgst.train.random import Streams
from dcgst.train.training import TrainingOptions, cross_entropy
from tests.methods.helpers import cmd_by_hand, draw, normalized, ring_problem


@pytest.fixture
def problem() -> Problem:
    """One run on ten nodes in a ring, four of them labeled."""
    return ring_problem([0, 1, 0, 1] + [-1] * 6, features=draw(0, 10, 4).numpy())


def make(problem, *, pairs=True, **settings) -> Teacher:
    """A teacher without dropout; by default, some pairs of nodes may change."""
    size = {"edge_nodes": 2, "edge_pairs": 4} if pairs else {"edge_nodes": 0, "edge_pairs": 0}
    settings = {"hidden": 3, "dropout": 0.0, "edge_predictor": True, **size, **settings}
    settings = {"backbone": "gcn", **settings}
    method = DCGST(**settings)
    teacher = Teacher(method.create_network(problem), problem, method)
    teacher.update_pairs(teacher.predict(), problem.train_labels)
    return teacher


def loss_of(teacher: Teacher) -> Tensor:
    """The joint loss of the given labels; always with the same random numbers."""
    return teacher.make_loss(teacher.problem.train_labels, stage=1)()


def keep_graph(monkeypatch, teacher: Teacher) -> None:
    """Sample every listed pair as it is in the graph."""
    count = teacher.variants.pairs.shape[1]
    present = teacher.variants.base.values.gather(1, teacher.variants.positions[:, :count]) > 0
    monkeypatch.setattr(module, "sample_edges", lambda logits, *_: present + 0 * logits)


def parts_by_hand(teacher: Teacher) -> tuple[float, float]:
    """Cross entropy and CMD of the labels on the original graph, in NumPy."""
    model, x = teacher.network.model, teacher.problem.x.double().numpy()
    smooth = normalized(teacher.problem.adjacency.to_scipy())
    w1, b1, w2, b2 = (p.detach()[0].double().numpy() for p in model.parameters())
    hidden = np.maximum(smooth @ x @ w1 + b1, 0)
    logits = smooth @ hidden @ w2 + b2
    log_proba = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    distance = cmd_by_hand(hidden[:4], hidden[4:], hidden.max() - hidden.min())
    return -log_proba[[0, 1, 2, 3], [0, 1, 0, 1]].mean(), distance


class TestLoss:
    """``CE + β (BCE + α CMD)``."""

    @pytest.mark.parametrize("cmd_trains", ["both", "predictor"])
    @pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (3.0, 1.0), (1.0, 0.5), (3.0, 0.5)])
    def test_equals_the_formula(self, problem, monkeypatch, alpha, beta, cmd_trains):
        """The sampled graph is the original one, so that all parts can be computed by hand."""
        settings = {"cmd_weight": alpha, "predictor_weight": beta, "cmd_trains": cmd_trains}
        teacher = make(problem, **settings)
        keep_graph(monkeypatch, teacher)
        ce, distance = parts_by_hand(teacher)
        factors = teacher.predictor(problem.x, problem.graph.normalized)
        bce = float(
            reconstruction_loss(factors.detach(), problem.adjacency.pattern, teacher._streams(1))
        )
        assert min(ce, bce, distance) > 0.1, "no part is negligible"
        expected = ce + beta * (bce + alpha * distance)
        assert float(loss_of(teacher).detach()) == pytest.approx(expected, rel=1e-4)

    def test_without_predictor_is_the_cross_entropy_on_the_original_graph(self, problem):
        teacher = make(problem, edge_predictor=False)
        assert teacher.variants is None
        assert float(loss_of(teacher).detach()) == pytest.approx(
            parts_by_hand(teacher)[0], rel=1e-4
        )

    def test_without_pairs_is_the_cross_entropy_on_the_original_graph(self, problem):
        teacher = make(problem, pairs=False)
        assert teacher.variants is None
        assert float(loss_of(teacher).detach()) == pytest.approx(
            parts_by_hand(teacher)[0], rel=1e-4
        )

    @pytest.mark.parametrize("edge_predictor", [True, False])
    def test_cmd_can_train_a_network_on_the_original_graph(self, problem, edge_predictor):
        settings = {"cmd_weight": 3.0, "predictor_weight": 0.5, "cmd_trains": "both"}
        teacher = make(problem, pairs=False, edge_predictor=edge_predictor, **settings)
        ce, distance = parts_by_hand(teacher)
        expected = ce + 0.5 * 3 * distance
        assert float(loss_of(teacher).detach()) == pytest.approx(expected, rel=1e-4)

    def test_uses_the_sampled_graph(self, problem, monkeypatch):
        """Without any of the listed pairs, the cross entropy is that on the remaining graph."""
        teacher = make(problem, predictor_weight=0.0)
        monkeypatch.setattr(module, "sample_edges", lambda logits, *_: 0 * logits)
        dense = problem.adjacency.to_scipy().toarray()
        for a, b in teacher.variants.pairs[0].tolist():
            dense[a, b] = dense[b, a] = 0
        assert 0 < dense.sum() < 20, "some edges are removed and some are not"
        model, smooth = teacher.network.model, torch.tensor(normalized(dense)).float()
        w1, b1, w2, b2 = (p[0] for p in model.parameters())
        logits = smooth @ torch.relu(smooth @ problem.x @ w1 + b1) @ w2 + b2
        expected = cross_entropy(logits[None], problem.train_labels)
        torch.testing.assert_close(loss_of(teacher), expected)

    def test_cmd_compares_labels_of_each_run_with_its_pool(self, monkeypatch):
        """Rows are the nodes labeled in any run; weights select those of each run."""
        problem = ring_problem([[0, 1, -1, -1, -1], [0, -1, 1, -1, -1]], seeds=(0, 1))
        seen = []

        def recorded(source, target, source_weights, target_weights):
            seen.append((source.shape[1], source_weights.tolist(), target_weights.tolist()))
            return 0 * source.sum((1, 2))

        monkeypatch.setattr(module, "cmd", recorded)
        teacher = make(problem)
        teacher.make_loss(problem.train_labels, stage=1)()
        assert seen == [(3, [[1, 1, 0], [1, 0, 1]], [[0, 0, 1, 1, 1], [0, 1, 0, 1, 1]])]


class TestGradientOfCMD:
    """Gradients of the difference between the losses for α = 2 and α = 1."""

    def gradients(self, problem, parameters, **settings) -> list[Tensor]:
        one, two = (make(problem, cmd_weight=a, **settings) for a in (1.0, 2.0))
        each = [
            torch.autograd.grad(loss_of(teacher), list(parameters(teacher).parameters()))
            for teacher in (one, two)
        ]
        return [right - left for left, right in zip(*each, strict=True)]

    @pytest.mark.parametrize(("cmd_trains", "trained"), [("both", True), ("predictor", False)])
    def test_reaches_the_network_only_if_it_trains_both(self, problem, cmd_trains, trained):
        found = self.gradients(problem, lambda t: t.network.model, cmd_trains=cmd_trains)
        assert any(bool(g.abs().max() > 1e-4) for g in found) == trained
        if not trained:
            assert all(bool((g == 0).all()) for g in found)

    @pytest.mark.parametrize("cmd_trains", ["both", "predictor"])
    def test_always_reaches_the_predictor(self, problem, cmd_trains):
        found = self.gradients(problem, lambda t: t.predictor, cmd_trains=cmd_trains)
        assert all(bool(g.abs().max() > 1e-5) for g in found)

    def test_of_the_predictor_is_the_same_for_both_choices(self, problem):
        both, alone = (
            self.gradients(problem, lambda t: t.predictor, cmd_trains=c)
            for c in ("both", "predictor")
        )
        torch.testing.assert_close(both, alone, atol=1e-6, rtol=1e-4)

    def test_gradient_only_through_keeps_the_value(self):
        sampled = torch.tensor([[1.0, 2.0]], requires_grad=True)
        other = torch.tensor(3.0, requires_grad=True)
        value = (sampled**2).sum(1) * other
        found = gradient_only_through(sampled, value)
        assert found.tolist() == value.tolist() == [15.0]
        slope, none = torch.autograd.grad(found.sum(), [sampled, other], allow_unused=True)
        assert slope.tolist() == [[6.0, 12.0]]
        assert none is None


class TestTraining:
    def test_pretraining_reduces_both_losses(self, problem):
        teacher = make(problem)

        def losses():
            ce = cross_entropy(teacher.predict().logits, problem.train_labels)
            factors = teacher.predictor(problem.x, problem.graph.normalized).detach()
            bce = reconstruction_loss(factors, problem.adjacency.pattern, Streams([1]))
            return float(ce), float(bce)

        before = losses()
        teacher.pretrain(TrainingOptions(epochs=60, lr=0.05))
        after = losses()
        assert after[0] < 0.9 * before[0]
        assert after[1] < 0.9 * before[1]

    def test_a_stage_trains_network_and_predictor(self, problem):
        teacher = make(problem)
        parts = (teacher.network.model, teacher.predictor)
        before = [p.weight1.detach().clone() for p in (parts[0], parts[1].gcn)]
        teacher.train(problem.train_labels, TrainingOptions(epochs=1), 1, torch.tensor([True]))
        assert not torch.equal(parts[0].weight1, before[0])
        assert not torch.equal(parts[1].gcn.weight1, before[1])


class TestSettings:
    def test_temperature_is_that_of_the_sampling(self, problem, monkeypatch):
        seen = []

        def recorded(logits, streams, temperature, noise):
            seen.append((temperature, noise))
            return 0 * logits

        monkeypatch.setattr(module, "sample_edges", recorded)
        loss_of(make(problem, edge_temperature=0.7, edge_noise="gumbel"))
        assert seen == [(0.7, "gumbel")]

    def test_without_reconstruction_the_loss_has_no_cross_entropy_of_edges(self, problem):
        """With β only on the BCE, it is the loss without an edge predictor's weight."""
        settings = {"predictor_weight": 0.5, "cmd_weight": 0.0}
        with_bce = loss_of(make(problem, **settings))
        without = loss_of(make(problem, edge_reconstruction=False, **settings))
        zero = loss_of(make(problem, predictor_weight=0.0, cmd_weight=0.0))
        torch.testing.assert_close(without, zero)
        assert (with_bce > without).all()

    def test_numbers_of_nodes_and_pairs_are_those_of_the_list(self, problem):
        """Each of the ten nodes has nine possible partners."""
        listed = make(problem, edge_nodes=3, edge_pairs=4).variants.pairs
        assert listed.shape == (1, 3 * 9 + 4, 2)


class TestEdgeProbabilities:
    def trained(self, problem, active=True, **settings):
        teacher = make(problem, **settings)
        options = TrainingOptions(epochs=1)
        teacher.train(problem.train_labels, options, 1, torch.tensor([active]))
        return teacher

    def test_table_contains_every_listed_pair_once(self, problem):
        teacher = self.trained(problem)
        (table,) = teacher.edge_probabilities
        ends = table[["source", "target"]].tolist()
        listed = {tuple(sorted(pair)) for pair in teacher.variants.pairs[0].tolist()}
        assert sorted(ends) == sorted(pair for pair in listed if pair[0] != pair[1])
        dense = problem.adjacency.to_scipy().toarray()
        np.testing.assert_array_equal(table["present"], dense[table["source"], table["target"]] > 0)

    def test_probability_is_that_of_the_predictor(self, problem):
        teacher = self.trained(problem)
        (table,) = teacher.edge_probabilities
        pairs = torch.tensor(np.stack([table["source"], table["target"]], axis=1))
        factors = teacher.predictor(problem.x, problem.graph.normalized).detach()
        expected = pair_logits(factors, pairs).sigmoid()[0]
        np.testing.assert_allclose(table["probability"], expected.numpy(), rtol=1e-5)

    @pytest.mark.parametrize("settings", [{"edge_predictor": False}, {"pairs": False}])
    def test_without_pairs_there_is_no_table(self, problem, settings):
        (table,) = self.trained(problem, **settings).edge_probabilities
        assert len(table) == 0

    def test_fits_that_are_not_active_keep_their_table(self, problem):
        (table,) = self.trained(problem, active=False).edge_probabilities
        assert len(table) == 0
