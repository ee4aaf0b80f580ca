"""Hyperparameter search on runs that are not reported."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import SPACES, Range, Search, hold_out, tune
from dcgst.datasets import synthetic
from dcgst.errors import InputError
from dcgst.methods import METHODS, method
from dcgst.splits import sample

LABELS = Labels("uniform", per_class=3, runs=2, first_run=10)


@pytest.fixture(scope="module")
def graph():
    return synthetic(200, 3, features=8, labels_per_class=4, seed=1)


def test_held_out_nodes_are_in_no_other_set(graph):
    split = sample(graph, "uniform", per_class=3, runs=3, first_run=10)
    visible, held_out = hold_out(split, 0.2)
    assert not (held_out & (visible.train | visible.val | visible.pool)).any()
    np.testing.assert_array_equal(held_out | visible.pool, split.pool)
    np.testing.assert_array_equal(held_out.sum(axis=1), np.round(0.2 * split.pool.sum(axis=1)))
    assert (held_out[0] != held_out[1]).any()
    np.testing.assert_array_equal(hold_out(split[1], 0.2)[1][0], held_out[1])


def test_reported_runs_and_unknown_methods_raise():
    with pytest.raises(InputError, match="first_run must be at least 10 for tuning, got 9"):
        Search("gcn", Labels("uniform", per_class=3, first_run=9)).check()
    with pytest.raises(InputError, match="unknown method to tune 'majority'"):
        Search("majority", LABELS).check()


@pytest.mark.parametrize("name", SPACES)
def test_search_space_contains_the_default_and_valid_settings(name):
    defaults = METHODS[name].from_preset().get_params()
    for setting, values in SPACES[name].items():
        if isinstance(values, Range):
            assert values.low <= defaults[setting] <= values.high
        else:
            assert defaults[setting] in values
            for value in values:
                method(name, **{setting: value})


def test_study_starts_with_the_preset_and_continues(graph, tmp_path):
    path = tmp_path / "studies" / "lp.journal"
    search, reported = Search("lp", LABELS), []
    first = tune(search, graph, path, 2, lambda number, _: reported.append(number))
    assert first["trials"][0]["settings"] == {"alpha": 0.99}
    assert first["preset_score"] == first["trials"][0]["score"]
    second = tune(search, graph, path, 4, lambda number, _: reported.append(number))
    assert reported == [0, 1, 2, 3]
    assert second["trials"][:2] == first["trials"]
    assert second["best"]["score"] == max(trial["score"] for trial in second["trials"])
    assert json.loads(path.with_suffix(".json").read_text()) == second
    assert tune(search, graph, path, 4) == second, "a complete study runs no more trials"


def test_name_of_a_study_stays_the_same():
    # The name identifies the study in its journal, so a change would orphan existing studies.
    expected = "Labels(sampler='uniform', rate=None, per_class=3, runs=2, first_run=10)"
    assert str(LABELS) == expected


def test_score_is_the_accuracy_on_held_out_nodes(graph):
    split = LABELS.sample(graph)
    visible, held_out = hold_out(split, 0.2)
    results = method("lp", alpha=0.5).fit_runs(graph, visible)
    accuracies = [
        (result.labels == graph.labels)[mask].mean()
        for result, mask in zip(results, held_out, strict=True)
    ]
    score = Search("lp", LABELS).score(graph, split, {"alpha": 0.5})
    assert score == pytest.approx(100 * np.mean(accuracies))
