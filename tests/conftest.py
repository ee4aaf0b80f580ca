"""What all tests share. One thread each: they run side by side."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # exact equality is a promise of the CPU only

import numpy as np
import pytest
import torch

from dcgst.datasets import CATALOGUE, synthetic
from dcgst.graph import Graph

torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def shifted() -> Graph:
    """A small graph with biased labels."""
    return synthetic(240, 3, features=12, labels_per_class=4, seed=2)


@pytest.fixture
def need_data():
    """Skip unless the named data set is on this machine."""

    def check(name: str) -> None:
        if not CATALOGUE[name].present(name):
            pytest.skip(f"{name} is not here; set DCGST_DATA to a folder that holds it")

    return check
