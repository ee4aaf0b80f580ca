"""Samplers: the bias that each of them has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.datasets import load, synthetic
from dcgst.datasets.planetoid import released_blocks
from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.shift import cmd, ppr_distances, ppr_push, ppr_rows
from dcgst.splits import SAMPLERS, Request, sample, samplers
from dcgst.splits import samplers as released
from dcgst.splits.samplers import PROTOCOL, PUSH_TOLERANCES, closest_by_push, sample_released


def frequencies(sampler: str, graph: Graph, draws: int) -> np.ndarray:
    """How often each node is drawn as the only label of its class."""
    nodes = SAMPLERS[sampler](Request(graph, 1, None, range(draws), seed=0))
    return np.bincount(np.concatenate(nodes), minlength=graph.num_nodes) / draws


def test_degree_sampling_is_proportional_to_the_degree_and_uniform_is_not():
    """Degrees 1, 2, 5 and 0 in class 0; eight nodes of class 1 are the other ends."""
    edges = [[0, 1, 1, 2, 2, 2, 2, 2], range(4, 12)]
    graph = Graph.from_edges(edges, np.eye(12), [0] * 4 + [1] * 8)
    np.testing.assert_allclose(
        frequencies("degree", graph, 4000)[:4], [1 / 8, 2 / 8, 5 / 8, 0], atol=0.04
    )
    uniform = frequencies("uniform", graph, 4000)
    np.testing.assert_allclose(uniform[:4], 1 / 4, atol=0.04)
    np.testing.assert_allclose(uniform[4:], 1 / 8, atol=0.03)


def test_ppr_s_labels_are_close_together(shifted):
    def spread(sampler):
        split = sample(shifted, sampler, per_class=5, runs=10)
        x = np.array(shifted.features)
        return np.mean([x[t & (shifted.labels == 0)].std(axis=0).mean() for t in split.train])

    assert spread("ppr-s") < 0.9 * spread("uniform")


def test_ppr_s_draws_the_roots_of_the_classes_independently():
    graph = synthetic(300, 3, labels_per_class=2)
    split = sample(graph, "ppr-s", per_class=1, runs=20)
    ranks = np.array([np.flatnonzero(train) % 100 for train in split.train])
    assert (np.ptp(ranks, axis=1) > 20).sum() > 10


def test_on_large_graphs_ppr_s_labels_are_close_together_too(monkeypatch):
    graph = synthetic(400, 3, seed=4)

    def width(split):
        """Nodes of a class are numbered along an arc."""
        return np.mean([np.ptp(np.flatnonzero(t & (graph.labels == 0))) for t in split.train])

    uniform, exact = (sample(graph, s, per_class=6, runs=5) for s in ("uniform", "ppr-s"))
    monkeypatch.setattr(samplers, "EXACT_UP_TO", 0)
    pushed = sample(graph, "ppr-s", per_class=6, runs=5)
    assert width(exact) < 0.5 * width(uniform)
    assert width(pushed) < 0.5 * width(uniform)


def test_graphs_of_up_to_the_limit_compare_exact_rows(monkeypatch):
    graph = synthetic(60, 3, seed=4)
    pushes = []
    monkeypatch.setattr(samplers, "closest_by_push", lambda _, root, *__: pushes.append(root) or [])
    for limit, count in ((60, 0), (59, 3)):
        monkeypatch.setattr(samplers, "EXACT_UP_TO", limit)
        SAMPLERS["ppr-s"](Request(graph, 2, None, range(1), seed=0))
        assert len(pushes) == count


class TestClosestByPush:
    """Two paths that are not connected: nodes 0 to 5 and nodes 6 to 11, all of one class."""

    path = np.stack([np.arange(11), np.arange(1, 12)])
    graph = Graph.from_edges(path[:, path[0] != 5], np.eye(12), [0] * 12)
    members = np.arange(12)

    def closest(self, count, root, seed=0):
        request = Request(self.graph, count, None, [0], seed)
        return closest_by_push(request, root, self.members, 0.1).tolist()

    def by_pagerank(self, root):
        """All nodes of the root's path, largest PageRank of a walk from the root first."""
        loops = self.graph.adjacency.toarray() + np.eye(12)
        walk = loops / loops.sum(axis=1, keepdims=True)
        score = np.linalg.inv(np.eye(12) - 0.9 * walk)[root]
        return [int(node) for node in np.argsort(-score) if score[node] > 1e-9]

    @pytest.mark.parametrize("root", [2, 8])
    def test_reached_members_come_first_in_order_of_pagerank(self, root):
        assert self.closest(4, root) == self.by_pagerank(root)[:4]
        assert self.closest(6, root) == self.by_pagerank(root)
        assert self.closest(9, root)[:6] == self.by_pagerank(root)

    @pytest.mark.parametrize("root", [2, 8])
    def test_the_rest_is_drawn_from_the_members_that_are_not_reached(self, root):
        other_path = set(range(12)) - set(self.by_pagerank(root))
        for seed in range(10):
            found = self.closest(9, root, seed)
            assert len(set(found)) == 9
            assert set(found[6:]) < other_path

    @pytest.mark.parametrize("root", [2, 8])
    def test_the_rest_depends_on_seed_and_root_only(self, root):
        draws = [tuple(self.closest(9, root, seed)[6:]) for seed in range(10)]
        assert draws == [tuple(self.closest(9, root, seed)[6:]) for seed in range(10)]
        assert len(set(draws)) > 3
        by_root = {tuple(self.closest(9, root)[6:]) for root in range(6)}
        assert len(by_root) > 1

    def test_distant_members_are_reached_with_a_smaller_tolerance(self):
        path = np.stack([np.arange(299), np.arange(1, 300)])
        graph = Graph.from_edges(path, np.ones((300, 1)), [0] * 300)
        coarse = ppr_push(graph.adjacency, 0, 0.1, PUSH_TOLERANCES[0])
        assert np.count_nonzero(coarse) < 25
        request = Request(graph, 25, None, [0], 0)
        found = closest_by_push(request, 0, np.arange(300), 0.1)
        assert sorted(found.tolist()) == list(range(25))

    def test_only_members_are_returned(self):
        request = Request(self.graph, 3, None, [0], 0)
        found = closest_by_push(request, 2, np.array([1, 4, 5, 7]), 0.1)
        assert sorted(found.tolist()) == [1, 4, 5]

    def test_sampling_fills_every_class(self, monkeypatch):
        graph = Graph.from_edges([[0], [1]], np.eye(12), np.repeat([0, 1], 6))
        monkeypatch.setattr(samplers, "EXACT_UP_TO", 0)
        split = sample(graph, "ppr-s", per_class=4, runs=2)
        for train in split.train:
            assert np.bincount(graph.labels[train]).tolist() == [4, 4]


