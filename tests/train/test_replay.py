"""Steps that are repeated: the same values whether they are captured or called."""

from __future__ import annotations

import pytest
import torch

from dcgst.datasets import synthetic
from dcgst.methods import DCGST
from dcgst.splits import sample
from dcgst.train.random import Streams
from dcgst.train.training import Repeated

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_calls_change_tensors_in_place(device):
    total = torch.zeros(2, device=device)
    step = Repeated(lambda: total.add_(1), total.device)
    results = [step().clone() for _ in range(6)]
    assert [result[0].item() for result in results] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("device", DEVICES)
def test_random_numbers_are_those_of_the_streams(device):
    streams, same = (Streams([3, 4], device) for _ in range(2))
    step = Repeated(lambda: streams.uniform(5), torch.device(device), [streams])
    for _ in range(6):
        assert torch.equal(step(), same.uniform(5))


@needs_gpu
def test_a_fit_is_the_same_without_capture(monkeypatch):
    graph = synthetic(300, 3, features=8)
    split = sample(graph, per_class=4, runs=1)
    captured = DCGST(device="cuda").fit(graph, split).proba_
    monkeypatch.setattr(Repeated, "enabled", False)
    called = DCGST(device="cuda").fit(graph, split).proba_
    assert abs(captured - called).max() < 1e-5


@needs_gpu
def test_a_step_that_waits_for_the_gpu_is_called():
    total = torch.zeros(2, device="cuda")
    step = Repeated(lambda: total.add_(1 + 0 * total.sum().item()), total.device)
    assert [step()[0].item() for _ in range(6)] == [1, 2, 3, 4, 5, 6]
