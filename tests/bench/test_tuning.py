"""Search for settings on runs that are not reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dcgst.bench.experiments import TRIALS, best_settings, tuned_settings
from dcgst.bench.protocol import Labels
from dcgst.bench.tuning import (
    SPACES,
    UNSPECIFIED,
    Range,
    Search,
    Trial,
    importances,
    is_in_space,
    labels_by_rate,
    read_trials,
    space_of,
    suggest,
    summarize,
    tune,
)
from dcgst.datasets import load
from dcgst.errors import InputError
from dcgst.methods import METHODS, method

LABELS = Labels("uniform", per_class=3, runs=2, first_run=10)
GRAPH = "synthetic/200"
STUDIES = Path(__file__).parents[2] / "results" / "studies"
LP = Search(GRAPH, "lp", (LABELS,))


def test_reported_runs_and_unknown_methods_raise():
    reported = Labels("uniform", per_class=3, first_run=9)
    with pytest.raises(InputError, match="first_run must be at least 10 for tuning, got 9"):
        Search(GRAPH, "gcn", (LABELS, reported)).check()
    with pytest.raises(InputError, match="unknown method to tune 'majority'"):
        Search(GRAPH, "majority", (LABELS,)).check()


PRESETS = [(name, "default") for name in SPACES] + [
    ("dcgst", preset) for preset in METHODS["dcgst"].presets if preset != "default"
]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_search_space_contains_the_preset_and_valid_settings(name, preset):
    values_of = METHODS[name].from_preset(preset).get_params()
    for setting, values in space_of(name, preset).items():
        if isinstance(values, Range):
            assert values.low <= values_of[setting] <= values.high
        else:
            assert values_of[setting] in values
            for value in values:
                method(name, **{setting: value}).check_values()


def test_published_settings_are_not_searched():
    published = {"cmd_weight", "predictor_weight", "ner_weight", "lr", "growth", "weight_decay"}
    assert not published & set(UNSPECIFIED)
    assert space_of("dcgst", "default") is SPACES["dcgst"]


def test_the_first_trial_is_the_preset_and_others_are_in_the_space():
    search = Search(GRAPH, "dcgst", (LABELS,), "paper/cora")
    preset = method("dcgst", "paper/cora").get_params()
    assert suggest(search, 0, {}) == {name: preset[name] for name in UNSPECIFIED}
    found = [suggest(search, number, {}) for number in range(1, 30)]
    assert all(is_in_space(settings, search.space) for settings in found)
    assert found[3] == suggest(search, 4, {}), "it depends on the number and the finished trials"
    assert found[3] != found[4]
    for name, values in UNSPECIFIED.items():
        assert {settings[name] for settings in found} == set(values)


def test_later_trials_are_near_good_ones():
    """The score is highest at a dropout of 0.2 and a large weight decay."""
    search = Search(GRAPH, "gcn", (LABELS,))
    rng = np.random.default_rng(0)
    trials = {}
    for number in range(30):
        settings = {
            "dropout": float(rng.choice([0.2, 0.5, 0.8])),
            "weight_decay": float(np.exp(rng.uniform(np.log(1e-5), np.log(1e-2)))),
        }
        score = 50 - 20 * settings["dropout"] + 5 * np.log10(settings["weight_decay"])
        trials[number] = Trial(settings, score)
    later = [suggest(search, number, trials) for number in range(30, 60)]
    assert np.mean([settings["dropout"] == 0.2 for settings in later]) > 0.6
    assert np.median([settings["weight_decay"] for settings in later]) > 1e-3
    found = importances(search, trials)
    assert set(found) == {"dropout", "weight_decay"}
    assert sum(found.values()) == pytest.approx(1, abs=0.01)
    assert importances(search, {0: trials[0]}) == {}


def test_score_is_the_accuracy_on_the_validation_nodes_of_all_runs_and_rates(tmp_path):
    assert [x.rate for x in labels_by_rate(LABELS, (0.05, 0.1))] == [0.05, 0.1]
    search = Search(GRAPH, "lp", (LABELS, Labels("uniform", per_class=6, runs=1, first_run=12)))
    graph = load(GRAPH)
    right = []
    for labels in search.labels:
        split = labels.sample(graph)
        results = method("lp", **search.preset_settings()).fit_runs(graph, split)
        for result, val in zip(results, split.val, strict=True):
            right.extend((result.proba.argmax(axis=1) == graph.labels)[val])
    for workers in (1, 2):
        outcome = tune(search, tmp_path / f"{workers}.jsonl", 2, workers)
        assert outcome["trials"][0]["score"] == pytest.approx(100 * np.mean(right), abs=0.01)


def test_study_starts_with_the_preset_and_continues(tmp_path):
    path = tmp_path / "studies" / "lp.jsonl"
    reported = []
    first = tune(LP, path, 2, report=lambda count, _: reported.append(count))
    assert first["trials"][0]["settings"] == {"alpha": 0.99}
    assert first["preset_score"] == first["trials"][0]["score"]
    second = tune(LP, path, 4, report=lambda count, _: reported.append(count))
    assert reported == [1, 2, 3, 4]
    assert second["trials"][:2] == first["trials"]
    assert second["best"]["score"] == max(trial["score"] for trial in second["trials"])
    assert json.loads(path.with_suffix(".json").read_text()) == second
    assert tune(LP, path, 4) == second, "a complete study runs no more trials"
    assert len(path.read_text().splitlines()) == 4


def test_trials_in_parallel_do_not_learn_from_each_other(tmp_path):
    together = tune(LP, tmp_path / "together.jsonl", 3, workers=3)
    assert together == tune(LP, tmp_path / "again.jsonl", 3, workers=3)
    expected = [suggest(LP, number, {}) for number in range(3)]
    assert [trial["settings"] for trial in together["trials"]] == expected


def test_an_interrupted_line_is_run_again(tmp_path):
    path = tmp_path / "lp.jsonl"
    expected = tune(LP, path, 3)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:20]]))
    assert sorted(read_trials(path, LP)) == [0, 1]
    assert tune(LP, path, 3) == expected


def test_a_trial_outside_the_search_space_is_run_again(tmp_path):
    path = tmp_path / "lp.jsonl"
    expected = tune(LP, path, 2)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1] |= {"settings": {"alpha": 0.123}, "score": 100.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert tune(LP, path, 2) == expected


def test_committed_studies_are_of_the_present_search_spaces():
    """So that they can be continued."""
    for path in sorted(STUDIES.glob("*/*.jsonl")):
        summary = json.loads(path.with_suffix(".json").read_text())
        labels = tuple(Labels(**own) for own in summary["labels"])
        search = Search(summary["dataset"], summary["method"], labels, summary["preset"])
        assert path.name == search.file_name
        assert len(read_trials(path, search)) == len(summary["trials"]) == TRIALS


def test_the_first_of_equally_good_trials_is_the_best():
    scores = {0: (0.99, 70.0), 1: (0.8, 80.0), 2: (0.5, 80.0)}
    trials = {n: Trial({"alpha": alpha}, score) for n, (alpha, score) in scores.items()}
    assert summarize(LP, trials)["best"]["settings"] == {"alpha": 0.8}


def test_names_of_files_differ_between_searches():
    paper = Search("cora", "dcgst", labels_by_rate(LABELS, (0.005, 0.01)), "paper/cora")
    assert paper.file_name == "dcgst-paper-cora-uniform-0.5-1-percent-runs-10-11.jsonl"
    assert LP.file_name == "lp-default-uniform-3-per-class-runs-10-11.jsonl"


def test_tuned_settings_are_the_best_of_the_committed_studies():
    assert best_settings(STUDIES) == tuned_settings()
