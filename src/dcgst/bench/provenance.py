"""Origin of a result: commit, device and peak memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import psutil
import torch


@cache
def current_commit() -> str | None:
    """Return the commit of this source tree, with a plus sign if tracked files were modified.

    The environment variable ``DCGST_COMMIT`` overrides it, for a copy without a git repository.

    Returns:
        The abbreviated commit, or None outside a git repository.
    """
    if override := os.environ.get("DCGST_COMMIT"):
        return override
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        modified = git("status", "--porcelain", "--untracked-files=no", "--", str(folder.parent))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if modified else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def device_name(device: torch.device) -> str:
    """Return the name of the GPU, or the architecture and number of threads of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"


class PeakMemory:
    """Peak memory in use since the object was created.

    On a GPU, this is the memory of tensors. On a CPU, it is the resident memory of the process.
    If the operating system cannot reset that peak, it counts from the start of the process.

    Args:
        device: Device to measure.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            gc.collect()
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)  # return free memory to the operating system
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # reset VmHWM

    def mib(self) -> float:
        """Return the peak so far in MiB."""
        if self.device.type == "cuda":
            return round(torch.cuda.max_memory_allocated(self.device) / 2**20, 1)
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
        return float(round(psutil.Process().memory_info().rss / 2**20, 1))
