"""How much memory may be used: machine, control groups, ulimit, and an explicit limit."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from dcgst import InputError, memory
from dcgst.memory import available_memory, check_memory, no_collection, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100", 100),
        ("1kb", 1024),
        ("2 MiB", 2 * 2**20),
        ("1.5G", 3 * 2**29),
        ("4GB", 4 * 2**30),
        ("1t", 2**40),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "4 apples", "-1GB", "0", "1e3", "nan"])
def test_invalid_sizes(text):
    with pytest.raises(InputError, match="a memory size is a number and a unit, like 4GB"):
        parse_size(text)


def test_the_machine_is_an_upper_bound():
    assert 0 < available_memory() <= psutil.virtual_memory().total


def test_more_than_available_is_an_error():
    with pytest.raises(InputError, match=r"it needs about 1,048,576.0 GiB of memory, .*; wait"):
        check_memory(2**50, "it needs", "wait")
    check_memory(1, "it needs", "wait")


@pytest.mark.parametrize(
    ("line", "names", "folder"),
    [
        ("0::/a/b", ("memory.max", "memory.current"), "a/b"),
        ("0::/a/b", ("memory.max", "memory.current"), "a"),
        ("0::/a/b", ("memory.max", "memory.current"), ""),
        ("9:memory:/a", ("memory.limit_in_bytes", "memory.usage_in_bytes"), "memory/a"),
    ],
)
def test_control_groups_and_their_parents_are_bounds(tmp_path, monkeypatch, line, names, folder):
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    (group / names[0]).write_text("5000\n")
    (group / names[1]).write_text("3000\n")
    read_text = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda self: f"{line}\n" if str(self) == "/proc/self/cgroup" else read_text(self),
    )
    assert memory._cgroup_bounds(tmp_path) == [2000]
    (group / names[0]).write_text("max\n")
    assert memory._cgroup_bounds(tmp_path) == []
    (group / names[0]).write_text(str(2**63 - 4096))  # no limit, in version 1
    assert memory._cgroup_bounds(tmp_path) == []


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_limit_on_the_address_space_is_a_bound():
    code = (
        "import resource; from dcgst.memory import available_memory;"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, resource.RLIM_INFINITY));"
        "print(available_memory() < 2**31)"
    )
    assert run_python(code).stdout == "True\n"


def test_an_explicit_limit_is_a_bound_and_stops_larger_allocations():
    code = (
        "from dcgst.memory import available_memory, limit_memory;"
        "limit_memory(2**29); print(available_memory() < 2**29); bytearray(2**30)"
    )
    done = run_python(code)
    assert done.stdout == "True\n"
    assert done.stderr.strip().endswith("MemoryError")


def test_a_limit_below_the_size_of_the_program_is_refused():
    with pytest.raises(InputError, match="is less than the program itself needs"):
        memory.limit_memory(1000)


def test_cached_files_of_a_control_group_count_as_free(tmp_path, monkeypatch):
    for name, text in (
        ("memory.max", "5000"),
        ("memory.current", "4900"),
        ("memory.stat", "anon 900\ninactive_file 4000\n"),
    ):
        (tmp_path / name).write_text(text)
    read_text = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda self: "0::/\n" if str(self) == "/proc/self/cgroup" else read_text(self),
    )
    assert memory._cgroup_bounds(tmp_path) == [4100]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (ImportError("libx.so: failed to map segment from shared object"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_errors_that_mean_missing_memory(error, expected):
    assert memory.is_out_of_memory(error) == expected


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_paused_and_restored(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with contextlib.suppress(ZeroDivisionError), no_collection():
            assert not gc.isenabled()
            _ = 1 / 0
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
