"""Fixtures for all tests. Each test process uses one thread, because several run in parallel."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # results are exactly reproducible on a CPU only

from dataclasses import replace

import numpy as np
import pytest
import torch

from dcgst.datasets import DATASETS, synthetic
from dcgst.graph import Graph
from dcgst.methods import sampling

torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def shifted() -> Graph:
    """A small graph with biased labels."""
    return synthetic(240, 3, features=12, labels_per_class=4, seed=2)


@pytest.fixture
def sample_sizes(monkeypatch):
    """Change from how many nodes a graph is large, and how many nodes a sample has at most."""

    def change(**sizes: int) -> None:
        monkeypatch.setattr(sampling, "SIZES", replace(sampling.SIZES, **sizes))

    return change


@pytest.fixture
def need_data():
    """Skip the test unless the named dataset is on this machine."""

    def check(name: str) -> None:
        if not DATASETS[name].available():
            pytest.skip(f"{name} is not available; set DCGST_DATA to a folder that contains it")

    return check
