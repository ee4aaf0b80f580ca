"""Devices, threads and node order."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dcgst.errors import InputError
from dcgst.train import device as locality
from dcgst.train.device import SMALL, locality_order, resolve_device, threads_for


def test_devices_by_name():
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["gpu", "mps", "meta", ""])
def test_unknown_devices_are_refused(name):
    with pytest.raises(InputError, match="device must be auto, cpu, cuda or cuda:N"):
        resolve_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_refused():
    with pytest.raises(InputError, match="'cuda:1' was requested, but no CUDA GPU is available"):
        resolve_device("cuda:1")


def test_small_graphs_use_one_thread_and_the_number_is_restored():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threads_for(SMALL):
            assert torch.get_num_threads() == 2
        with contextlib.suppress(InterruptedError), threads_for(SMALL - 1):
            assert torch.get_num_threads() == 1
            raise InterruptedError  # restored after an error too
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_locality_order_is_a_permutation_that_places_neighbors_together(monkeypatch):
    """A path whose nodes are numbered at random."""
    n = 200
    order = np.random.default_rng(0).permutation(n)
    path = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1], format="csr")
    shuffled = sp.csr_array(path[order][:, order])
    assert locality_order(shuffled) is None  # small
    monkeypatch.setattr(locality, "LARGE", n)
    found = locality_order(shuffled)
    assert sorted(found.tolist()) == list(range(n))
    coo = shuffled[found][:, found].tocoo()
    assert abs(coo.row - coo.col).max() == 1
