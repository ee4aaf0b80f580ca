"""Damage of stored files is noticed, and numbers that are not finite never leave the program."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dcgst import DCGST, GCN, InputError, fit, open_run
from dcgst.files import rows_to_csv
from dcgst.runs.format.writing import check_finite
from tests.runs.helpers import QUICK, reseal


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "copy")
    return tmp_path / "copy"


FILES = ("run.json", "predictions.csv", "history.csv", "audit.csv.gz", "model.safetensors",
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

    def make() -> DCGST:
        return DCGST(**QUICK)

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
