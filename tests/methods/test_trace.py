"""Selection and Trace: the candidates of every candidate and the history of every stage."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.methods.result import Trace
from dcgst.train.training import StageEnd
from tests.methods.helpers import cmd_by_hand, ring_problem, selection_of

LABELS = [[0, 1, -1, -1], [0, -1, -1, 1]]
SHIFT = torch.tensor([0.5, 0.5])
BOTH = torch.tensor([True, True])
Z = torch.tensor([[[0.0], [1.0], [2.0], [4.0]]] * 2)


class TestCandidates:
    def test_has_one_row_per_candidate(self):
        selection = selection_of(
            [[0, 0, 0, 0], [2, 1, 2, 0]],
            [[0, 0, 0, 0], [0, 1, 0, 0]],
            [[0, 0, 0, 0], [0, 1, 1, 0]],
            selection_score=torch.tensor([[0.0] * 4, [0.1, 0.2, 0.3, 0.4]]),
            ner=torch.tensor([[0.0] * 4, [5.0, 6.0, 7.0, 8.0]]),
            weight=torch.tensor([[0.0] * 4, [1.5, 2.5, 3.5, 4.5]]),
        )
        table = selection.table(fit=1, stage=3)
        assert table["stage"].tolist() == [3, 3]
        assert table["node"].tolist() == [1, 2]
        assert table["label"].tolist() == [1, 2]
        assert table["rank"].tolist() == [2, 3]
        assert table["selected"].tolist() == [True, False]
        np.testing.assert_allclose(table["confidence"], [0.51, 0.52])
        np.testing.assert_allclose(table["selection_score"], [0.2, 0.3])
        np.testing.assert_allclose(table["ner"], [6, 7])
        np.testing.assert_allclose(table["weight"], [2.5, 3.5])
        assert len(selection.table(fit=0, stage=3)) == 0

    def test_values_that_a_method_does_not_compute(self):
        table = selection_of([[0, 1]], [[1, 1]]).table(fit=0, stage=1)
        assert np.isnan(table["selection_score"]).all()
        assert np.isnan(table["ner"]).all()
        assert table["weight"].tolist() == [1, 1]
        assert table["truth"].tolist() == [-1, -1], "no method knows the truth"


class TestTrace:
    def test_begins_with_the_shift_of_the_given_labels(self):
        trace = Trace(ring_problem(LABELS), Z)
        expected = cmd_by_hand(np.array([[0.0], [1]]), np.array([[2.0], [4]]), support=4)
        (record,) = trace.history[0]
        assert record == {"stage": 0, "labeled": 2, "cmd": pytest.approx(expected)}
        assert trace.stop_reasons == ["no pseudo-labels"] * 2
        assert len(trace.candidates(0)) == 0

    def test_records_a_stage(self):
        trace = Trace(ring_problem(LABELS), Z)
        selection = selection_of([[0, 0, 1, 1]] * 2, [[0, 0, 1, 0]] * 2, [[0, 0, 1, 1]] * 2)
        labels = torch.tensor([[0, 1, 1, -1], [0, -1, 1, 1]])
        before, after = torch.tensor([0.5, 0.6]), torch.tensor([0.25, 0.75])
        trace.record(1, selection, labels, before, after, BOTH)
        record = trace.history[0][1]
        assert (record["stage"], record["labeled"], record["candidates"]) == (1, 3, 2)
        assert (record["cmd_before"], record["cmd"]) == (0.5, 0.25)
        assert [p.tolist() for p in trace.predictions[0]] == [[0, 0, 1, 1]]
        assert trace.candidates(0)["node"].tolist() == [2, 3]

    def test_ignores_stopped_runs(self):
        trace = Trace(ring_problem(LABELS), Z)
        selection = selection_of([[0, 0, 1, 1]] * 2, [[0, 0, 1, 0]] * 2)
        labels = torch.tensor(LABELS)
        trace.record(1, selection, labels, SHIFT, SHIFT, torch.tensor([False, True]))
        assert [len(records) for records in trace.history] == [1, 2]
        assert [len(trace.candidates(run)) for run in (0, 1)] == [0, 1]
        assert [len(found) for found in trace.predictions] == [0, 1]

    def test_calls_callbacks_with_the_records_of_active_runs(self):
        events = []
        trace = Trace(ring_problem(LABELS, callbacks=[events.append]), Z)
        selection = selection_of([[0, 0, 1, 1]] * 2, [[0, 0, 1, 0]] * 2)
        trace.record(1, selection, torch.tensor(LABELS), SHIFT, SHIFT, torch.tensor([False, True]))
        assert events == [StageEnd(1, [trace.history[1][1]])]
        trace.record(2, selection, torch.tensor(LABELS), SHIFT, SHIFT, BOTH)
        assert events[1] == StageEnd(2, [trace.history[0][1], trace.history[1][2]])

    def test_discard_after_removes_later_stages_of_one_run(self):
        trace = Trace(ring_problem(LABELS), Z)
        selection = selection_of([[0, 0, 1, 1]] * 2, [[0, 0, 1, 0]] * 2)
        for stage in (1, 2, 3):
            trace.record(stage, selection, torch.tensor(LABELS), SHIFT, SHIFT, BOTH)
        trace.discard_after(fit=0, stage=1)
        assert [record["stage"] for record in trace.history[0]] == [0, 1]
        assert set(trace.candidates(0)["stage"]) == {1}
        assert len(trace.predictions[0]) == 1
        assert set(trace.candidates(1)["stage"]) == {1, 2, 3}
