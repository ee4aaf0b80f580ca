"""The Split class: disjoint sets, selections, and validation nodes held out of training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dcgst.errors import InputError
from dcgst.graph import Graph
from dcgst.splits import Split

TRAIN = np.array([[True, False, False, False]])
VAL = np.array([[False, True, False, False]])
POOL = np.array([[False, False, True, True]])


@pytest.mark.parametrize(
    ("train", "val", "pool", "node"),
    [
        (TRAIN, TRAIN, POOL, 0),
        (TRAIN, VAL, TRAIN, 0),
        (TRAIN, VAL, VAL, 1),
    ],
    ids=["train-val", "train-pool", "val-pool"],
)
def test_any_two_overlapping_sets_are_refused(train, val, pool, node):
    with pytest.raises(InputError, match=f"in run 7, node {node} is in more than one set"):
        Split(train, val, pool, (7,))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((TRAIN[0], VAL[0], POOL[0], (0,)), "must be .R, n. masks of one shape"),
        ((TRAIN, VAL[:, :3], POOL, (0,)), "must be .R, n. masks of one shape"),
        ((TRAIN, VAL, POOL[:, :3], (0,)), "must be .R, n. masks of one shape"),
        ((TRAIN, VAL, POOL, (0, 1)), "1 runs but 2 run numbers"),
        ((np.zeros_like(TRAIN), VAL, POOL, (0,)), "no labels to train on"),
    ],
)
def test_invalid_parts_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        Split(*parts)


def test_every_run_needs_training_nodes():
    with pytest.raises(InputError, match="no labels to train on"):
        Split.of([[True, False], [False, False]])


def test_by_default_all_other_nodes_are_in_the_pool():
    split = Split.of(TRAIN[0], val=VAL[0])
    np.testing.assert_array_equal(split.pool, POOL)
    np.testing.assert_array_equal(Split.of(TRAIN[0]).pool, ~TRAIN)
    assert not Split.of(TRAIN[0]).val.any()
    assert Split.of(TRAIN[0], pool=POOL[0]).pool.sum() == 2


def test_given_labels_are_training_and_validation_labels():
    np.testing.assert_array_equal(Split.of(TRAIN[0], VAL[0]).given, TRAIN | VAL)


def test_runs_are_selected_by_position_and_slice():
    split = replace(Split.of(np.eye(3, dtype=bool)), runs=(4, 5, 6))
    assert len(split) == 3
    assert split[-1].runs == split[np.int64(2)].runs == (6,)
    assert split[1:].runs == (5, 6)
    np.testing.assert_array_equal(split[1:].train, split.train[1:])
    with pytest.raises(IndexError):
        split[3]


def test_the_description_counts_the_nodes_of_the_first_run():
    train = [[True, False, False, False], [True, True, False, False], [False, False, False, True]]
    val = [[False, True, False, False], [False, False, False, False], [False, False, False, False]]
    split = replace(Split.of(train, val), runs=(4, 6, 9))
    assert repr(split) == "Split(runs 4 … 9: 1 train, 1 validation, 2 pool nodes)"
    assert repr(split[:2]) == "Split(runs 4 … 6: 1 train, 1 validation, 2 pool nodes)"
    assert repr(split[1]) == "Split(run 6: 2 train, 0 validation, 2 pool nodes)"


def test_selection_and_reordering_apply_to_every_mask():
    split = Split(TRAIN, VAL, POOL, (3,), official_test=POOL & [True, True, True, False])
    order = np.array([2, 0, 3, 1])
    moved = split.reorder(order)
    for name in ("train", "val", "pool", "official_test"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(split, name)[:, order])
    assert moved.runs == (3,)
    twice = split.select(np.array([0, 0]))
    assert twice.runs == (3, 3)
    assert twice.official_test.shape == twice.train.shape == (2, 4)


def labeled(*labels: int, **masks: list[bool]) -> Graph:
    """A graph of one edge, with the given labels."""
    arrays = {name: np.array(mask) for name, mask in masks.items()}
    return Graph.from_edges([[0], [1]], np.eye(len(labels)), labels, masks=arrays)


def test_without_masks_every_known_label_is_a_training_label():
    split = Split.known_labels(labeled(0, -1, 1))
    assert split.train.tolist() == [[True, False, True]]
    assert split.pool.tolist() == [[False, True, False]]


def test_masks_of_the_graph_define_the_split():
    train, val = [True, False, False, False], [False, True, False, False]
    graph = labeled(0, 1, 1, 0, train=train, val=val)
    split = Split.known_labels(graph)
    assert split.train.tolist() == [train]
    assert split.val.tolist() == [val]
    assert split.official_test is None


def test_test_nodes_are_known_pool_nodes_or_those_of_the_official_split():
    train = [True, False, False, False]
    graph = labeled(0, 1, -1, 0, train=train)
    assert Split.known_labels(graph).test(graph).tolist() == [[False, True, False, True]]
    official = labeled(0, 1, -1, 0, train=train, test=[True, False, True, True])
    assert Split.known_labels(official).test(official).tolist() == [[False, False, False, True]]


class TestHoldOut:
    def held_out(self, labels, share, seed=0):
        """Labels per class that train and that validate."""
        graph = labeled(*labels, -1)
        split = Split.known_labels(graph).hold_out(graph, share, seed)
        assert not split.val[0, -1]
        counts = (
            np.bincount(graph.labels[mask[0]], minlength=3) for mask in (split.train, split.val)
        )
        return [row.tolist() for row in counts]

    @pytest.mark.parametrize(
        ("share", "moved"),
        [(0.3, [0, 1, 2]), (0.4, [0, 2, 2]), (0.5, [0, 2, 2]), (0.1, [0, 0, 0]), (0.9, [0, 3, 4])],
    )
    def test_the_share_of_each_class_is_rounded_and_one_label_stays(self, share, moved):
        labels = [0] * 1 + [1] * 4 + [2] * 5
        train, val = self.held_out(labels, share)
        assert val == moved
        assert train == [1 - moved[0], 4 - moved[1], 5 - moved[2]]

    def test_the_choice_depends_on_the_seed_only(self):
        graph = labeled(*[0, 1] * 20, -1)
        split = Split.known_labels(graph)
        first, again, other = (split.hold_out(graph, 0.5, seed).val for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_held_out_nodes_come_from_training(self):
        graph = labeled(*[0, 1] * 5, -1, -1)
        before = Split.known_labels(graph)
        after = before.hold_out(graph, 0.4)
        np.testing.assert_array_equal(after.given, before.train)
        np.testing.assert_array_equal(after.pool, before.pool)

    def test_existing_validation_nodes_or_a_share_of_zero_change_nothing(self):
        graph = labeled(0, 0, 1, 1)
        split = Split.of(TRAIN[0], VAL[0])
        assert split.hold_out(graph, 0.5) is split
        without = Split.of(TRAIN[0])
        assert without.hold_out(graph, 0.0) is without

    @pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
    def test_the_share_must_be_at_least_zero_and_below_one(self, share):
        with pytest.raises(InputError, match="validation share must be at least 0 and below 1"):
            Split.of(TRAIN[0]).hold_out(labeled(0, 0, 1, 1), share)
