"""Selection: ranks and quotas by hand, both solvers against the best subset by enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
import torch

from dcgst.shift import cmd
from dcgst.shift.selection import (
    SelectionObjective,
    exchange,
    project_to_budget,
    ranks,
    relaxed_selection,
    select_top,
)


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mask(n: int, *nodes: int) -> torch.Tensor:
    result = torch.zeros(1, n, dtype=torch.bool)
    result[0, list(nodes)] = True
    return result


def everyone(n: int) -> torch.Tensor:
    return torch.ones(1, n, dtype=torch.bool)


class TestRanks:
    value = torch.tensor([[0.1, 0.9, 0.5, 0.7]])

    def test_the_largest_value_is_first_in_its_group(self):
        assert ranks(self.value, everyone(4)).tolist() == [[3, 0, 2, 1]]
        groups = torch.tensor([[0, 0, 1, 1]])
        assert ranks(self.value, everyone(4), groups).tolist() == [[1, 0, 1, 0]]

    def test_other_nodes_are_not_ranked(self):
        assert ranks(self.value, mask(4, 0, 2)).tolist() == [[1, 4, 0, 4]]

    @pytest.mark.parametrize("count", [3, 5000])
    def test_ties_keep_the_node_order(self, count):
        found = ranks(torch.ones(1, count), everyone(count))
        assert torch.equal(found, torch.arange(count)[None])
        groups = torch.arange(count)[None] % 2
        found = ranks(torch.ones(1, count), everyone(count), groups)
        assert torch.equal(found, torch.arange(count)[None] // 2)

    def test_runs_are_independent(self):
        value, members = draw(0, 3, 20), draw(1, 3, 20) > 0
        groups = (draw(2, 3, 20) > 0).long()
        together = ranks(value, members, groups)
        for run in range(3):
            alone = ranks(value[run, None], members[run, None], groups[run, None])
            assert torch.equal(alone[0], together[run])


def objective_of(seed: int, gain: float = 0.0) -> tuple[SelectionObjective, torch.Tensor]:
    """Thirty nodes, two of them labeled, and ten candidates."""
    labeled = mask(30, 0, 1)
    gains = gain * draw(seed + 50, 1, 30).abs()
    return SelectionObjective(draw(seed, 1, 30, 2), labeled, ~labeled, gains), mask(
        30, *range(5, 15)
    )


def values_of_subsets(objective: SelectionObjective) -> torch.Tensor:
    """The objective of every subset of four candidates, computed as one run each."""
    subsets = torch.cat([mask(30, *four) for four in combinations(range(5, 15), 4)])
    parts = (objective.z, objective.labeled, objective.pool, objective.ner_term)
    repeated = (part.expand(len(subsets), *part.shape[1:]) for part in parts)
    return SelectionObjective(*repeated).value(subsets)


def test_the_objective_is_the_cmd_minus_the_ner_term():
    objective, _ = objective_of(0, 0.05)
    subset = mask(30, 6, 9)
    joined = (subset | objective.labeled).float()
    distance = cmd(objective.z, objective.z, objective.pool.float(), joined)
    expected = distance - objective.ner_term[0, 6] - objective.ner_term[0, 9]
    torch.testing.assert_close(objective.value(subset), expected)


class TestExchange:
    start = mask(30, 5, 6, 7, 8)

    @pytest.mark.parametrize("gain", [0.0, 0.05])
    def test_it_is_close_to_the_best_subset(self, gain):
        """Of all subsets of four out of ten candidates, for several graphs.

        It gains most of the difference between the mean and the best subset.
        """
        shares = []
        for seed in range(8):
            objective, candidates = objective_of(seed, gain)
            values = values_of_subsets(objective)
            found = objective.value(exchange(objective, candidates, self.start))
            shares.append(float((values.mean() - found) / (values.mean() - values.min())))
        assert sum(shares) / len(shares) > 0.6, shares

    def test_the_objective_never_rises_and_the_number_stays(self):
        gains = []
        for seed in range(8):
            objective, candidates = objective_of(seed, 0.05)
            values = []
            for steps in range(6):
                subset = exchange(objective, candidates, self.start, steps=steps)
                assert set(subset.unique().tolist()) <= {0.0, 1.0}
                assert float(subset.sum()) == 4
                assert not subset[~candidates].any()
                values.append(float(objective.value(subset)))
            assert values == sorted(values, reverse=True)
            gains.append(values[0] - values[-1])
        assert sum(gain > 0.1 for gain in gains) >= 4, gains

    def test_without_steps_nothing_is_exchanged(self):
        objective, candidates = objective_of(0)
        subset = exchange(objective, candidates, self.start, steps=0)
        assert torch.equal(subset, self.start.float())

    def test_large_ner_terms_are_selected(self):
        objective, candidates = objective_of(0)
        term = torch.zeros(1, 30)
        term[0, [6, 9, 11, 13]] = 100.0
        subset = exchange(replace(objective, ner_term=term), candidates, self.start)
        assert subset.nonzero()[:, 1].tolist() == [6, 9, 11, 13]

    def test_only_candidates_of_one_group_are_exchanged(self):
        """Nodes 5 to 9 are one group, 10 to 14 the other; the best NER terms are in the second."""
        objective, candidates = objective_of(0)
        term = torch.zeros(1, 30)
        term[0, 9:15] = torch.tensor([100.0, 200, 200, 200, 200, 100])
        groups = (torch.arange(30) >= 10).long()[None]
        start = mask(30, 5, 6, 7, 14)
        subset = exchange(replace(objective, ner_term=term), candidates, start, groups)[0] > 0
        assert subset[5:10].sum() == 3
        assert bool(subset[9])
        assert subset[10:14].sum() == 1

    def test_half_as_many_are_exchanged_after_a_failure_the_largest_gradients_first(self):
        """With a large support, the CMD is the distance of the means, and that of the pool is 0.

        The selected nodes 1 and 2 are at 3 and 5, the others at -6: the mean is 4, and -6 if both
        are exchanged. If one is, it is node 2, whose gradient is larger, and the mean is -1.5.
        """
        z = torch.tensor([[[0.0], [3.0], [5.0], [-6.0], [-6.0]]])
        objective = SelectionObjective(z, mask(5), mask(5, 0), torch.zeros(1, 5), 1e3)
        for steps, expected in ((1, [1, 2]), (2, [1, 3]), (50, [1, 3])):
            subset = exchange(objective, mask(5, 1, 2, 3, 4), mask(5, 1, 2), steps=steps)
            assert subset.nonzero()[:, 1].tolist() == expected

    def test_groups_may_have_any_code(self):
        """More groups than candidates, in one fit also among the padding."""
        z, labeled = draw(0, 2, 30, 2), mask(30, 0, 1).expand(2, -1)
        objective = SelectionObjective(z, labeled, ~labeled, torch.zeros(2, 30))
        candidates = torch.cat([mask(30, 5, 6), mask(30, 7, 8, 9)])
        groups = torch.full((2, 30), 9)
        groups[:, 10:] = 40
        start = torch.cat([mask(30, 5), mask(30, 7)])
        assert exchange(objective, candidates, start, groups).sum(1).tolist() == [1, 1]

    def test_runs_with_different_numbers_of_candidates_are_independent(self):
        z, gain = draw(0, 3, 30, 2), draw(1, 3, 30).abs() / 10
        labeled = mask(30, 0, 1).expand(3, -1)
        candidates = torch.cat([mask(30, *range(5, 15)), mask(30, 20, 21, 22), mask(30)])
        start = torch.cat([self.start, mask(30, 20, 21), mask(30)])
        objective = SelectionObjective(z, labeled, ~labeled, gain)
        together = exchange(objective, candidates, start)
        for run in range(3):
            part = slice(run, run + 1)
            own = SelectionObjective(z[part], labeled[part], ~labeled[part], gain[part])
            assert torch.equal(together[part], exchange(own, candidates[part], start[part]))
        assert together.sum(1).tolist() == [4, 2, 0]


class TestRelaxedSelection:
    budget = torch.tensor([4.0])

    @pytest.mark.parametrize("gain", [0.0, 0.05])
    def test_it_is_close_to_the_best_subset(self, gain):
        """Of all subsets of four out of ten candidates, for several graphs.

        The relaxation is no worse than the best one. Rounded to four nodes, it gains most of the
        difference between the mean and the best subset.
        """
        shares = []
        for seed in range(8):
            objective, candidates = objective_of(seed, gain)
            values = values_of_subsets(objective)
            q = relaxed_selection(objective, candidates, self.budget)
            assert float(objective.value(q)) <= float(values.min()) + 0.005
            rounded = objective.value(select_top(q, q, candidates, self.budget))
            shares.append(float((values.mean() - rounded) / (values.mean() - values.min())))
        assert sum(shares) / len(shares) > 0.6, shares

    def test_large_ner_terms_are_selected(self):
        objective, candidates = objective_of(0)
        term = torch.zeros(1, 30)
        term[0, [6, 9, 13]] = 100.0
        budget = torch.tensor([3.0])
        q = relaxed_selection(replace(objective, ner_term=term), candidates, budget)
        chosen = select_top(q, q, candidates, budget)
        assert chosen.nonzero()[:, 1].tolist() == [6, 9, 13]

    def test_weights_are_between_zero_and_one_and_sum_to_the_budget(self):
        objective, candidates = objective_of(1, 0.1)
        q = relaxed_selection(objective, candidates, self.budget)
        assert float(q.min()) >= 0
        assert float(q.max()) <= 1
        assert float(q.sum()) == pytest.approx(4, abs=1e-3)
        assert not q[~candidates].any()

    def test_runs_with_different_numbers_of_candidates_are_independent(self):
        z, gain = draw(0, 3, 30, 2), draw(1, 3, 30).abs() / 10
        labeled = mask(30, 0, 1).expand(3, -1)
        candidates = torch.cat([mask(30, *range(5, 15)), mask(30, 20, 21, 22), mask(30)])
        budget = torch.tensor([4.0, 2.0, 0.0])
        together = relaxed_selection(
            SelectionObjective(z, labeled, ~labeled, gain), candidates, budget
        )
        for run in range(3):
            part = slice(run, run + 1)
            alone = relaxed_selection(
                SelectionObjective(z[part], labeled[part], ~labeled[part], gain[part]),
                candidates[part],
                budget[part],
            )
            torch.testing.assert_close(together[part], alone, atol=1e-4, rtol=1e-4)
        assert not together[2].any()

    @pytest.mark.parametrize(
        ("nodes", "budget", "weight"), [((5,), 1.0, 1.0), ((5, 6, 7, 8), 1.0, 0.25), ((5, 6), 3, 1)]
    )
    def test_without_steps_the_budget_is_divided_equally(self, nodes, budget, weight):
        objective, _ = objective_of(0)
        candidates = mask(30, *nodes)
        q = relaxed_selection(objective, candidates, torch.tensor([budget]), steps=0)
        torch.testing.assert_close(q, weight * candidates.float())

    @pytest.mark.parametrize(
        ("options", "change"),
        [
            ({"steps": 1}, 0.1),
            ({"steps": 4}, 0.1 * (1 + 3 / 4 + 2 / 4 + 1 / 4)),
            ({"steps": 4, "lr": 0.02}, 0.02 * 2.5),
            ({"lr": 0.001}, 0.001 * 25.5),  # fifty steps: 1 + 49/50 + … + 1/50
        ],
    )
    def test_steps_decrease_linearly(self, options, change):
        """Without a CMD, the gradient is constant: minus the NER term, up to its mean."""
        term, candidates = torch.zeros(1, 8), mask(8, 2, 3, 4, 5)
        term[0, 2:6] = torch.tensor([3.0, 3.0, 1.0, 1.0])
        labeled = mask(8, 0, 1)
        objective = SelectionObjective(torch.ones(1, 8, 2), labeled, ~labeled, term)
        q = relaxed_selection(objective, candidates, torch.tensor([2.0]), **options)[0, 2:6]
        expected = 0.5 + change * torch.tensor([1.0, 1, -1, -1])
        torch.testing.assert_close(q, expected, atol=2e-5, rtol=0)

    def test_equal_candidates_keep_equal_weights(self):
        """The gradient is the same for all of them, so nothing changes."""
        objective, candidates = objective_of(0)
        equal = replace(objective, z=torch.ones(1, 30, 2), ner_term=torch.zeros(1, 30))
        q = relaxed_selection(equal, candidates, self.budget)
        torch.testing.assert_close(q, 0.4 * candidates.float(), atol=1e-6, rtol=0)


class TestProjection:
    def test_it_subtracts_the_same_from_all_entries_that_stay_positive(self):
        q = torch.tensor([[0.9, 0.8, 0.1, -0.5, 7.0]])
        inside = torch.tensor([[True, True, True, True, False]])
        projected = project_to_budget(q, inside, torch.tensor([1.0]))
        expected = torch.tensor([[0.55, 0.45, 0.0, 0.0, 0.0]])
        torch.testing.assert_close(projected, expected, atol=1e-5, rtol=0)

    def test_it_adds_the_same_to_all_entries_that_stay_below_one(self):
        q = torch.tensor([[0.9, 0.2, 0.1]])
        projected = project_to_budget(q, everyone(3), torch.tensor([2.0]))
        expected = torch.tensor([[1.0, 0.55, 0.45]])
        torch.testing.assert_close(projected, expected, atol=1e-5, rtol=0)

    @pytest.mark.parametrize("budget", [2.0, 2.5, 5.0])
    def test_a_budget_of_all_entries_or_more_gives_ones(self, budget):
        q, inside = torch.tensor([[0.2, 0.0, 0.3]]), torch.tensor([[True, True, False]])
        projected = project_to_budget(q, inside, torch.tensor([budget]))
        torch.testing.assert_close(projected, torch.tensor([[1.0, 1.0, 0.0]]))


class TestSelectTop:
    score = torch.tensor([[1.0, 1.0, 0.4, 0.9]])
    confidence = torch.tensor([[0.6, 0.7, 0.99, 0.8]])

    def test_the_largest_scores_are_selected(self):
        chosen = select_top(self.score, self.confidence, everyone(4), torch.tensor([3]))
        assert chosen.tolist() == [[True, True, False, True]]
        chosen = select_top(self.score, self.confidence, mask(4, 0, 2), torch.tensor([3]))
        assert chosen.tolist() == [[True, False, True, False]]

    def test_ties_are_broken_by_confidence(self):
        chosen = select_top(self.score, self.confidence, everyone(4), torch.tensor([1]))
        assert chosen.tolist() == [[False, True, False, False]]

    @pytest.mark.parametrize(
        ("difference", "expected"), [(0.0002, [True, False]), (0.002, [False, True])]
    )
    def test_only_differences_below_a_thousandth_are_ties(self, difference, expected):
        score = torch.tensor([[0.5, 0.5 + difference]])
        chosen = select_top(score, torch.tensor([[0.9, 0.8]]), everyone(2), torch.tensor([1]))
        assert chosen.tolist() == [expected]

    def test_confidence_never_outweighs_the_score(self):
        score = torch.full((1, 20), 0.5)
        score[0, 7] = 0.502
        chosen = select_top(score, 1 - score, everyone(20), torch.tensor([1]))
        assert chosen.nonzero()[:, 1].tolist() == [7]

    def test_each_class_has_its_own_budget(self):
        labels = torch.tensor([[0, 0, 1, 0]])
        budget = torch.tensor([[1, 3]])
        chosen = select_top(self.score, self.confidence, everyone(4), budget, labels)
        assert chosen.tolist() == [[False, True, True, False]]

    def test_ties_are_broken_exactly_in_large_sets(self):
        n = 50_000
        confidence = torch.linspace(0.5, 0.500001, n, dtype=torch.float64)[None]
        for count in range(100, 110):
            budget = torch.tensor([count])
            chosen = select_top(torch.ones(1, n), confidence, everyone(n), budget)
            assert torch.equal(chosen.nonzero()[:, 1], torch.arange(n - count, n))


def test_a_penalty_bounds_the_sum_from_above_only():
    z = draw(0, 1, 30, 2)
    labeled, candidates = mask(30, *range(4)), mask(30, *range(4, 24))
    budget = torch.tensor([5.0])
    nothing = torch.zeros(1, 30)
    objective = SelectionObjective(z, labeled, ~labeled, nothing)
    fixed = relaxed_selection(objective, candidates, budget)
    bounded = relaxed_selection(objective, candidates, budget, penalty=True)
    assert float(fixed.sum()) == pytest.approx(5, abs=1e-3)
    assert abs(float(bounded.sum()) - 5) > 1e-2
    greedy = SelectionObjective(z, labeled, ~labeled, 100 * candidates.float())
    assert float(relaxed_selection(greedy, candidates, budget, penalty=True).sum()) > 19
