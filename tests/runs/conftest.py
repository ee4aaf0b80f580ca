"""Fixtures of the tests of run folders."""

from __future__ import annotations

import pytest

from dcgst import DCGST, Graph, Run, fit
from tests.runs.helpers import QUICK, small_graph


@pytest.fixture(scope="session")
def graph() -> Graph:
    return small_graph()


@pytest.fixture(scope="session")
def run(graph, tmp_path_factory) -> Run:
    """A run of DC-GST with two replicas; tests must not change its folder."""
    return fit(graph, tmp_path_factory.mktemp("runs") / "run", DCGST(replicas=2, **QUICK))
