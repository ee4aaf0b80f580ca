"""How much memory this process may use: by machine, container, ``ulimit`` and ``--memory``."""

from __future__ import annotations

import contextlib
import gc
import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import psutil

from dcgst.errors import InputError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_limit: int | None = None
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "ALLOC_FAILED",
    "failed to map segment",
    "can't start new thread",
)
_CGROUPS = Path("/sys/fs/cgroup")


def parse_size(text: str) -> int:
    """Number of bytes of a text like ``4GB``, ``512MiB`` or ``2g``; units are powers of 1024.

    Example:
        >>> parse_size("4GB") == parse_size("4096 MiB") == 4 * 2**30
        True
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    if not found or float(found[1]) == 0:
        raise InputError(f"a memory size is a number and a unit, like 4GB or 500MB, got {text!r}")
    return int(min(float(found[1]) * _UNITS[found[2]], 2.0**60))


def limit_memory(size: int) -> None:
    """Let this process use at most ``size`` bytes; allocations beyond it fail."""
    global _limit
    used = psutil.Process().memory_info().rss
    if size <= used:
        raise InputError(
            f"a memory limit of {in_gib(size)} is less than the program itself needs "
            f"({in_gib(used)})"
        )
    _limit = size
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with contextlib.suppress(ValueError):  # a lower hard limit applies already
            resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


def memory_limit() -> int | None:
    """The limit that :func:`limit_memory` set, in bytes."""
    return _limit


@contextlib.contextmanager
def unlimited_addresses() -> Iterator[None]:
    """Let allocations exceed the limit of :func:`limit_memory`.

    For libraries that observe a limit of their own, but reserve addresses that they do not use.
    """
    limits = resource and resource.getrlimit(resource.RLIMIT_DATA)
    if limits:
        resource.setrlimit(resource.RLIMIT_DATA, (limits[1], limits[1]))
    try:
        yield
    finally:
        if limits:
            resource.setrlimit(resource.RLIMIT_DATA, limits)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pause garbage collection.

    Reading a large table creates millions of texts that are all kept. The collector would visit
    them again and again, which takes as long as reading them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; libraries have several types and texts for it."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY)


def available_memory() -> int:
    """Bytes that this process can still allocate."""
    process = psutil.Process().memory_info()
    bounds = [psutil.virtual_memory().available, *_cgroup_bounds(_CGROUPS)]
    if resource is not None:
        address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
        if address_space != resource.RLIM_INFINITY:
            bounds.append(address_space - process.vms)
    if _limit is not None:
        bounds.append(_limit - process.rss)
    return max(0, int(min(bounds)))


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise if more memory is needed than is available.

    Args:
        needed: number of bytes.
        what: what needs them, the subject of the message.
        remedy: what the user can do.
    """
    available = available_memory()
    if needed > available:
        within = "" if _limit is None else f" of the {in_gib(_limit)} that are allowed"
        raise InputError(
            f"{what} about {in_gib(needed)} of memory, {in_gib(available)}{within} are available; "
            f"{remedy}"
        )


def in_gib(size: float) -> str:
    """A number of bytes for people.

    Example:
        >>> in_gib(3 * 2**29), in_gib(3 * 2**20)
        ('1.5 GiB', '3 MiB')
    """
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def _cgroup_bounds(root: Path) -> list[int]:
    """Limit minus usage of the control groups of this process, versions 1 and 2."""
    bounds = []
    for limit_name, usage_name, folder in _cgroup_folders(root):
        try:
            limit = int((folder / limit_name).read_text())
            usage = int((folder / usage_name).read_text()) - _reclaimable(folder)
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if limit < 2**60:
            bounds.append(limit - usage)
    return bounds


def _reclaimable(folder: Path) -> int:
    """Bytes of cached files, which are freed when memory is needed."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split() for line in lines if len(line.split()) == 2)
    return int(values.get("inactive_file", values.get("total_inactive_file", 0)))


def _cgroup_folders(root: Path) -> list[tuple[str, str, Path]]:
    """Names of the limit and usage files, and the folder, of each group from the root down."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            top, names = root, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            top, names = root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        folder = top / group.strip("/")
        # Inside a container the path may be that of the host: the root is then the own group.
        while True:
            found.append((*names, folder))
            if folder == top or top not in folder.parents:
                break
            folder = folder.parent
    return found


def forget(*arrays: object) -> None:
    """Release the resident pages of memory-mapped arrays; they are read again when needed."""
    for array in arrays:
        while not hasattr(array, "_mmap") and getattr(array, "base", None) is not None:
            array = array.base  # type: ignore[attr-defined]
        mapped = getattr(array, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
