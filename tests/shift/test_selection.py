"""Selection: ranks and quotas by hand, q against the best subset found by enumeration."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from dcgst.shift import cmd
from dcgst.shift.cmd import WeightedCMD, farthest
from dcgst.shift.selection import Objective, choose, optimise, project, ranks


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mask(n: int, *nodes: int) -> torch.Tensor:
    result = torch.zeros(1, n, dtype=torch.bool)
    result[0, list(nodes)] = True
    return result


class TestRanks:
    def test_by_hand(self):
        value = torch.tensor([[0.1, 0.9, 0.5, 0.7]])
        everyone = torch.ones(1, 4, dtype=torch.bool)
        assert ranks(value, everyone).tolist() == [[3, 0, 2, 1]]
        groups = torch.tensor([[0, 0, 1, 1]])
        assert ranks(value, everyone, groups).tolist() == [[1, 0, 1, 0]]

    def test_outsiders_neither_count_nor_rank(self):
        value = torch.tensor([[0.1, 0.9, 0.5, 0.7]])
        assert ranks(value, mask(4, 0, 2)).tolist() == [[1, 4, 0, 4]]

    def test_equal_values_keep_the_order_of_nodes(self):
        assert ranks(torch.ones(1, 3), torch.ones(1, 3, dtype=torch.bool)).tolist() == [[0, 1, 2]]

    def test_runs_are_independent(self):
        value, members = draw(0, 3, 20), draw(1, 3, 20) > 0
        groups = (draw(2, 3, 20) > 0).long()
        together = ranks(value, members, groups)
        for run in range(3):
            alone = ranks(value[run, None], members[run, None], groups[run, None])
            assert torch.equal(alone[0], together[run])


class TestWeightedCMD:
    @pytest.mark.parametrize("support", [None, 1.0])
    def test_equals_cmd(self, support):
        z = draw(0, 2, 12, 3).double()
        pool, labeled = torch.zeros(2, 12), torch.zeros(2, 12)
        pool[:, 3:], labeled[:, :3] = 1, 1
        nodes = torch.tensor([[3, 5, 7, 9], [4, 6, 8, 10]])
        weights = draw(1, 2, 4).sigmoid().double()
        distance = WeightedCMD(
            z, nodes, target=pool.double(), fixed=labeled.double(), support=support
        )
        whole = labeled.double().scatter(1, nodes, weights)
        expected = cmd(z, z, whole, pool.double(), support=support)
        torch.testing.assert_close(distance(weights), expected)

    def test_gradient(self):
        z = draw(0, 1, 8, 2).double()
        pool, labeled = torch.ones(1, 8).double(), torch.zeros(1, 8).double()
        labeled[0, 0] = 1
        distance = WeightedCMD(z, torch.tensor([[1, 2, 3]]), target=pool, fixed=labeled)
        weights = torch.tensor([[0.2, 0.5, 0.9]], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(distance, weights)


class TestOptimise:
    def problem(self, seed: int, gain: float = 0.0):
        z = draw(seed, 1, 30, 2)
        labeled, found = mask(30, 0, 1), mask(30, *range(5, 15))
        return Objective(z, labeled, ~labeled, gain * draw(seed + 50, 1, 30).abs()), found

    @pytest.mark.parametrize("constraint", ["projection", "penalty"])
    @pytest.mark.parametrize("gain", [0.0, 0.05])
    def test_nearly_reaches_the_best_subset(self, gain, constraint):
        """Of all subsets of four out of ten: q is no worse than the best one, and the four largest
        make up most of the way from an average subset to it.
        """
        ways = []
        for seed in range(8):
            objective, found = self.problem(seed, gain)
            budget = torch.tensor([4.0])
            every = torch.cat(
                [objective.value(mask(30, *four)) for four in combinations(range(5, 15), 4)]
            )
            q = optimise(objective, found, budget, constraint=constraint)
            relaxed = objective.value(q)
            if constraint == "projection":
                assert float(relaxed) <= float(every.min()) + 0.005
            ours = objective.value(choose(q, q, found, budget))
            ways.append(float((every.mean() - ours) / (every.mean() - every.min())))
        assert sum(ways) / len(ways) > 0.6, ways

    def test_is_better_than_chance_and_than_the_first(self):
        objective, found = self.problem(3)
        q = optimise(objective, found, torch.tensor([4.0]))
        ours = objective.value(choose(q, q, found, torch.tensor([4.0])))
        assert ours < objective.value(mask(30, 5, 6, 7, 8))

    def test_with_ner_alone_takes_those_that_tell_most(self):
        objective, found = self.problem(0)
        gain = torch.zeros(1, 30)
        gain[0, [6, 9, 13]] = 100.0
        q = optimise(
            Objective(objective.hidden, objective.labeled, objective.pool, gain),
            found,
            torch.tensor([3.0]),
        )
        assert choose(q, q, found, torch.tensor([3.0])).nonzero()[:, 1].tolist() == [6, 9, 13]

    def test_q_keeps_its_bounds(self):
        objective, found = self.problem(1, 0.1)
        q = optimise(objective, found, torch.tensor([4.0]))
        assert float(q.min()) >= 0
        assert float(q.max()) <= 1
        assert float(q.sum()) == pytest.approx(4, abs=1e-3)
        assert not q[~found].any()

    def test_runs_with_different_candidates(self):
        """Ragged candidate sets give each run what it gets alone, and none is fine too."""
        z, gain = draw(0, 3, 30, 2), draw(1, 3, 30).abs() / 10
        labeled = mask(30, 0, 1).expand(3, -1)
        found = torch.cat([mask(30, *range(5, 15)), mask(30, 20, 21, 22), mask(30)])
        budget = torch.tensor([4.0, 2.0, 0.0])
        together = optimise(Objective(z, labeled, ~labeled, gain), found, budget)
        for run in range(3):
            part = slice(run, run + 1)
            alone = optimise(
                Objective(z[part], labeled[part], ~labeled[part], gain[part]),
                found[part],
                budget[part],
            )
            torch.testing.assert_close(together[part], alone, atol=1e-4, rtol=1e-4)
        assert not together[2].any()


def test_projection_is_the_nearest_point():
    q = torch.tensor([[0.9, 0.8, 0.1, -0.5, 7.0]])
    inside = torch.tensor([[True, True, True, True, False]])
    got = project(q, inside, torch.tensor([1.0]))
    # 0.9 - 0.35, 0.8 - 0.35, the others 0: any other shift has another sum
    torch.testing.assert_close(got, torch.tensor([[0.55, 0.45, 0.0, 0.0, 0.0]]), atol=1e-5, rtol=0)


def test_projection_onto_more_than_there_is_takes_all():
    got = project(torch.tensor([[0.2, 0.7]]), torch.ones(1, 2).bool(), torch.tensor([5.0]))
    torch.testing.assert_close(got, torch.ones(1, 2))


class TestChoose:
    q = torch.tensor([[1.0, 1.0, 0.4, 0.9]])
    confidence = torch.tensor([[0.6, 0.7, 0.99, 0.8]])
    everyone = torch.ones(1, 4, dtype=torch.bool)

    def test_ties_go_to_the_more_confident(self):
        got = choose(self.q, self.confidence, self.everyone, torch.tensor([1]))
        assert got.tolist() == [[False, True, False, False]]

    def test_quotas_by_class(self):
        labels = torch.tensor([[0, 0, 1, 0]])
        got = choose(self.q, self.confidence, self.everyone, torch.tensor([[1, 3]]), labels)
        assert got.tolist() == [[False, True, True, False]]

    def test_ties_are_broken_exactly_in_large_sets(self):
        """Among many nodes with equal q the order by confidence is exact."""
        n = 50_000
        confidence = torch.linspace(0.5, 0.500001, n, dtype=torch.float64)[None]
        got = choose(torch.ones(1, n), confidence, torch.ones(1, n).bool(), torch.tensor([100]))
        assert torch.equal(got.nonzero()[:, 1], torch.arange(n - 100, n))


def test_farthest_by_hand():
    # Labeled at 0 and 1; pool at 2, 5 and 9: mean of labeled .5, of pool 5.33.
    z = torch.tensor([[[0.0], [1.0], [2.0], [9.0], [5.0]]])
    labeled = mask(5, 0, 1)
    assert farthest(z, labeled, ~labeled, 2).tolist() == [[0, 3]]
    assert farthest(z, labeled, ~labeled, 4).tolist() == [[0, 1, 3, 4]]
    # as many labeled nodes as there are, the rest from the pool; half would be three
    assert sorted(farthest(z, labeled, ~labeled, 5)[0].tolist()) == [0, 1, 2, 3, 4]
