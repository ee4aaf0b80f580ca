"""Fitted models as tensors and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from dcgst import InputError
from dcgst.methods.result import CANDIDATE
from dcgst.methods.row_models import Affine, MeanRows
from dcgst.methods.storage import dump, restore, stored
from dcgst.nn import MLPBackbone
from dcgst.train.checkpoint import Checkpoint
from tests.methods.helpers import draw


def round_trip(value):
    description, tensors = dump(value)
    return restore(json.loads(json.dumps(description)), tensors)


def test_values_are_the_same_afterwards():
    table = np.zeros(2, dtype=CANDIDATE)
    table["node"], table["confidence"] = [3, 4], [0.5, 0.25]
    value = {"a": [1, 2.5, None, "x", True], "b": (np.arange(3, dtype=np.int16), table)}
    found = round_trip(value)
    assert found["a"] == value["a"]
    assert isinstance(found["b"], tuple)
    for own, expected in zip(found["b"], value["b"], strict=True):
        assert own.dtype == expected.dtype
        np.testing.assert_array_equal(own, expected)


def test_models_predict_the_same_afterwards():
    affine = round_trip(MeanRows([Affine(draw(0, 2), draw(1, 2, 3))], [draw(2, 2)])).models[0]
    values = draw(3, 2, 5, 3)
    expected = Affine(draw(0, 2), draw(1, 2, 3)).apply(values)
    assert torch.equal(affine.apply(values), expected)
    network = MLPBackbone([3, 4], 6, 5, 2)
    again = round_trip(network)
    x = draw(4, 7, 6)
    assert torch.equal(again(x, None).logits, network(x, None).logits)


def test_equal_tensors_are_stored_once():
    same = torch.ones(3, 2)
    _, tensors = dump([same, torch.ones(3, 2), torch.ones(2, 3), torch.ones(3, 2).double()])
    assert len(tensors) == 3


def test_only_known_kinds_are_stored_and_restored():
    @dataclass
    class Unknown:
        value: int

    with pytest.raises(InputError, match="Unknown cannot be stored"):
        dump(Unknown(1))
    with pytest.raises(KeyError):
        restore({"kind": "os.system", "parts": {}}, {})


def test_a_network_larger_than_its_parameters_is_refused():
    description, tensors = dump(MLPBackbone([0], 6, 5, 2))
    description["network"]["hidden"] = 10**9
    with pytest.raises(ValueError, match="hidden 1000000000, but its parameters are smaller"):
        restore(description, tensors)


def test_a_stored_value_is_not_computed_again(tmp_path):
    calls = []

    def compute() -> Affine:
        calls.append(1)
        return Affine(torch.tensor([float(len(calls))]))

    def value(reuse: bool) -> float:
        found = stored(Checkpoint(tmp_path), "step", compute, "cpu", reuse=reuse)
        return float(found.factor)

    assert [value(True), value(True), value(False), value(True)] == [1, 1, 2, 2]
    assert float(stored(Checkpoint(), "step", compute, "cpu").factor) == 3
