"""What tests of methods share."""

from __future__ import annotations

import pytest

from dcgst.graph import Graph


@pytest.fixture(scope="session")
def graph(shifted) -> Graph:
    """The small graph with biased labels."""
    return shifted
