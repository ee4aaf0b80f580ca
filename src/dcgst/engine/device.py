"""Choice of the device to compute on."""

from __future__ import annotations

import torch

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
