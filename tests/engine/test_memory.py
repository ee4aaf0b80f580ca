"""Steps that are kept: the same answers after any interruption."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.engine.memory import Memory
from dcgst.methods import METHODS, method


def test_steps_are_taken_once_and_come_back_in_order(tmp_path):
    first = Memory(tmp_path)
    assert [int(first.step(lambda i=i: {"x": torch.tensor(i)})["x"]) for i in (5, 7)] == [5, 7]
    second = Memory(tmp_path)
    again = [int(second.step(lambda: pytest.fail("computed again"))["x"]) for _ in range(2)]
    assert again == [5, 7]
    assert int(second.step(lambda: {"x": torch.tensor(9)})["x"]) == 9


def test_a_damaged_step_is_taken_again(tmp_path):
    Memory(tmp_path).step(lambda: {"x": torch.ones(3)})
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:20])
    assert Memory(tmp_path).step(lambda: {"x": torch.zeros(3)})["x"].sum() == 0


def test_without_a_folder_nothing_is_kept():
    memory = Memory()
    assert [int(memory.step(lambda i=i: {"x": torch.tensor(i)})["x"]) for i in (1, 2)] == [1, 2]


class Interruption(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("name", ["dcgst", "gcn", "st", "m3s", "drgst", "srgnn_st", "eerm", "cs"])
def test_interrupted_at_any_epoch_a_fit_ends_the_same(name, tmp_path):
    graph = synthetic(80, 3, features=8, labels_per_class=3, seed=2)
    quick = {"epochs": 6, "hidden": 8, "replicas": 2, "device": "cpu"}
    if name == "dcgst":
        quick |= {"stage_epochs": 3, "student_epochs": 3, "max_stages": 4, "edge_predictor": True}
    if "stages" in METHODS[name].from_preset().get_params():
        quick["stages"] = 3
    whole = method(name, **quick).fit(graph)
    epochs = 0

    def count(event):
        nonlocal epochs
        epochs += 1

    method(name, **quick).fit(graph, callbacks=[count])
    rng = np.random.default_rng(0)
    for _ in range(3):
        left = int(rng.integers(1, epochs))

        def stop(event):
            nonlocal left
            left -= 1
            if left == 0:
                raise Interruption

        try:
            resumed = method(name, **quick).fit(graph, callbacks=[stop], checkpoint=tmp_path)
        except Interruption:
            resumed = method(name, **quick).fit(graph, checkpoint=tmp_path)
        np.testing.assert_array_equal(resumed.proba_, whole.proba_)
        assert resumed.audit_.tobytes() == whole.audit_.tobytes()
        assert resumed.history_ == whole.history_
        for folder in sorted(tmp_path.iterdir()):  # as if stopped somewhat earlier
            for file in sorted(folder.iterdir())[2:]:
                file.unlink()
