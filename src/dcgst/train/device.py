"""The device to compute on, its threads, and node orders that suit it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from dcgst.errors import InputError


def resolve_device(name: str) -> torch.device:
    """Return the device of that name; ``auto`` is a GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} was requested, but no CUDA GPU is available")
    return device


def usable_memory(device: torch.device) -> float:
    """Bytes that this process may use on a GPU, whatever is used now; infinite for the CPU.

    The same during a whole fit, and when it is resumed.
    """
    if device.type == "cpu":
        return float("inf")
    _, total = torch.cuda.mem_get_info(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    return float(min(0.9, torch.cuda.get_per_process_memory_fraction(index)) * total)


def free_memory(device: torch.device) -> float:
    """Bytes that can still be allocated on a GPU; infinite for the CPU, which has other limits."""
    if device.type == "cpu":
        return float("inf")
    device = torch.device(
        "cuda", torch.cuda.current_device() if device.index is None else device.index
    )
    free, total = torch.cuda.mem_get_info(device)
    used = torch.cuda.memory_allocated(device)
    unused = torch.cuda.memory_reserved(device) - used
    allowed = torch.cuda.get_per_process_memory_fraction(device) * total - used
    return float(min(free + unused, allowed))


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


LARGE = 50_000
"""Number of nodes from which reordering pays; below, activations fit into the CPU cache."""


def locality_order(adjacency: sp.csr_array) -> NDArray[np.int64] | None:
    """Return the reverse Cuthill–McKee order, which places neighbors close together in memory.

    Sparse products take a third less time. ``None`` on small graphs.
    """
    if adjacency.shape[0] < LARGE:
        return None
    order = reverse_cuthill_mckee(sp.csr_matrix(adjacency), symmetric_mode=True)
    return np.asarray(order, dtype=np.int64)
