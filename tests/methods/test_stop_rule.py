"""StopRule: each run stops on its own."""

from __future__ import annotations

import pytest
import torch

from dcgst.methods.self_training import StopRule
from tests.methods.helpers import ring_problem


def rule_of(fits: int, **settings) -> StopRule:
    return StopRule(ring_problem([[0, 1, -1, -1]] * fits, 2), **settings)


def active_after(rule: StopRule, cmds, exhausted=False) -> list[bool]:
    """Finish a stage per CMD, for one run; whether it is active after each."""
    found = []
    for cmd in cmds:
        rule.update(torch.tensor([cmd]), torch.tensor([exhausted]))
        found.append(bool(rule.active))
    return found


def test_stops_after_exactly_patience_stages_in_a_row_without_a_decrease():
    rule = rule_of(1, max_stages=9, patience=2)
    #                               wait 1       wait 1  wait 2
    assert active_after(rule, [3.0, 3.5, 3.2, 3.3, 3.4]) == [True, True, True, True, False]
    assert rule.reasons == ["CMD did not decrease for 2 stages"]


def test_compared_with_the_lowest_a_decrease_above_it_does_not_count():
    rule = rule_of(1, max_stages=9, patience=2, compare_with="lowest")
    #                           lowest      wait 1  wait 2
    assert active_after(rule, [3.0, 2.0, 2.5, 2.1]) == [True, True, True, False]


def test_lower_cmd_resets_the_patience():
    rule = rule_of(1, max_stages=9, patience=2, compare_with="lowest")
    assert active_after(rule, [3.0, 3.5, 2.9, 3.5, 3.5]) == [True, True, True, True, False]


@pytest.mark.parametrize("compare_with", ["previous", "lowest"])
def test_the_stage_with_the_lowest_cmd_is_known(compare_with):
    rule = rule_of(1, max_stages=9, patience=9, compare_with=compare_with)
    active_after(rule, [3.0, 1.0, 2.0, 1.5])
    assert rule.lowest_stage.tolist() == [2]


def test_equal_cmd_is_not_lower():
    rule = rule_of(1, max_stages=9, patience=1)
    assert active_after(rule, [3.0, 3.0]) == [True, False]


def test_without_patience_only_the_maximum_number_of_stages_stops_it():
    rule = rule_of(1, max_stages=3)
    assert active_after(rule, [1.0, 2.0, 3.0], exhausted=True) == [True, True, False]
    assert rule.reasons == ["maximum number of stages (3)"]


def test_stops_if_there_are_no_further_candidates():
    rule = rule_of(1, max_stages=9, patience=5)
    assert active_after(rule, [1.0], exhausted=True) == [False]
    assert rule.reasons == ["no further candidates"]


def test_first_reason_is_kept():
    rule = rule_of(1, max_stages=2, patience=5)
    active_after(rule, [1.0, 1.0], exhausted=True)
    assert rule.reasons == ["no further candidates"]


def test_runs_stop_independently():
    rule = rule_of(3, max_stages=3, patience=1)
    no = torch.tensor([False, False, False])
    rule.update(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([False, True, False]))
    assert rule.active.tolist() == [True, False, True]
    rule.update(torch.tensor([1.0, 0.0, 0.5]), no)
    assert rule.active.tolist() == [False, False, True]
    rule.update(torch.tensor([0.0, 0.0, 0.1]), no)
    assert not rule.active.any()
    assert rule.reasons == [
        "CMD did not decrease for 1 stages",
        "no further candidates",
        "maximum number of stages (3)",
    ]


def test_stages_are_counted_from_one():
    rule = rule_of(1, max_stages=9)
    assert rule.stage == 1
    active_after(rule, [1.0])
    assert rule.stage == 2


def test_without_stages_no_run_is_active():
    rule = rule_of(2, max_stages=0)
    assert rule.active.tolist() == [False, False]
    assert rule.reasons == ["no pseudo-labels"] * 2
