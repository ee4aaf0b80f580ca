"""Checkpoints: a computation gives the same result after any interruption."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import METHODS, method
from dcgst.train.checkpoint import Checkpoint


def number(value):
    return lambda: {"x": torch.tensor(value)}


def test_stored_steps_are_found_by_name_in_any_order(tmp_path):
    first = Checkpoint(tmp_path)
    assert [int(first.step(name, number(i))["x"]) for name, i in (("a", 5), ("b", 7))] == [5, 7]
    second = Checkpoint(tmp_path)
    for name, value in (("b", 7), ("a", 5)):
        assert int(second.step(name, lambda: pytest.fail("computed again"))["x"]) == value
    assert int(second.step("c", number(9))["x"]) == 9


def test_stored_tensors_keep_names_types_and_values(tmp_path):
    tensors = {"x": torch.rand(3, 4), "y": torch.tensor([True, False]), "z": torch.arange(3)}
    Checkpoint(tmp_path).step("a", lambda: tensors)
    stored = Checkpoint(tmp_path).step("a", lambda: pytest.fail("computed again"))
    assert stored.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(stored[name], tensor)
        assert stored[name].dtype == tensor.dtype


def test_two_steps_of_one_name_are_an_error(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    checkpoint.step("a", number(1))
    with pytest.raises(ValueError, match="two checkpoint steps are named 'a'"):
        checkpoint.step("a", number(2))


def test_a_damaged_step_is_computed_again_and_stored(tmp_path):
    Checkpoint(tmp_path).step("a", lambda: {"x": torch.ones(3)})
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:20])
    assert Checkpoint(tmp_path).step("a", lambda: {"x": torch.zeros(3)})["x"].sum() == 0
    stored = Checkpoint(tmp_path).step("a", lambda: pytest.fail("computed again"))
    assert stored["x"].tolist() == [0, 0, 0]


def test_a_step_that_fails_stores_nothing(tmp_path):
    def fail():
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        Checkpoint(tmp_path).step("a", fail)
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_every_step_is_computed():
    checkpoint = Checkpoint()
    values = [int(checkpoint.step(name, number(i))["x"]) for i, name in enumerate("ab")]
    assert values == [0, 1]


class Interruption(Exception):  # noqa: N818
    pass


class StopAfter:
    """A callback that interrupts a fit after a number of events."""

    def __init__(self, events):
        self.left = events

    def __call__(self, event):
        self.left -= 1
        if self.left == 0:
            raise Interruption


@pytest.mark.parametrize("name", ["dcgst", "gcn", "st", "m3s", "drgst", "srgnn_st", "eerm", "cs"])
def test_a_fit_that_is_interrupted_and_resumed_gives_the_same_result(name, tmp_path):
    graph = synthetic(80, 3, features=8, labels_per_class=3, seed=2)
    settings = {"epochs": 6, "hidden": 8, "replicas": 2, "device": "cpu"}
    if name == "dcgst":
        settings |= {"stage_epochs": 3, "student_epochs": 3, "max_stages": 3}
        settings |= {"edge_predictor": True, "backbone": "gcn", "replicas": 1}
    if "stages" in METHODS[name].from_preset().get_params():
        settings["stages"] = 3
    events = []
    whole = method(name, **settings).fit(graph, callbacks=[events.append])
    rng = np.random.default_rng(0)
    for _ in range(2):
        stop = StopAfter(int(rng.integers(1, len(events))))
        try:
            resumed = method(name, **settings).fit(graph, callbacks=[stop], checkpoint=tmp_path)
        except Interruption:
            resumed = method(name, **settings).fit(graph, checkpoint=tmp_path)
        np.testing.assert_array_equal(resumed.proba_, whole.proba_)
        assert resumed.candidates_.tobytes() == whole.candidates_.tobytes()
        assert resumed.history_ == whole.history_
        for file in sorted(tmp_path.rglob("*.safetensors"))[1::2]:  # lose every second step
            file.unlink()
