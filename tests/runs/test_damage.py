"""Damage of stored files is noticed, and numbers that are not finite never leave the program."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dcgst import GCN, Ensemble, InputError, fit, open_run
from dcgst.files import rows_to_csv
from dcgst.runs.folder import check_finite, seal
from tests.runs.helpers import reseal


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "copy")
    return tmp_path / "copy"


FILES = ("run.json", "predictions.csv", "history.csv", "candidates.csv.gz", "model.safetensors",
         "graph.npz", "metrics.json")  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed_or_has_no_effect(copy, name, rng):
    original = (copy / name).read_bytes()
    expected = rows_to_csv(open_run(copy).predictions)
    for bit in rng.choice(8 * len(original), 12, replace=False).tolist():
        damaged = bytearray(original)
        damaged[bit // 8] ^= 1 << (bit % 8)
        (copy / name).write_bytes(damaged)
        try:
            if name in ("predictions.csv", "candidates.csv.gz", "metrics.json"):
                with pytest.warns(UserWarning, match=f"{name} was changed or damaged"):
                    found = rows_to_csv(open_run(copy).predictions)
                assert found == expected
                continue
            found = rows_to_csv(open_run(copy).predictions)
        except InputError as error:
            assert name in str(error)  # noqa: PT017
        else:  # whitespace of run.json
            assert (name, found) == ("run.json", expected)


def test_a_network_with_values_that_are_not_finite_is_refused(copy):
    tensors = load_file(copy / "model.safetensors")
    name = next(iter(tensors))
    tensors[name][0, 0, 0] = float("nan")
    save_file(tensors, copy / "model.safetensors")
    reseal(copy)
    with pytest.raises(InputError, match="has values that are not finite"):
        open_run(copy)


def test_the_parameter_that_is_not_finite_is_named():
    check_finite({"a": torch.ones(2), "codes": torch.tensor([1])})
    with pytest.raises(InputError, match="parameter b of the network has values that are not"):
        check_finite({"a": torch.ones(2), "b": torch.tensor([1.0, float("inf")])})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("proba", lambda a: a * np.nan, "not probabilities"),
        ("proba", lambda a: -a, "not probabilities"),
        ("proba", lambda a: a.astype(str), "proba is"),
        ("train", lambda a: a.astype(int), "train is int64"),
        ("test", lambda a: a[:-1], "test is bool"),
        ("labeled_stage", lambda a: a.astype(float), "labeled_stage is float64"),
        ("features_indptr", lambda a: a * 10**6, "indptr must increase"),
        ("features_indices", lambda a: a + 10**6, "features: entry 0 is in column"),
        ("adjacency_indices", lambda a: a + 10**6, "adjacency: entry 0 is in column"),
        ("labels", lambda a: a + 10**9, "has label 10000000"),
        ("proba", lambda a: a * 5, "not probabilities"),
        ("agreement", lambda a: a * np.nan, "agreement has values outside"),
        ("labeled_stage", lambda a: a - 5, "labeled_stage has negative stages"),
        ("class_names", lambda a: np.array(["x"] * len(a)), "two classes are named 'x'"),
    ],
)
def test_arrays_of_another_type_or_shape_are_named(copy, name, change, message):
    with np.load(copy / "graph.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    arrays[name] = change(arrays[name])
    np.savez(copy / "graph.npz", **arrays)
    reseal(copy)
    with pytest.raises(InputError, match=message):
        open_run(copy)


@pytest.mark.parametrize(
    "changes",
    [
        {"calibration": {"temperature": 1.0}},
        {"calibration": {"temperature": 1.0, "nodes": 0, "description": "", "more": 1}},
        {"columns": {"unknown": 3}},
        {"encoder": [{"kind": "number"}]},
        {"encoder": 7},
        {"models": [{"backbone": "gcn"}]},
        {"models": [7]},
        {"calibration": {"temperature": -1.0, "nodes": 0, "description": ""}},
        {"calibration": {"temperature": None, "nodes": 0, "description": ""}},
        {"encoder": [{"name": "a", "kind": "zz"}]},
        {"encoder": [{"name": 3, "kind": "number"}]},
        {"encoder": [{"name": "a", "kind": "number", "std": 0.0}]},
        {"encoder": [{"name": "a", "kind": "text", "values": ["x"], "idf": []}]},
        {"columns": {"id": ["id"]}},
        {"columns": {"features": 7}},
        {"seconds": "long"},
    ],
)
def test_entries_of_run_json_with_other_keys_are_refused(copy, changes):
    reseal(copy, **changes)
    with pytest.raises(InputError, match="is damaged"):
        open_run(copy)


@pytest.mark.parametrize("old", ["replica", "stage", "labeled", "0"])
def test_a_history_with_other_columns_or_values_is_refused(copy, old):
    text = (copy / "history.csv").read_text()
    (copy / "history.csv").write_text(text.replace(old, "nan" if old == "0" else "other"))
    reseal(copy)
    with pytest.raises(InputError, match="is damaged"):
        open_run(copy)


def test_a_run_json_that_names_other_files_is_refused(copy, tmp_path):
    (tmp_path / "secret").write_text("x")
    reseal(copy)
    text = (copy / "run.json").read_text().replace('"metrics.json"', '"../secret"')
    (copy / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run.json was changed or damaged"):
        open_run(copy)


def test_deeply_nested_json_is_refused(copy):
    (copy / "run.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"run.json is damaged"):
        open_run(copy)


def test_a_damaged_checkpoint_is_computed_again(graph, tmp_path, rng):
    """A fit that was interrupted; then every step loses one bit."""

    def make() -> Ensemble:
        return Ensemble(members="lp,em,mlp")

    expected = fit(graph, tmp_path / "whole", make()).result.proba
    stages = []

    def interrupt(event):
        stages.append(event)
        if len(stages) > 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(graph, tmp_path / "run", make(), callbacks=[interrupt])
    steps = sorted((tmp_path / "run" / "checkpoint").rglob("*.step"))
    assert steps
    for step in steps:
        content = bytearray(step.read_bytes())
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        step.write_bytes(content)
    found = fit(graph, tmp_path / "run", make(), resume=True).result.proba
    np.testing.assert_array_equal(found, expected)


def test_extreme_features_give_the_predictions_of_ordinary_ones(graph, tmp_path):
    from dataclasses import replace

    expected = fit(graph, tmp_path / "a", GCN(epochs=20)).result.proba
    for number, scale in enumerate((2.0**-80, 2.0**70)):
        scaled = replace(graph, features=graph.features * np.float32(scale))
        found = fit(scaled, tmp_path / f"b{number}", GCN(epochs=20)).result.proba
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("key", "value"), [("hidden", 10**9), ("replicas", 0), ("dropout", 2.0), ("num_classes", "3")]
)
def test_a_network_that_does_not_fit_its_parameters_is_refused(copy, key, value):
    models = json.loads((copy / "run.json").read_text())["models"]
    models[0][key] = value
    reseal(copy, models=models)
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        open_run(copy)


def test_a_run_json_without_digests_or_with_nan_is_refused(copy):
    info = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(seal({**info, "files": {}})))
    with pytest.raises(InputError, match="lists other files than a run has"):
        open_run(copy)
    (copy / "run.json").write_text(json.dumps(seal({**info, "seconds": float("nan")})))
    with pytest.raises(InputError, match="NaN is not a number"):
        open_run(copy)


@pytest.mark.parametrize("name", ["predictions.csv", "run.json"])
def test_pipes_and_folders_in_place_of_files_do_not_block(copy, name):
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(InputError):
        open_run(copy)
    (copy / name).unlink()
    (copy / name).mkdir()
    with pytest.raises(InputError):
        open_run(copy)


def test_a_run_with_a_folder_in_place_of_a_file_can_be_replaced(graph, tmp_path):
    run = fit(graph, tmp_path / "run", GCN(epochs=2))
    (run.folder / "predictions.csv").unlink()
    (run.folder / "predictions.csv").mkdir()
    fit(graph, tmp_path / "run", GCN(epochs=2), overwrite=True)
    assert (run.folder / "predictions.csv").is_file()


def test_a_name_that_is_too_long_is_no_run_folder():
    with pytest.raises(InputError, match="is not a run folder"):
        open_run("x" * 5000)


@pytest.mark.parametrize("model", ["em", GCN])
def test_a_name_or_class_in_place_of_a_method_is_refused(graph, tmp_path, model):
    with pytest.raises(InputError, match=r"the model must be a method such as EM\(\)"):
        fit(graph, tmp_path / "run", model)
