"""Where a figure comes from: device, commit, memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import resource
import subprocess
from functools import cache
from pathlib import Path

import torch


@cache
def commit() -> str | None:
    """The commit that is checked out, with a plus if files differ from it; None outside of git.

    ``DCGST_COMMIT`` says it for a copy that git does not know.
    """
    if stated := os.environ.get("DCGST_COMMIT"):
        return stated
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(folder.parent))
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def device_name(device: torch.device) -> str:
    """The graphics card, or the kind of processor."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"


class PeakMemory:
    """The most memory in use at once since it was made, in MiB.

    On a GPU what tensors took there; on a CPU what the process held, where the system lets it be
    counted anew, and otherwise the most since the process began.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            gc.collect()
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)  # what earlier work left is given back
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")

    def mib(self) -> float:
        if self.device.type == "cuda":
            return round(torch.cuda.max_memory_allocated(self.device) / 2**20, 1)
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