def test_exact_ppr_s_takes_the_members_closest_to_the_root(shifted):
    """One of the labels is the root: the others are the members closest to it."""
    (nodes,) = SAMPLERS["ppr-s"](Request(shifted, 6, None, [0], seed=0))
    for label, block in enumerate(nodes.reshape(3, 6)):
        members = np.flatnonzero(shifted.labels == label)
        rows = ppr_rows(shifted.adjacency, members, 0.1)
        root = rows[members == block[0]]
        distances = np.linalg.norm(rows - root, axis=1)
        assert members[np.argsort(distances, kind="stable")[:6]].tolist() == block.tolist()


def test_every_sampler_is_documented():
    assert all(sampler.__doc__ for sampler in SAMPLERS.values())


@pytest.mark.parametrize(
    ("name", "goal", "classes", "others"),
    [("cora", 0.95, 2, None), ("citeseer", 0.90, 2, None), ("pubmed", 0.99, 1, 60)],
)
def test_ppr_s_reproduces_the_released_blocks_from_their_roots(
    name, goal, classes, others, need_data, rng
):
    """For two classes; on PubMed for one and against some of the other members, to save time."""
    need_data(name)
    graph, blocks = load(name), released_blocks(name).reshape(-1, 20)
    first, teleport = PROTOCOL[name, graph.num_nodes]
    for label in range(classes):
        own = blocks[graph.labels[blocks[:, 0]] == label]
        members = np.flatnonzero(graph.labels[:first] == label)
        if others:
            own = own[:2]
            members = np.union1d(own, rng.choice(members, others, replace=False))
        distances = ppr_distances(graph.adjacency, own[:, 0], members, teleport)
        closest = members[np.argsort(distances, axis=1, kind="stable")[:, :20]]
        shared = [np.isin(*pair).mean() for pair in zip(own, closest, strict=True)]
        assert len(shared) >= (2 if others else 30)
        assert np.mean(shared) >= goal


def test_released_labels_are_the_first_of_each_block(need_data):
    need_data("cora")
    graph = load("cora")
    split = sample(graph, "released", rate=0.02, runs=2, first_run=10)
    np.testing.assert_array_equal(
        np.flatnonzero(split.train[0]), np.sort(released_blocks("cora")[10, :, :8].reshape(-1))
    )
    with pytest.raises(InputError, match="released seeds have 20 labels per class, 21 were"):
        sample(graph, "released", per_class=21)
    with pytest.raises(InputError, match="run 1000 was requested"):
        sample(graph, "released", per_class=2, first_run=1000, runs=1)


def test_released_labels_are_farther_from_the_pool_than_uniform_ones(need_data):
    need_data("cora")
    graph = load("cora")
    x = torch.tensor(graph.adjacency @ graph.features.toarray())

    def shift(sampler):
        split = sample(graph, sampler, per_class=20, runs=5)
        pairs = zip(split.train, split.pool, strict=True)
        return np.mean([float(cmd(x[train], x[pool])) for train, pool in pairs])

    assert shift("released") > shift("uniform")


def test_constants_on_which_every_sample_depends():
    assert samplers.EXACT_UP_TO == 20_000
    assert samplers.TELEPORT == 0.1
    assert PUSH_TOLERANCES == (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


class TestReleasedSeeds:
    """Two runs of three classes with four seeds each, numbered from 0."""

    graph = synthetic(60, 3, seed=4, name="cora")

    def sample(self, monkeypatch, per_class, runs):
        blocks = np.arange(24).reshape(2, 3, 4)
        monkeypatch.setattr(released, "released_blocks", lambda _: blocks)
        found = sample_released(Request(self.graph, per_class, None, runs, seed=0))
        return [nodes.tolist() for nodes in found]

    def test_the_first_seeds_of_each_class_are_used(self, monkeypatch):
        first, second = self.sample(monkeypatch, 2, range(2))
        assert (first, second) == ([0, 1, 4, 5, 8, 9], [12, 13, 16, 17, 20, 21])
        assert self.sample(monkeypatch, 4, [1]) == [list(range(12, 24))]

    def test_more_runs_or_seeds_than_there_are_is_an_error(self, monkeypatch):
        with pytest.raises(InputError, match=r"have runs 0 … 1, run 2 was requested"):
            self.sample(monkeypatch, 2, range(1, 3))
        with pytest.raises(InputError, match="have 4 labels per class, 5 were requested"):
            self.sample(monkeypatch, 5, [0])
