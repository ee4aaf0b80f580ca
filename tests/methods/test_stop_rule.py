"""StopRule: each run stops on its own."""

from __future__ import annotations

import torch

from dcgst.methods.self_training import StopRule


def active_after(rule: StopRule, cmds, all_labeled=False) -> list[bool]:
    """Finish a stage per CMD, for one run; whether it is active after each."""
    found = []
    for cmd in cmds:
        rule.update(torch.tensor([cmd]), torch.tensor([all_labeled]))
        found.append(bool(rule.active))
    return found


def test_stops_after_exactly_patience_stages_without_lower_cmd():
    rule = StopRule(1, max_stages=9, patience=2)
    #                           lowest      wait 1  wait 2
    assert active_after(rule, [3.0, 2.0, 2.5, 2.1]) == [True, True, True, False]
    assert rule.reasons == ["CMD did not decrease for 2 stages"]


def test_lower_cmd_resets_the_patience():
    rule = StopRule(1, max_stages=9, patience=2)
    assert active_after(rule, [3.0, 3.5, 2.9, 3.5, 3.5]) == [True, True, True, True, False]


def test_equal_cmd_is_not_lower():
    rule = StopRule(1, max_stages=9, patience=1)
    assert active_after(rule, [3.0, 3.0]) == [True, False]


def test_without_patience_only_the_maximum_number_of_stages_stops_it():
    rule = StopRule(1, max_stages=3)
    assert active_after(rule, [1.0, 2.0, 3.0], all_labeled=True) == [True, True, False]
    assert rule.reasons == ["maximum number of stages (3)"]


def test_stops_if_the_whole_pool_is_labeled():
    rule = StopRule(1, max_stages=9, patience=5)
    assert active_after(rule, [1.0], all_labeled=True) == [False]
    assert rule.reasons == ["every pool node has a pseudo-label"]


def test_first_reason_is_kept():
    rule = StopRule(1, max_stages=2, patience=5)
    active_after(rule, [1.0, 1.0], all_labeled=True)
    assert rule.reasons == ["every pool node has a pseudo-label"]


def test_runs_stop_independently():
    rule = StopRule(3, max_stages=3, patience=1)
    no = torch.tensor([False, False, False])
    rule.update(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([False, True, False]))
    assert rule.active.tolist() == [True, False, True]
    rule.update(torch.tensor([1.0, 0.0, 0.5]), no)
    assert rule.active.tolist() == [False, False, True]
    rule.update(torch.tensor([0.0, 0.0, 0.1]), no)
    assert not rule.active.any()
    assert rule.reasons == [
        "CMD did not decrease for 1 stages",
        "every pool node has a pseudo-label",
        "maximum number of stages (3)",
    ]


def test_stages_are_counted_from_one():
    rule = StopRule(1, max_stages=9)
    assert rule.stage == 1
    active_after(rule, [1.0])
    assert rule.stage == 2


def test_without_stages_no_run_is_active():
    rule = StopRule(2, max_stages=0)
    assert rule.active.tolist() == [False, False]
    assert rule.reasons == ["no pseudo-labels"] * 2
