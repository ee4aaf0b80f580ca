"""Evaluation of a run: which nodes count, and how classes are matched."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dcgst import EM, InputError, fit
from tests.runs.helpers import small_graph, with_known_truth


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose graph knows all classes; nodes 0 … 3 of each class were given."""
    graph = with_known_truth(small_graph())
    return fit(graph, tmp_path_factory.mktemp("evaluated") / "run", EM())


def truth_of(run) -> dict[str, str]:
    graph = run.graph
    return {
        str(node_id): graph.class_names[code]
        for node_id, code in zip(graph.ids, graph.labels, strict=True)
    }


def test_given_labels_are_left_out(run):
    found = run.evaluate(truth_of(run))
    assert (found.quality.nodes, found.given, found.without_class) == (108, 12, 0)
    pool = run.split.pool[0]
    right = run.result.proba.argmax(1) == run.graph.labels
    assert found.quality.accuracy.value == pytest.approx(right[pool].mean())
    assert found.to_json() == run.evaluate().to_json()


def test_nodes_that_are_not_in_the_run_are_listed(run):
    truth = dict(list(truth_of(run).items())[60:100])
    found = run.evaluate({**truth, "x": "0", "y": "1"})
    assert found.unknown == ("x", "y")
    assert found.quality.nodes + found.given == 40
    assert found.without_class == 108 - found.quality.nodes


def test_classes_that_the_run_does_not_know_count_as_wrong(run):
    truth = truth_of(run)
    before = run.evaluate(truth).quality
    right = np.flatnonzero(run.split.pool[0] & (run.result.proba.argmax(1) == run.graph.labels))[:5]
    changed = {**truth, **{str(run.graph.ids[node]): "new" for node in right}}
    found = run.evaluate(changed)
    assert found.new_classes == {"new": 5}
    assert found.class_names == (*run.graph.class_names, "new")
    assert found.quality.accuracy.value == pytest.approx(before.accuracy.value - 5 / 108)
    assert found.quality.classes[-1].recall == 0
    json.dumps(found.to_json(), allow_nan=False)


def test_a_table_is_read_with_the_columns_of_the_fit(run, tmp_path):
    path = tmp_path / "truth.csv"
    rows = "\n".join(f"{node_id};{name}" for node_id, name in truth_of(run).items())
    path.write_text(f"who;kind\n{rows}\n")
    found = run.evaluate(path, id_column="who", label_column="kind")
    assert found.to_json() == run.evaluate().to_json()


def test_without_nodes_to_evaluate_the_message_says_why(run):
    given = {str(run.graph.ids[node]): "0" for node in np.flatnonzero(run.split.given[0])}
    with pytest.raises(InputError, match="all of them were given to the fit"):
        run.evaluate(given)
    with pytest.raises(InputError, match="none of the ids is in the run"):
        run.evaluate({"nobody": "0"})


def test_a_table_without_classes_is_named_as_such(run):
    with pytest.raises(InputError, match="no row has a class"):
        run.evaluate({})
