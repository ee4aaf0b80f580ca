"""Result: labels, comparison with the truth, node order, and the average over replicas."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dcgst.methods import Majority
from dcgst.methods.result import CANDIDATE, EDGE_PROBABILITIES, Result
from dcgst.methods.running import average, majority_stage
from tests.methods.helpers import path


def table_of(*rows) -> np.ndarray:
    """Rows of (replica, stage, node)."""
    table = np.zeros(len(rows), dtype=CANDIDATE)
    for name, column in zip(("replica", "stage", "node"), zip(*rows, strict=True), strict=True):
        table[name] = column
    return table


def result_of(proba, given=None, **more) -> Result:
    proba = np.array(proba, dtype=np.float32)
    given = np.full(len(proba), -1) if given is None else np.array(given)
    settings = {
        "labeled_stage": np.where(given >= 0, 0, -1),
        "agreement": np.ones(len(proba), dtype=np.float32),
        "history": [{"replica": 0, "stage": 0, "labeled": 1, "cmd": 0.5}],
        "stop_reason": "done",
        **more,
    }
    return Result(proba=proba, given=given, **settings)


def test_labels_are_given_labels_else_the_most_likely_class():
    result = result_of([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], given=[1, -1, -1])
    assert result.labels.tolist() == [1, 0, 1]


def test_cmd_before_and_after_are_those_of_the_last_stage():
    first = {"stage": 0, "cmd": 0.5}
    last = {"stage": 1, "cmd_before": 0.4, "cmd": 0.1}
    result = result_of([[1.0, 0.0]], history=[first, last])
    assert (result.cmd_before, result.cmd_after) == (0.4, 0.1)
    without_stages = result_of([[1.0, 0.0]], history=[first])
    assert (without_stages.cmd_before, without_stages.cmd_after) == (0.5, 0.5)


class TestCompareWith:
    history = ({"stage": 0, "cmd": 1.0}, {"stage": 1, "cmd": 1.0}, {"stage": 2, "cmd": 1.0})
    pool = np.array([False, True, True, True])

    def result(self) -> Result:
        return result_of(
            [[0.5, 0.5]] * 4,
            history=[dict(record) for record in self.history],
            candidates=table_of((0, 1, 2), (0, 2, 3)),
            stage_predictions=(np.array([0, 0, 0, 0]), np.array([1, 1, 1, 0])),
        )

    def test_adds_accuracy_of_each_stage_and_truth_of_each_candidate(self):
        compared = self.result().with_truth(np.array([0, 1, 1, 0]), self.pool)
        # Of the pool (1, 1, 0), stage 1 predicts (0, 0, 0) and stage 2 (1, 1, 0).
        accuracy = [record.get("accuracy") for record in compared.history]
        assert accuracy == [None, pytest.approx(1 / 3), 1.0]
        assert compared.candidates["truth"].tolist() == [1, 0]
        assert compared.stage_predictions == ()

    def test_counts_nodes_of_known_class_only(self):
        compared = self.result().with_truth(np.array([0, -1, 1, 0]), self.pool)
        assert compared.history[1]["accuracy"] == 0.5
        assert self.result().with_truth(np.full(4, -1), self.pool).history == list(self.history)

    def test_does_not_change_the_original(self):
        result = self.result()
        result.with_truth(np.array([0, 1, 1, 0]), self.pool)
        assert result.history == list(self.history)
        assert result.candidates["truth"].tolist() == [0, 0]


class TestReorder:
    order = np.array([2, 0, 1])  # node 2 comes first

    def test_moves_arrays_and_tables(self):
        edges = np.array([(0, 0, 2, True, 0.5), (0, 1, 2, False, 0.25)], dtype=EDGE_PROBABILITIES)
        result = result_of(
            [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]],
            given=[0, 1, -1],
            labeled_stage=np.array([5, 6, 7]),
            agreement=np.array([0.5, 0.6, 0.7]),
            candidates=table_of((0, 1, 1), (0, 1, 2)),
            edge_probabilities=edges,
        )
        moved = result.reorder(self.order)
        np.testing.assert_allclose(moved.proba[:, 0], [0.3, 0.1, 0.2])
        assert moved.given.tolist() == [-1, 0, 1]
        assert moved.labeled_stage.tolist() == [7, 5, 6]
        assert moved.agreement.tolist() == [0.7, 0.5, 0.6]
        assert moved.candidates["node"].tolist() == [0, 2]
        assert moved.edge_probabilities[["source", "target"]].tolist() == [(0, 1), (0, 2)]
        assert moved.edge_probabilities["present"].tolist() == [True, False]

    def test_candidates_are_sorted_by_replica_stage_and_node(self):
        rows = [(0, 1, 0), (0, 1, 2), (0, 2, 1), (1, 1, 2)]
        moved = result_of([[1.0, 0.0]] * 3, candidates=table_of(*rows)).reorder(self.order)
        expected = [(0, 1, 0), (0, 1, 1), (0, 2, 2), (1, 1, 0)]
        assert moved.candidates[["replica", "stage", "node"]].tolist() == expected

    def test_inverse_order_gives_the_original(self):
        result = result_of([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]], candidates=table_of((0, 1, 2)))
        again = result.reorder(self.order).reorder(np.argsort(self.order))
        np.testing.assert_array_equal(again.proba, result.proba)
        np.testing.assert_array_equal(again.candidates["node"], result.candidates["node"])


class TestAverage:
    def test_probabilities_are_the_mean_and_agreement_the_share_of_equal_labels(self):
        replicas = [
            result_of([[0.1, 0.9], [0.3, 0.7], [0.7, 0.3]], given=[0, -1, -1]),
            result_of([[0.1, 0.9], [0.4, 0.6], [0.1, 0.9]], given=[0, -1, -1]),
            result_of([[0.1, 0.9], [0.2, 0.8], [0.1, 0.9]], given=[0, -1, -1]),
        ]
        mean = average(replicas)
        np.testing.assert_allclose(mean.proba, [[0.1, 0.9], [0.3, 0.7], [0.3, 0.7]], rtol=1e-6)
        assert mean.labels.tolist() == [0, 1, 1]
        np.testing.assert_allclose(mean.agreement, [1, 1, 2 / 3], rtol=1e-6)

    def test_tables_and_history_state_the_replica(self):
        edges = np.array([(0, 0, 1, True, 0.5)], dtype=EDGE_PROBABILITIES)
        one = result_of([[1.0, 0.0]] * 2, candidates=table_of((0, 1, 1)), edge_probabilities=edges)
        mean = average([one, one])
        assert mean.candidates["replica"].tolist() == [0, 1]
        assert mean.edge_probabilities["replica"].tolist() == [0, 1]
        assert [record["replica"] for record in mean.history] == [0, 1]
        assert one.candidates["replica"].tolist() == [0], "the original was changed"

    def test_stop_reasons_are_joined_once_each(self):
        results = [result_of([[1.0, 0.0]], stop_reason=reason) for reason in ("b", "a", "b")]
        assert average(results).stop_reason == "a; b"

    def test_of_one_replica_is_that_replica(self):
        one = result_of([[1.0, 0.0]])
        assert average([one]) is one


class TestMajorityStage:
    def test_most_replicas_must_have_labeled_the_node(self):
        stages = np.array([[0, -1, -1, 3, 1], [0, 1, -1, 5, -1], [0, -1, -1, 9, 4]])
        assert majority_stage(stages).tolist() == [0, -1, -1, 5, 1]
        assert majority_stage(np.array([[-1], [1]])).tolist() == [-1]

    def test_of_an_even_number_is_the_lower_median(self):
        stages = np.array([[1, 7], [9, 7], [2, -1], [5, 8]])
        assert majority_stage(stages).tolist() == [2, 7]


def test_rows_of_probabilities_do_not_share_memory():
    fitted = Majority().fit(path([0, 1, 1, -1]))
    fitted.proba_[0, 0] = 9
    assert fitted.proba_[1, 0] < 1


def test_result_is_read_only_on_the_method():
    fitted = Majority().fit(path([0, 1, 1, -1]))
    with pytest.raises(AttributeError):
        fitted.proba_ = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.result_.proba = None


def test_without_pseudo_labels_and_edge_predictor_the_tables_are_empty():
    result = result_of([[1.0, 0.0]])
    assert (len(result.candidates), len(result.edge_probabilities)) == (0, 0)
