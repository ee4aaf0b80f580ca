"""How many threads are worth their overhead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 10_000
"""Nodes below which handing work to a second thread costs more than it saves."""


@contextmanager
def threads_for(num_nodes: int) -> Iterator[None]:
    """One thread on a small graph; on a large one as many as there were."""
    before = torch.get_num_threads()
    if num_nodes < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
