"""The smallest and largest values that are valid in the files of a run folder."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

from dcgst import EM, Graph, open_run
from dcgst.methods.storage import check_sizes
from dcgst.runs.folder import check_arrays, check_info

GRAPH = Graph.from_edges([[0], [1]], np.eye(2), [0, 1])
COLUMN = {"name": "size", "kind": "number", "form": "", "mean": -3.5, "std": 0.5}
WORDS = {"name": "size", "kind": "text", "form": "words", "values": [], "idf": []}


def make_info(**changes):
    """Entries of ``run.json`` that are valid except for the given changes."""
    info = {
        "method": "em",
        "settings": EM().config(),
        "models": [],
        "columns": {"id": "id", "label": None, "features": ["size"], "ignore": []},
        "spectral": False,
        "calibration": {"temperature": 0.5, "nodes": 0, "description": ""},
        "notes": [],
        "node_columns": [],
        "stop_reason": "",
        "encoder": [COLUMN],
        "seconds": 0.0,
    }
    return {**info, **changes}


def make_arrays(**changes):
    """Arrays of two nodes that are valid except for the given changes."""
    arrays = {
        "proba": np.array([[0.0, 1.0], [0.5, 0.5]]),
        "labeled_stage": np.array([-1, 0]),
        "agreement": np.array([0.0, 1.0]),
        **{name: np.array([True, False]) for name in ("train", "val", "pool", "test")},
    }
    return {**arrays, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"encoder": None},
        {"columns": {"features": None}},
        {"seconds": 0},
        {"encoder": [{**WORDS, "kind": "category", "form": "value", "values": ["a"]}]},
        {"encoder": [{**WORDS, "values": ["a", "b"], "idf": [1.0, 2.5]}]},
        {"method": "of another package", "settings": {"unknown": 1}},
    ],
)
def test_valid_entries_are_accepted(changes):
    check_info(make_info(**changes))


def test_the_time_may_be_missing():
    info = make_info()
    del info["seconds"]
    check_info(info)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": None}, "method is NoneType"),
        ({"spectral": 1}, "spectral is int"),
        (
            {"calibration": {"temperature": 0, "nodes": 0, "description": ""}},
            "calibration.temperature is 0",
        ),
        (
            {"calibration": {"temperature": True, "nodes": 0, "description": ""}},
            "calibration.temperature is bool",
        ),
        ({"seconds": -1}, "seconds is -1"),
        ({"seconds": float("inf")}, "seconds is inf"),
        ({"columns": {"id": 3}}, "columns.id is int"),
        ({"columns": {"ignore": [None]}}, "columns.ignore is NoneType"),
        ({"columns": {"kinds": "title"}}, "kinds must be a mapping, got str"),
        ({"columns": {"kinds": {"title": "smell"}}}, "cannot have the kind 'smell'"),
        ({"encoder": [{**COLUMN, "mean": float("-inf")}]}, "mean of size is -inf"),
        ({"encoder": [{**COLUMN, "std": 0.0}]}, "std of size is 0.0"),
        ({"encoder": [{**COLUMN, "kind": "color"}]}, "the encoder of size has kind 'color'"),
        ({"encoder": [{**WORDS, "values": [1]}]}, "values of size is int"),
        ({"encoder": [{**WORDS, "idf": [-1]}]}, "idf of size is -1"),
        (
            {"encoder": [{**WORDS, "values": ["a"], "idf": [1.0, 1.0]}]},
            "another number of words and idf",
        ),
        ({"settings": {"steps": 0}}, "steps"),
    ],
)
def test_the_invalid_entry_is_named(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_info(make_info(**changes))


def test_a_custom_backbone_is_not_looked_up():
    settings = {"backbone": "of another package", "epochs": 3}
    check_info(make_info(method="gcn", settings=settings))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"proba": np.array([[0.9951, 0.0], [0.5, 0.5049]])},  # rounding errors of the sum
        {"labeled_stage": np.array([-1, 7])},
    ],
)
def test_valid_arrays_are_accepted(changes):
    check_arrays(make_arrays(**changes), GRAPH)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proba": np.array([[1.001, -0.001], [0.5, 0.5]])}, "not probabilities"),
        ({"proba": np.array([[0.5, 0.485], [0.5, 0.5]])}, "not probabilities"),
        ({"proba": np.array([[0.5, 0.515], [0.5, 0.5]])}, "not probabilities"),
        ({"proba": np.array([[0.5, np.nan], [0.5, 0.5]])}, "not probabilities"),
        ({"proba": np.full((2, 3), 1 / 3)}, "proba is float64"),
        ({"proba": np.array([[0, 1], [1, 0]])}, "proba is int64"),
        ({"agreement": np.array([0.5, 1.01])}, "outside 0 … 1"),
        ({"agreement": np.array([-0.01, 0.5])}, "outside 0 … 1"),
        ({"labeled_stage": np.array([-2, 0])}, "negative stages"),
        ({"val": np.array([0, 1])}, "val is int64"),
        ({"pool": np.array([True])}, "pool is bool"),
    ],
)
def test_the_invalid_array_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_arrays(make_arrays(**changes), GRAPH)


def make_config(**changes):
    sizes = {"replicas": 1, "num_features": 3, "hidden": 2, "num_classes": 2, "dropout": 0.5}
    return {**sizes, **changes}


@pytest.mark.parametrize(
    "changes", [{}, {"hidden": 6}, {"hidden": 1}, {"dropout": 0}, {"dropout": 0.99}]
)
def test_a_network_may_be_as_large_as_its_largest_parameter(changes):
    check_sizes(make_config(**changes), {"a": torch.zeros(2), "b": torch.zeros(3, 2)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 7}, "hidden 7, but its parameters are smaller"),
        ({"num_features": 0}, "num_features 0, but its parameters are smaller"),
        ({"replicas": 1.0}, r"replicas 1\.0, but its parameters are smaller"),
        ({"dropout": 1}, "a network has dropout 1"),
        ({"dropout": -0.1}, r"a network has dropout -0\.1"),
        ({"dropout": None}, "a network has dropout None"),
    ],
)
def test_a_network_larger_than_its_parameters_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        check_sizes(make_config(**changes), {"a": torch.zeros(2), "b": torch.zeros(3, 2)})


def test_a_network_without_parameters_has_sizes_of_one():
    sizes = {"replicas": 1, "num_features": 1, "hidden": 1, "num_classes": 1}
    check_sizes(make_config(**sizes), {})
    with pytest.raises(ValueError, match="num_classes 2"):
        check_sizes(make_config(**{**sizes, "num_classes": 2}), {})


def test_the_warning_about_a_changed_file_points_to_the_caller(run, tmp_path):
    shutil.copytree(run.folder, tmp_path / "copy")
    (tmp_path / "copy" / "metrics.json").write_text(json.dumps({}))
    with pytest.warns(UserWarning, match=r"metrics.json was changed") as found:
        open_run(tmp_path / "copy")
    assert [warning.filename for warning in found] == [__file__]
