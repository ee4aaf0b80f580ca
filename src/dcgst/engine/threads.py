"""Number of CPU threads by graph size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 10_000
"""Number of nodes below which a second thread costs more than it saves."""


@contextmanager
def threads_for(num_nodes: int) -> Iterator[None]:
    """Use one thread on a small graph; on a large graph keep the current number."""
    before = torch.get_num_threads()
    if num_nodes < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
