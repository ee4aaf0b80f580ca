"""Selection of pseudo-labels in DC-GST: K, quotas, criterion and NER by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.methods import DCGST
from dcgst.methods.dcgst.candidates import candidates_per_class, find_candidates
from dcgst.methods.problem import Problem
from dcgst.methods.result import Selection
from dcgst.shift.ner import neighborhood_entropy_reduction
from dcgst.shift.selection import SelectionObjective
from tests.methods.helpers import draw, ring_problem


def twelve_nodes() -> Problem:
    """Nine pool nodes and three labeled ones in a ring."""
    return ring_problem([-1] * 9 + [0, 1, 2], 3)


class TestCandidatesPerClass:
    """Ten pool nodes: nine predicted as class 0, one as class 1, none as class 2."""

    logits = torch.tensor([[[2.0, 0.0, -9.0]] * 9 + [[0.0, 2.0, -9.0]]])

    def sizes(self, class_balance, per_class=3.0) -> list[float]:
        problem = ring_problem([-1] * 10, 3)
        found = candidates_per_class(problem, self.logits, torch.tensor([per_class]), class_balance)
        return found[0].tolist()

    @pytest.mark.parametrize("class_balance", ["none", "uniform"])
    def test_is_k_rounded_down(self, class_balance):
        assert self.sizes(class_balance) == [3, 3, 3]
        assert self.sizes(class_balance, 3.9) == [3, 3, 3]

    @pytest.mark.parametrize("class_balance", ["none", "uniform"])
    def test_is_that_of_each_fit(self, class_balance):
        problem = ring_problem([[-1] * 10] * 2, 3)
        found = candidates_per_class(
            problem, self.logits.expand(2, -1, -1), torch.tensor([3.0, 5.0]), class_balance
        )
        assert found.tolist() == [[3, 3, 3], [5, 5, 5]]

    @pytest.mark.parametrize("class_balance", ["none", "uniform"])
    def test_is_at_least_one(self, class_balance):
        assert self.sizes(class_balance, 0.4) == [1, 1, 1]

    def test_balanced_is_proportional_to_their_square_roots_rounded_up(self):
        # Square roots .896, .443 and .004, so shares .667, .330 and .003.
        assert self.sizes("balanced") == [7, 3, 1]  # 6.01, 2.97, 0.02
        assert self.sizes("balanced", 2.4) == [5, 3, 1]  # 4.80, 2.38

    def test_only_pool_nodes_count(self):
        problem = ring_problem([0] * 8 + [-1] * 2, 3)
        found = candidates_per_class(problem, self.logits, torch.tensor([3.0]), "balanced")
        # The pool is one node of either class: shares of one half.
        assert found[0].tolist() == [5, 5, 1]


CONFIDENCE = [0.95, 0.90, 0.85, 0.80, 0.75, 0.94, 0.89, 0.84, 0.70]
PREDICTED = [0, 0, 0, 0, 0, 1, 1, 1, 2]


class TestSelect:
    """Nine pool nodes and three labeled ones; K = 3.

    Five pool nodes are predicted as class 0, three as class 1 and one as class 2. The candidates
    are 0, 1, 2 of class 0, then 5, 6, 7, and 8.
    """

    def logits(self) -> torch.Tensor:
        proba = torch.full((1, 12, 3), 1.0)
        for node, (code, p) in enumerate(zip(PREDICTED, CONFIDENCE, strict=True)):
            proba[0, node] = (1 - p) / 2
            proba[0, node, code] = p
        return proba.log()

    def select(self, *, k=3.0, z=None, **settings) -> Selection:
        z = draw(0, 1, 12, 2) if z is None else z
        method, problem = DCGST(**settings), twelve_nodes()
        candidates = find_candidates(
            problem, self.logits(), torch.tensor([k]), method.class_balance
        )
        return candidates.select(method.score_candidates(problem, candidates, z, 1))

    def nodes(self, mask) -> list[int]:
        return mask[0].nonzero().squeeze(-1).tolist()

    @pytest.mark.parametrize("class_balance", ["none", "uniform"])
    def test_candidates_are_the_k_most_confident_of_each_class(self, class_balance):
        selection = self.select(class_balance=class_balance)
        assert self.nodes(selection.candidates) == [0, 1, 2, 5, 6, 7, 8]
        assert selection.predicted[0, :9].tolist() == PREDICTED
        assert selection.rank[0, :9].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0]
        np.testing.assert_allclose(selection.confidence[0, :9].numpy(), CONFIDENCE, rtol=1e-5)

    def test_quota_is_half_of_k_rounded_up_or_all_candidates(self):
        """Two, two and one; by confidence."""
        selection = self.select(class_balance="uniform", criterion="confidence")
        assert self.nodes(selection.selected) == [0, 1, 5, 6, 8]
        selection = self.select(class_balance="uniform", criterion="confidence", k=2.0)
        assert self.nodes(selection.selected) == [0, 5, 8]

    def test_without_quota_half_of_all_candidates_rounded_up_are_selected(self):
        """Four of seven, the most confident of all classes."""
        selection = self.select(class_balance="none", criterion="confidence")
        assert self.nodes(selection.selected) == [0, 1, 5, 6]

    @pytest.mark.parametrize(
        ("class_balance", "expected"),
        [
            ("uniform", [2, 2, 1]),
            # Square roots of the sums of the pool's probabilities, scaled to the sum 9: 3.82, 3.19
            # and 1.99, so 4, 4 and 2.
            ("balanced", [2, 2, 1]),
        ],
    )
    def test_quota_is_half_of_the_candidates_of_each_class(self, class_balance, expected):
        selected = self.nodes(self.select(class_balance=class_balance).selected)
        assert np.bincount([PREDICTED[node] for node in selected]).tolist() == expected

    def test_confidence_is_the_score_of_candidates(self):
        selection = self.select(criterion="confidence", class_balance="uniform")
        expected = np.where(selection.candidates[0], selection.confidence[0], 0)
        np.testing.assert_allclose(selection.selection_score[0].numpy(), expected)

    @pytest.mark.parametrize(
        ("class_balance", "expected"), [("none", [2, 6, 7, 8]), ("uniform", [1, 2, 6, 7, 8])]
    )
    def test_candidates_with_the_largest_score_are_selected(self, class_balance, expected):
        """The least confident candidates have the largest q."""
        q = torch.tensor([[0.0, 0.5, 0.9, 1.0, 1.0, 0.1, 0.8, 0.7, 0.6, 1.0, 1.0, 1.0]])
        candidates = find_candidates(
            twelve_nodes(), self.logits(), torch.tensor([3.0]), class_balance
        )
        selection = candidates.select(q)
        assert self.nodes(selection.selected) == expected
        assert torch.equal(selection.selection_score, q)

    @pytest.mark.parametrize("solver", ["exchange", "projection", "penalty"])
    def test_shift_of_the_selection_is_lower_than_by_confidence(self, solver):
        z = draw(5, 1, 12, 2)
        settings = {"class_balance": "none", "ner_weight": 0.0, "solver": solver}
        shift, confidence = (
            self.select(criterion=c, z=z, **settings).selected for c in ("shift", "confidence")
        )
        nothing = torch.zeros(1, 12)
        problem = twelve_nodes()
        objective = SelectionObjective(z, problem.train_labels >= 0, problem.pool, nothing)
        assert float(objective.value(shift)) < 0.9 * float(objective.value(confidence))

    def score(self, class_balance="none", z=None, **settings) -> torch.Tensor:
        method, problem = DCGST(class_balance=class_balance, **settings), twelve_nodes()
        self.candidates = find_candidates(
            problem, self.logits(), torch.tensor([3.0]), class_balance
        )
        z = draw(0, 1, 12, 2) if z is None else z
        return method.score_candidates(problem, self.candidates, z, 1)

    def test_exchange_starts_from_the_most_confident_candidates(self):
        """All nodes are alike, so nothing is exchanged."""
        score = self.score(ner_weight=0.0, z=torch.ones(1, 12, 2))
        assert self.nodes(score > 0) == [0, 1, 5, 6]

    def test_exchange_keeps_the_quotas(self):
        for seed in range(5):
            score = self.score("uniform", ner_weight=0.0, z=draw(seed, 1, 12, 2))
            of_class = np.bincount(PREDICTED, score[0, :9].numpy())
            assert of_class.tolist() == self.candidates.quotas[0].tolist() == [2, 2, 1]

    def test_only_a_projection_fixes_the_sum_of_q(self):
        fixed, bounded = (self.score(solver=name) for name in ("projection", "penalty"))
        assert float(fixed.sum()) == pytest.approx(4, abs=1e-3)
        assert abs(float(bounded.sum()) - 4) > 1e-2

    def test_ner_is_computed_on_the_normalized_graph(self):
        expected = neighborhood_entropy_reduction(self.logits(), twelve_nodes().graph.normalized)
        torch.testing.assert_close(self.select().ner, expected)


class TestNERWeight:
    """The term of NER that is passed to the objective: γ · NER, divided by δ for a mean."""

    def ner_term(self, *, factor: float = 1.0, **settings) -> torch.Tensor:
        problem, method, z = twelve_nodes(), DCGST(**settings), draw(0, 1, 12, 2)
        found = find_candidates(
            problem, draw(2, 1, 12, 3), torch.tensor([3.0]), method.class_balance
        )
        self.ner = factor * draw(1, 1, 12)
        self.candidates = replace(found, ner=self.ner, budget=torch.tensor([4.0]))
        objective = method.make_objective(problem, self.candidates, z)
        assert objective.z is z
        assert torch.equal(objective.labeled, problem.train_labels >= 0)
        assert torch.equal(objective.pool, problem.pool)
        return objective.ner_term

    def test_sum(self):
        term = self.ner_term(ner_reduction="sum", ner_weight=0.5)
        torch.testing.assert_close(term, 0.5 * self.ner)

    def test_mean(self):
        term = self.ner_term(ner_reduction="mean", ner_weight=0.5)
        torch.testing.assert_close(term, 0.5 * self.ner / 4)

    def test_without_ner_only_the_shift_counts(self):
        assert not self.ner_term(ner_weight=0.0).any()

    def test_relative_terms_are_in_the_unit_of_the_shift(self):
        """For a random half of the candidates, γ·NER equals γ times the CMD."""
        term = self.ner_term(ner_reduction="relative", ner_weight=0.7)
        half = self.candidates.equal_weights()
        problem = twelve_nodes()
        labeled, nothing = problem.train_labels >= 0, torch.zeros(1, 12)
        objective = SelectionObjective(draw(0, 1, 12, 2), labeled, problem.pool, nothing, 1.0)
        sign = (half * self.ner).sum().sign()  # of the sum of NER, which may be negative
        expected = 0.7 * sign * objective.value(half)
        torch.testing.assert_close((half * term).sum(1), expected)

    def test_relative_selection_does_not_depend_on_the_unit_of_ner(self):
        term = self.ner_term(ner_reduction="relative", ner_weight=0.7)
        assert term.abs().max() > 0
        again = self.ner_term(factor=100.0, ner_reduction="relative", ner_weight=0.7)
        torch.testing.assert_close(term, again)


def test_a_budget_in_total_is_smaller_than_one_for_each_class():
    problem, logits, k = twelve_nodes(), draw(2, 1, 12, 3), torch.tensor([4.0])
    for balance in ("none", "uniform"):
        by_class = find_candidates(problem, logits, k, balance, "class")
        total = find_candidates(problem, logits, k, balance, "total")
        assert torch.equal(by_class.mask, total.mask)
        assert float(total.budget) < float(by_class.budget)
    assert float(find_candidates(problem, logits, k, "none", "total").budget) == 2
