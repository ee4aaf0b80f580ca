"""Fixtures that the tests of methods share."""

from __future__ import annotations

import pytest

from dcgst.datasets import synthetic
from dcgst.graph import Graph
from dcgst.splits import Split, sample


@pytest.fixture(scope="session")
def graph(shifted) -> Graph:
    """The small graph with biased labels."""
    return shifted


@pytest.fixture(scope="session")
def split(graph) -> Split:
    """One run with biased labels and a few validation nodes."""
    return sample(graph, "ppr-s", per_class=4, runs=1, val_rate=0.05)


@pytest.fixture(scope="session")
def small() -> Graph:
    return synthetic(150, 3, features=8, labels_per_class=4, seed=3)


@pytest.fixture(scope="session")
def one_run(small) -> Split:
    """Biased labels of the small graph, and more validation nodes."""
    return sample(small, "ppr-s", per_class=4, runs=1, val_rate=0.1)
