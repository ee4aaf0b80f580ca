"""Splits: disjoint, reproducible run by run, biased where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from dcgst import splits
from dcgst.datasets import load, synthetic
from dcgst.datasets.seeds import released_blocks
from dcgst.errors import InputError
from dcgst.shift import cmd, ppr_distances
from dcgst.splits import PROTOCOL, SAMPLERS, Split, labels_per_class, sample
from dcgst.transforms import SampleLabels

OWN = ("uniform", "degree", "ppr-s")


@pytest.mark.parametrize("sampler", OWN)
def test_every_sampler_labels_so_many_of_each_class(sampler, shifted):
    split = sample(shifted, sampler, per_class=5, runs=3)
    for train in split.train:
        assert np.bincount(shifted.labels[train]).tolist() == [5, 5, 5]
    assert not (split.train & split.val).any()
    assert (split.train | split.val | split.pool).all()


@pytest.mark.parametrize("sampler", OWN)
def test_a_run_is_the_same_alone_or_among_others(sampler, shifted):
    many = sample(shifted, sampler, per_class=3, runs=4)
    alone = sample(shifted, sampler, per_class=3, runs=1, first_run=2)
    np.testing.assert_array_equal(many[2].train, alone.train)
    np.testing.assert_array_equal(many[2].val, alone.val)
    assert alone.runs == (2,)
    assert not np.array_equal(many.train[0], many.train[1])


def test_a_different_seed_gives_different_runs(shifted):
    first, second = (sample(shifted, per_class=3, seed=s).train for s in (0, 1))
    assert not np.array_equal(first, second)


def test_ppr_s_labels_huddle_and_degree_labels_are_popular(shifted):
    def spread(sampler):
        split = sample(shifted, sampler, per_class=5, runs=10)
        x = np.array(shifted.features)
        return np.mean([x[t & (shifted.labels == 0)].std(axis=0).mean() for t in split.train])

    assert spread("ppr-s") < 0.9 * spread("uniform")
    popular, fair = (
        np.mean([shifted.degrees[t].mean() for t in sample(shifted, s, per_class=5).train])
        for s in ("degree", "uniform")
    )
    assert popular > fair + 0.5


def test_pushed_ppr_s_stays_close_to_the_exact_one(monkeypatch):
    graph = synthetic(400, 3, seed=4)
    exact = sample(graph, "ppr-s", per_class=6, runs=5)
    monkeypatch.setattr(splits, "EXACT_UP_TO", 0)
    pushed = sample(graph, "ppr-s", per_class=6, runs=5)
    positions = np.arange(graph.num_nodes)

    def width(split):
        return np.mean([np.ptp(positions[t & (graph.labels == 0)]) for t in split.train])

    assert width(pushed) < 0.5 * width(sample(graph, per_class=6, runs=5))
    assert width(exact) < 0.5 * width(sample(graph, per_class=6, runs=5))


def test_pushed_ppr_s_fills_up_where_the_class_cannot_be_reached(monkeypatch):
    from dcgst.graph import Graph

    graph = Graph.from_edges([[0], [1]], np.eye(12), np.repeat([0, 1], 6))
    monkeypatch.setattr(splits, "EXACT_UP_TO", 0)
    split = sample(graph, "ppr-s", per_class=4, runs=2)
    assert split.train.sum(axis=1).tolist() == [8, 8]


def test_the_papers_label_rates():
    def count(nodes, classes, rate):
        graph = synthetic(nodes, classes, features=2, degree=1, labels_per_class=1)
        return labels_per_class(graph, rate)

    assert [count(2708, 7, r) for r in (0.005, 0.01, 0.02, 0.03, 0.05)] == [2, 4, 8, 12, 19]
    assert [count(3327, 6, r) for r in (0.005, 0.01, 0.02, 0.03)] == [3, 6, 11, 17]
    assert [count(19717, 3, r) for r in (0.0003, 0.0005, 0.001)] == [2, 3, 7]


def test_validation_is_a_share_of_all_nodes_and_never_unlabeled(shifted):
    known = shifted.with_labels(np.where(np.arange(240) % 2 == 0, shifted.labels, -1))
    split = sample(known, per_class=3, val_rate=0.1)
    assert (split.val.sum(axis=1) == 24).all()
    assert (known.labels[split.val.any(axis=0)] >= 0).all()
    assert split.pool[0, 1]
    assert not split.test(known)[0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": "fair"}, "unknown sampler 'fair'"),
        ({}, "say how many labels"),
        ({"per_class": 0}, "from 1 on"),
        ({"per_class": 3, "rate": 0.1}, "not both"),
        ({"rate": 2.0}, "between 0 and 1"),
        ({"per_class": 100}, "class '0' has 80 nodes"),
        ({"per_class": 2.5}, "per_class must be a whole number"),
        ({"sampler": "official", "rate": 0.1}, "give no number"),
        ({"per_class": 3, "runs": 0}, "runs must be 1 or more"),
        ({"per_class": 3, "seed": -1}, "seed must not be negative"),
        ({"per_class": 3, "val_rate": -0.1}, "val_rate in 0"),
        ({"per_class": 3, "sampler": "released"}, "no released seeds for 'synthetic'"),
    ],
)
def test_bad_requests(arguments, message, shifted):
    with pytest.raises(InputError, match=message):
        sample(shifted, **arguments)


def test_official_splits(shifted):
    split = sample(shifted, "official", runs=2)
    np.testing.assert_array_equal(split.train[1], shifted.masks["train"])
    bare = shifted.with_labels(shifted.labels)
    object.__setattr__(bare, "masks", {})
    with pytest.raises(InputError, match="no split of its own"):
        sample(bare, "official")


def test_a_split_refuses_overlap_and_emptiness():
    train = np.array([True, False, False])
    with pytest.raises(InputError, match="node 0 is in more than one set"):
        Split.of(train, val=train)
    with pytest.raises(InputError, match="no labels to train on"):
        Split.of(np.zeros(3, bool))


def test_ppr_s_roots_are_drawn_independently_in_each_class():
    graph = synthetic(300, 3, labels_per_class=2)
    split = sample(graph, "ppr-s", per_class=1, runs=20)
    ranks = np.array([np.flatnonzero(train) % 100 for train in split.train])
    assert (np.ptp(ranks, axis=1) > 20).sum() > 10


def test_under_a_rate_small_classes_give_half_of_what_they_have():
    graph = synthetic(210, 3, balance=0.2, labels_per_class=2)
    for sampler in OWN:
        counts = np.bincount(graph.labels[sample(graph, sampler, rate=0.2).train[0]])
        assert counts.tolist() == [14, 14, np.bincount(graph.labels)[2] // 2]


def test_official_test_nodes_are_those_of_the_data(need_data):
    need_data("cora")
    graph = load("cora")
    split = sample(graph, "official", runs=2)
    assert split.test(graph).sum(axis=1).tolist() == [1000, 1000]
    assert split.pool.sum(axis=1).tolist() == [2068, 2068]


def test_parts_of_a_split():
    split = Split.of(np.eye(3, dtype=bool))
    assert len(split) == 3
    assert split[-1].runs == split[np.int64(2)].runs == (2,)
    assert split[1:].runs == (1, 2)
    with pytest.raises(IndexError):
        split[3]


def test_as_a_pyg_transform(shifted):
    data = SampleLabels("ppr-s", per_class=3)(shifted.to_pyg())
    split = sample(shifted, "ppr-s", per_class=3, runs=1)
    np.testing.assert_array_equal(data.train_mask.numpy(), split.train[0])
    again = sample(shifted.to_pyg(), "ppr-s", per_class=3, runs=1)
    np.testing.assert_array_equal(again.train, split.train)
    assert repr(split) == "Split(runs 0 … 0: 9 train, 1 validation, 230 pool nodes)"
    assert SampleLabels("uniform", per_class=3, runs=2)(shifted.to_pyg()).test_mask.shape == (
        240,
        2,
    )


def test_every_sampler_is_documented():
    assert all(sampler.__doc__ for sampler in SAMPLERS.values())


@pytest.mark.parametrize(
    ("name", "goal", "classes"), [("cora", 0.95, 7), ("citeseer", 0.90, 6), ("pubmed", 0.99, 1)]
)
def test_ppr_s_rebuilds_the_released_blocks(name, goal, classes, need_data):
    """Given the root; on PubMed one class only, for time."""
    need_data(name)
    graph, blocks = load(name), released_blocks(name).reshape(-1, 20)
    first, teleport = PROTOCOL[name, graph.num_nodes]
    found = total = 0
    for label in range(classes):
        own = blocks[graph.labels[blocks[:, 0]] == label]
        members = np.flatnonzero(graph.labels[:first] == label)
        distances = ppr_distances(graph.adjacency, own[:, 0], members, teleport)
        for block, row in zip(own, distances, strict=True):
            found += np.isin(block, members[np.argsort(row, kind="stable")[:20]]).sum()
        total += own.size
    assert total == 30 * classes * 20
    assert found / total >= goal


def test_released_seeds(need_data):
    need_data("cora")
    graph = load("cora")
    split = sample(graph, "released", rate=0.02, runs=2, first_run=10)
    np.testing.assert_array_equal(
        np.flatnonzero(split.train[0]), np.sort(released_blocks("cora")[10, :, :8].reshape(-1))
    )
    with pytest.raises(InputError, match="hold 20 labels per class"):
        sample(graph, "released", per_class=21)
    with pytest.raises(InputError, match="run 1000"):
        sample(graph, "released", per_class=2, first_run=1000, runs=1)


def test_biased_labels_are_further_from_the_rest(need_data):
    import torch

    need_data("cora")
    graph = load("cora")
    x = torch.tensor(graph.adjacency @ graph.features.toarray())

    def shift(sampler):
        split = sample(graph, sampler, per_class=20, runs=5)
        return np.mean(
            [float(cmd(x[t], x[p])) for t, p in zip(split.train, split.pool, strict=True)]
        )

    assert shift("released") > shift("uniform")
