"""Sampled splits: counts, validation nodes, reproducible runs, and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst.datasets import load, synthetic
from dcgst.errors import InputError
from dcgst.splits import Request, sample
from dcgst.splits.samplers import labels_per_class
from dcgst.transforms import SampleLabels

OWN = ("uniform", "degree", "ppr-s")


@pytest.mark.parametrize("sampler", OWN)
def test_every_class_has_the_requested_number_of_labels(sampler, shifted):
    split = sample(shifted, sampler, per_class=5, runs=3)
    for train in split.train:
        assert np.bincount(shifted.labels[train]).tolist() == [5, 5, 5]
    assert not (split.train & split.val).any()
    assert (split.train | split.val | split.pool).all()


@pytest.mark.parametrize("sampler", OWN)
def test_a_run_is_the_same_alone_and_with_others(sampler, shifted):
    many = sample(shifted, sampler, per_class=3, runs=4)
    alone = sample(shifted, sampler, per_class=3, runs=1, first_run=2)
    np.testing.assert_array_equal(many[2].train, alone.train)
    np.testing.assert_array_equal(many[2].val, alone.val)
    assert alone.runs == (2,)
    assert not np.array_equal(many.train[0], many.train[1])


def test_another_seed_gives_other_runs(shifted):
    first, second = (sample(shifted, per_class=3, seed=s) for s in (0, 1))
    assert not np.array_equal(first.train, second.train)
    assert not np.array_equal(first.val, second.val)


def test_ten_runs_by_default(shifted):
    assert sample(shifted, per_class=3).runs == tuple(range(10))


def test_label_rates_of_the_paper_give_its_counts():
    def count(nodes, classes, rate):
        graph = synthetic(nodes, classes, features=2, degree=1, labels_per_class=1)
        return labels_per_class(graph, rate)

    assert [count(2708, 7, r) for r in (0.005, 0.01, 0.02, 0.03, 0.05)] == [2, 4, 8, 12, 19]
    assert [count(3327, 6, r) for r in (0.005, 0.01, 0.02, 0.03)] == [3, 6, 11, 17]
    assert [count(19717, 3, r) for r in (0.0003, 0.0005, 0.001)] == [2, 3, 7]
    assert count(300, 3, 1e-6) == 1


def test_with_a_rate_at_most_half_of_a_class_is_labeled():
    graph = synthetic(210, 3, balance=0.2, labels_per_class=2)
    for sampler in OWN:
        counts = np.bincount(graph.labels[sample(graph, sampler, rate=0.2).train[0]])
        assert counts.tolist() == [14, 14, np.bincount(graph.labels)[2] // 2]


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 1), (9, 4), (10, 5), (40, 5)])
def test_labels_of_a_class_with_a_rate(size, count, shifted):
    assert Request(shifted, 5, 0.1, [0], 0).count(np.arange(size)) == count
    assert Request(shifted, 5, None, [0], 0).count(np.arange(size)) == max(1, min(5, size - 1))


class TestValidation:
    def test_half_a_percent_of_all_nodes_by_default(self):
        graph = synthetic(1000, 2, labels_per_class=2)
        assert sample(graph, per_class=200, runs=2).val.sum(axis=1).tolist() == [5, 5]

    @pytest.mark.parametrize(("rate", "count"), [(0.0, 0), (0.1, 24), (0.0104, 2), (0.0105, 3)])
    def test_the_rate_is_a_rounded_share_of_all_nodes(self, shifted, rate, count):
        split = sample(shifted, per_class=40, val_rate=rate, runs=2)
        assert split.val.sum(axis=1).tolist() == [count, count]

    def test_nodes_of_unknown_class_stay_in_the_pool(self, shifted):
        known = shifted.with_labels(np.where(np.arange(240) % 2 == 0, shifted.labels, -1))
        split = sample(known, per_class=3, val_rate=0.1)
        assert (split.val.sum(axis=1) == 24).all()
        assert (known.labels[split.val.any(axis=0)] >= 0).all()
        assert split.pool[0, 1]
        assert not split.test(known)[0, 1]

    def test_at_least_one_known_node_stays_in_the_pool(self, shifted):
        split = sample(shifted, per_class=79, val_rate=0.5, runs=1)
        assert (split.val.sum(), split.pool.sum()) == (2, 1)

    def test_one_node_stays_in_the_pool(self, shifted):
        split = sample(shifted, per_class=80, val_rate=0.1, runs=1)
        assert (split.train.sum(), split.val.sum(), split.pool.sum()) == (237, 2, 1)

    def test_the_draw_depends_on_seed_and_run_only(self, shifted):
        split = sample(shifted, per_class=3, val_rate=0.1, runs=1, first_run=4, seed=7)
        rest = np.flatnonzero(~split.train[0])
        drawn = np.random.default_rng([7, 4, 1]).choice(rest, 24, replace=False)
        assert np.flatnonzero(split.val[0]).tolist() == sorted(drawn)
        request = Request(shifted, 3, None, [4], 7)
        assert request.rng(4).random() == np.random.default_rng([7, 4, 0]).random()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": "fair"}, "unknown sampler 'fair'; choose one of: degree, official, ppr-s"),
        ({}, "set a label rate, or labels per class from 1 on"),
        ({"per_class": 0}, "from 1 on"),
        ({"per_class": 3, "rate": 0.1}, "not both"),
        ({"rate": 2.0}, "between 0 and 1, got 2"),
        ({"rate": 1.0}, "between 0 and 1, got 1"),
        ({"rate": 0.0}, "between 0 and 1, got 0"),
        ({"per_class": 2, "val_count": -1}, "val_count must be at least 0"),
        ({"per_class": 2, "val_count": 1.5}, "val_count must be an integer"),
        ({"per_class": 2, "val_per_class": 0}, "val_per_class must be at least 1"),
        ({"per_class": 2, "val_per_class": 1, "val_count": 1}, "val_count or val_per_class"),
        ({"per_class": 2, "val_per_class": 10_000}, "too few for 10000 validation nodes"),
        ({"per_class": 70, "val_per_class": 10}, "has 10 nodes without a training label"),
        ({"per_class": 2.5}, "per_class must be an integer"),
        ({"per_class": 2, "runs": 2.5}, "runs must be an integer"),
        ({"per_class": 2, "first_run": 0.5}, "first_run must be an integer"),
        ({"sampler": "official", "rate": 0.1}, "fixed number of labels"),
        ({"sampler": "official", "per_class": 1}, "fixed number of labels"),
        ({"per_class": 3, "runs": 0}, "runs must be at least 1"),
        ({"per_class": 3, "first_run": -1}, "first_run must be at least 0, got -1"),
        ({"per_class": 3, "seed": -1}, "seed must be at least 0"),
        ({"per_class": 3, "val_rate": -0.1}, "val_rate must be at least 0"),
        ({"per_class": 3, "val_rate": 1.0}, "below 1"),
        ({"per_class": 3, "sampler": "released"}, "no released seeds for 'synthetic'"),
    ],
)
def test_invalid_requests_are_refused(arguments, message, shifted):
    with pytest.raises(InputError, match=message):
        sample(shifted, **arguments)


def test_the_official_split_is_the_same_in_every_run(shifted):
    split = sample(shifted, "official", runs=2, first_run=3)
    assert split.runs == (3, 4)
    for train, test in zip(split.train, split.test(shifted), strict=True):
        np.testing.assert_array_equal(train, shifted.masks["train"])
        np.testing.assert_array_equal(test, shifted.masks["test"])
    with pytest.raises(InputError, match="synthetic has no official split"):
        sample(replace(shifted, masks={}), "official")


def test_the_official_split_of_cora_has_its_test_nodes(need_data):
    need_data("cora")
    graph = load("cora")
    split = sample(graph, "official", runs=2)
    assert split.test(graph).sum(axis=1).tolist() == [1000, 1000]
    assert split.pool.sum(axis=1).tolist() == [2068, 2068]


def test_pyg_data_give_the_same_split_and_masks(shifted):
    split = sample(shifted, "ppr-s", per_class=3, runs=1)
    assert repr(split) == "Split(run 0: 9 train, 1 validation, 230 pool nodes)"
    from_data = sample(shifted.to_pyg(), "ppr-s", per_class=3, runs=1)
    np.testing.assert_array_equal(from_data.train, split.train)
    data = SampleLabels("ppr-s", per_class=3)(shifted.to_pyg())
    for name, mask in (("train", split.train), ("val", split.val), ("test", split.pool)):
        np.testing.assert_array_equal(data[f"{name}_mask"].numpy(), mask[0])
    several = SampleLabels("uniform", per_class=3, runs=2)(shifted.to_pyg())
    assert several.test_mask.shape == (240, 2)


def test_one_node_of_a_small_class_is_not_labeled(shifted):
    split = sample(shifted, per_class=100, runs=2)
    sizes = np.bincount(shifted.labels)
    for row in split.train:
        assert np.bincount(shifted.labels[row]).tolist() == np.minimum(100, sizes - 1).tolist()


def test_the_number_of_validation_nodes(shifted):
    split = sample(shifted, per_class=3, runs=2, val_count=7)
    assert split.val.sum(1).tolist() == [7, 7]
    assert not (split.val & split.train).any()
    assert sample(shifted, per_class=3, runs=1, val_count=0).val.sum() == 0


def test_validation_nodes_per_class_are_balanced_and_differ_between_runs(shifted):
    split = sample(shifted, per_class=3, runs=2, val_per_class=4)
    for val, train in zip(split.val, split.train, strict=True):
        counts = np.bincount(shifted.labels[val], minlength=shifted.num_classes)
        assert (counts == 4).all()
        assert not (val & train).any()
    assert (split.val[0] != split.val[1]).any()
    assert (split.train == sample(shifted, per_class=3, runs=2, val_count=0).train).all()
    again = sample(shifted, per_class=3, runs=1, first_run=1, val_per_class=4)
    assert (again.val[0] == split.val[1]).all()
