"""Tuning: on other runs than those reported, by nodes that no method sees."""

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


@pytest.fixture(scope="module")
def graph():
    return synthetic(200, 3, features=8, labels_per_class=4, seed=1)


LABELS = Labels("uniform", per_class=3, runs=2, first_run=10)


def test_what_is_held_out_is_in_no_other_set(graph):
    split = sample(graph, "uniform", per_class=3, runs=3, first_run=10)
    seen, taken = hold_out(split, 0.2)
    assert not (taken & (seen.train | seen.val | seen.pool)).any()
    np.testing.assert_array_equal(taken | seen.pool, split.pool)
    np.testing.assert_array_equal(taken.sum(axis=1), np.round(0.2 * split.pool.sum(axis=1)))
    assert (taken[0] != taken[1]).any()
    np.testing.assert_array_equal(hold_out(split[1], 0.2)[1][0], taken[1])


def test_reported_runs_and_unknown_methods_are_refused():
    with pytest.raises(InputError, match="runs from 10 on, got 9"):
        Search("gcn", Labels("uniform", per_class=3, first_run=9)).check()
    with pytest.raises(InputError, match="unknown method to tune 'majority'"):
        Search("majority", LABELS).check()


@pytest.mark.parametrize("name", SPACES)
def test_spaces_hold_the_default_and_settings_that_exist(name):
    defaults = METHODS[name].from_preset().get_params()
    for setting, values in SPACES[name].items():
        if isinstance(values, Range):
            assert values.low <= defaults[setting] <= values.high
        else:
            assert defaults[setting] in values
            for value in values:
                method(name, **{setting: value})


def test_a_study_begins_with_the_preset_goes_on_and_tells_its_outcome(graph, tmp_path):
    path = tmp_path / "studies" / "lp.journal"
    search, heard = Search("lp", LABELS), []
    first = tune(search, graph, path, 2, lambda number, score: heard.append((number, score)))
    assert first["trials"][0]["settings"] == {"alpha": 0.99}
    assert first["preset_score"] == first["trials"][0]["score"]
    second = tune(search, graph, path, 4, lambda number, score: heard.append((number, score)))
    assert [number for number, _ in heard] == [0, 1, 2, 3]
    assert second["trials"][:2] == first["trials"]
    assert second["best"]["score"] == max(trial["score"] for trial in second["trials"])
    assert json.loads(path.with_suffix(".json").read_text()) == second
    assert tune(search, graph, path, 4) == second, "enough trials are enough"


def test_the_score_is_accuracy_on_the_held_out_nodes(graph):
    split = LABELS.sample(graph)
    seen, taken = hold_out(split, 0.2)
    results = method("lp", alpha=0.5).fit_runs(graph, seen)
    hits = [(r.labels == graph.labels)[t].mean() for r, t in zip(results, taken, strict=True)]
    score = Search("lp", LABELS).score(graph, split, {"alpha": 0.5})
    assert score == pytest.approx(100 * np.mean(hits))
