"""SelfTraining: pseudo-labels, stop rule and trace advance together."""

from __future__ import annotations

import torch

from dcgst.methods.self_training import SelfTraining, StopRule
from dcgst.nn import GCNBackbone
from tests.methods.helpers import ring_problem, selection_of

LABELS = [[1, -1, -1, -1], [0, -1, -1, -1]]
Z = torch.zeros(2, 4, 1)


def state_of(accumulate=False, **settings) -> SelfTraining:
    problem = ring_problem(LABELS, 3)
    return SelfTraining(problem, Z, StopRule(problem, **settings), accumulate)


def test_finish_stage_applies_records_and_counts():
    state = state_of(max_stages=9)
    assert state.stage == 1
    state.finish_stage(selection_of([[2] * 4] * 2, [[0, 1, 0, 0]] * 2), Z)
    assert state.stage == 2
    assert state.labels.tolist() == [[1, 2, -1, -1], [0, 2, -1, -1]]
    assert [len(records) for records in state.trace.history] == [2, 2]
    assert state.trace.history[0][1]["labeled"] == 2


def test_whole_pool_is_labeled_if_all_its_nodes_are_labeled():
    state = state_of(max_stages=9, patience=5)
    state.finish_stage(selection_of([[2] * 4] * 2, [[0, 1, 1, 1], [0, 1, 1, 0]]), Z)
    assert state.active.tolist() == [False, True]
    assert state.stop_rule.reasons[0] == "no further candidates"


def test_cmd_of_the_stage_decides_when_to_stop():
    """All labels stay the same, so the CMD follows from the representation alone."""
    state = state_of(max_stages=9, patience=1)
    nothing = selection_of([[2] * 4] * 2, [[0, 0, 0, 0]] * 2)
    z = torch.tensor([[[0.0], [0.0], [0.5], [1.0]], [[0.5], [0.0], [0.5], [1.0]]])
    state.finish_stage(nothing, z)
    assert state.active.tolist() == [True, True]
    state.finish_stage(nothing, z.flip(0))  # run 0 gets closer, run 1 farther
    assert state.active.tolist() == [True, False]
    assert state.stop_rule.reasons[1] == "CMD did not decrease for 1 stages"


def test_stopped_runs_keep_labels_history_and_candidates():
    state = state_of(max_stages=9, patience=1)
    one = selection_of([[2] * 4] * 2, [[0, 1, 1, 1], [0, 1, 0, 0]])
    state.finish_stage(one, Z)  # exhausts the pool of run 0
    before = state.labels[0].tolist()
    state.finish_stage(selection_of([[1] * 4] * 2, [[0, 0, 1, 0]] * 2), Z)
    assert state.labels[0].tolist() == before == [1, 2, 2, 2]
    assert len(state.trace.history[0]) == 2
    assert set(state.trace.candidates(0)["stage"]) == {1}
    assert set(state.trace.candidates(1)["stage"]) == {1, 2}


def test_restore_discards_later_stages():
    state = state_of(max_stages=2)
    state.finish_stage(selection_of([[2] * 4] * 2, [[0, 1, 0, 0]] * 2), Z)
    state.finish_stage(selection_of([[1] * 4] * 2, [[0, 0, 1, 1]] * 2), Z)
    state.restore(torch.tensor([1, 2]))
    assert state.labels.tolist() == [[1, 2, -1, -1], [0, -1, 1, 1]]
    assert [len(records) for records in state.trace.history] == [2, 3]
    assert set(state.trace.candidates(0)["stage"]) == {1}
    assert state.stop_rule.reasons == [
        "stage 1 of 2 had the best validation accuracy",
        "maximum number of stages (2)",
    ]


def test_results_are_one_per_run():
    state = state_of(max_stages=1)
    state.finish_stage(selection_of([[2] * 4] * 2, [[0, 1, 0, 0], [0, 0, 1, 0]]), Z)
    proba = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(0))
    model = GCNBackbone([5, 6], 4, 2, 3)
    results = state.results(proba, model)
    for run, result in enumerate(results):
        assert result.proba.tolist() == proba[run].tolist()
        assert result.given.tolist() == LABELS[run]
        assert result.stop_reason == "maximum number of stages (1)"
        assert result.candidates["node"].tolist() == [1 + run]
        assert [record["stage"] for record in result.history] == [0, 1]
        assert [p.tolist() for p in result.stage_predictions] == [[2] * 4]
        torch.testing.assert_close(result.models[0].weight1[0], model.weight1[run])
    assert [r.labeled_stage.tolist() for r in results] == [[0, 1, -1, -1], [0, -1, 1, -1]]
