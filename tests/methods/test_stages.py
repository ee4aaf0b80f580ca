"""The book kept over the stages: labels, joining, stopping, audit."""

from __future__ import annotations

import numpy as np
import torch

from dcgst.methods.stages import GIVEN, NEVER, Stage, Stages


def stage_of(predicted, chosen, candidates=None) -> Stage:
    predicted = torch.tensor(predicted)
    chosen = torch.tensor(chosen, dtype=torch.bool)
    candidates = chosen if candidates is None else torch.tensor(candidates, dtype=torch.bool)
    numbers = torch.arange(predicted.numel(), dtype=torch.float32).view_as(predicted)
    return Stage(
        predicted,
        confidence=0.5 + numbers / 100,
        candidates=candidates,
        rank=numbers.long(),
        q=numbers / 10,
        ner=-numbers,
        chosen=chosen,
    )


def enter(stages: Stages, stage: Stage, cmd: list[float], exhausted=None) -> None:
    runs = len(cmd)
    left = torch.tensor(exhausted if exhausted else [False] * runs)
    stages.take(stage, torch.full((runs,), 9.0), torch.tensor(cmd), left)


GIVEN_LABELS = torch.tensor([[1, -1, -1, -1], [0, -1, -1, -1]])


def test_labels_are_chosen_anew_and_joining_is_remembered():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, patience=5, most=9)
    enter(stages, stage_of([[0, 2, 2, 2]] * 2, [[0, 1, 1, 0]] * 2), [3.0, 3.0])
    enter(stages, stage_of([[0, 1, 1, 1]] * 2, [[0, 0, 1, 1]] * 2), [2.0, 2.0])
    assert stages.labels.tolist() == [[1, -1, 1, 1], [0, -1, 1, 1]]
    assert stages.joined.tolist() == [[GIVEN, NEVER, 1, 2]] * 2


def test_given_labels_stay_even_if_someone_chooses_them():
    for accumulate in (False, True):
        stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, most=9, accumulate=accumulate)
        enter(stages, stage_of([[2, 2, 2, 2]] * 2, [[1, 1, 0, 0]] * 2), [3.0, 3.0])
        assert stages.labels.tolist() == [[1, 2, -1, -1], [0, 2, -1, -1]]
        assert stages.joined.tolist() == [[GIVEN, 1, NEVER, NEVER]] * 2


def test_accumulated_labels_stay():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, most=9, accumulate=True)
    enter(stages, stage_of([[0, 2, 2, 2]] * 2, [[0, 1, 0, 0]] * 2), [3.0, 3.0])
    enter(stages, stage_of([[0, 1, 1, 1]] * 2, [[0, 1, 1, 0]] * 2), [2.0, 2.0])
    assert stages.labels.tolist() == [[1, 2, 1, -1], [0, 2, 1, -1]]
    assert stages.joined.tolist() == [[GIVEN, 1, 2, NEVER]] * 2


def test_returning_to_a_stage_forgets_what_came_after():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, most=2)
    stages.begin(torch.zeros(2, 4, 3))
    enter(stages, stage_of([[0, 2, 2, 2]] * 2, [[0, 1, 0, 0]] * 2), [3.0, 3.0])
    enter(stages, stage_of([[0, 1, 1, 1]] * 2, [[0, 0, 1, 1]] * 2), [2.0, 2.0])
    stages.return_to(torch.tensor([1, 2]))
    assert stages.labels.tolist() == [[1, 2, -1, -1], [0, -1, 1, 1]]
    assert stages.joined.tolist() == [[GIVEN, 1, NEVER, NEVER], [GIVEN, NEVER, 2, 2]]
    assert [len(records) for records in stages.history] == [2, 3]
    assert [len(p) for p in stages.predictions] == [1, 2]
    assert set(stages.audit(0)["stage"]) == {1}
    assert stages.reasons == ["stage 1 of 2 did best on validation", "all 2 stages done"]


def test_each_run_stops_for_itself_and_then_rests():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, patience=2, most=9)
    everyone = stage_of([[0, 2, 2, 2]] * 2, [[0, 1, 1, 1]] * 2)
    one = stage_of([[0, 1, 1, 1]] * 2, [[0, 1, 0, 0]] * 2)
    enter(stages, everyone, [3.0, 3.0])
    enter(stages, everyone, [4.0, 2.0])
    enter(stages, everyone, [3.0, 1.0])  # the first run has waited two stages
    assert stages.active.tolist() == [False, True]
    enter(stages, one, [0.5, 1.5])
    assert stages.labels.tolist() == [[1, 2, 2, 2], [0, 1, -1, -1]]
    enter(stages, one, [0.1, 1.2])
    assert stages.reasons == ["CMD did not fall for 2 stages"] * 2
    assert [len(records) for records in stages.history] == [3, 5]
    assert len(stages.predictions[0]) == 3
    assert set(stages.audit(0)["stage"]) == {1, 2, 3}


def test_stops_when_the_pool_is_exhausted_or_the_stages_are_used_up():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, patience=5, most=2)
    everyone = stage_of([[0, 2, 2, 2]] * 2, [[0, 1, 1, 1]] * 2)
    enter(stages, everyone, [3.0, 3.0], [True, False])
    enter(stages, everyone, [2.0, 2.0])
    assert stages.reasons == ["the pool is exhausted", "all 2 stages done"]


def test_audit_tells_of_every_candidate():
    stages = Stages(GIVEN_LABELS, GIVEN_LABELS < 0, patience=5, most=9)
    enter(stages, stage_of([[0, 2, 1, 2]] * 2, [[0, 1, 0, 0]] * 2, [[0, 1, 1, 0]] * 2), [1.0, 1.0])
    table = stages.audit(1)
    assert table["node"].tolist() == [1, 2]
    assert table["label"].tolist() == [2, 1]
    assert table["chosen"].tolist() == [True, False]
    assert table["rank"].tolist() == [5, 6]
    np.testing.assert_allclose(table["q"], [0.5, 0.6])
    np.testing.assert_allclose(table["ner"], [-5, -6])
    np.testing.assert_allclose(table["confidence"], [0.55, 0.56])
