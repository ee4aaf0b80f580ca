"""A full disk, a folder in use, and a killed process: nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from typing import ClassVar

import filelock
import numpy as np
import pytest

from dcgst import DCGST, GCN, InputError, fit
from dcgst.errors import WriteError
from dcgst.runs.folder import locked
from tests.runs.helpers import QUICK


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system of the given size in KiB and returns its folder."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system requires root")
    mounted = []

    def mount(size: int):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
        done = subprocess.run(["mount", *options], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip("this environment does not allow mounting a file system")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=False)


def test_a_full_disk_is_an_error_and_the_fit_can_be_resumed(graph, tmp_path, small_disk):
    expected = fit(graph, tmp_path / "whole", DCGST(**QUICK)).result.proba
    size = sum(path.stat().st_size for path in (tmp_path / "whole").iterdir()) // 1024
    failures = 0
    for share in np.linspace(0.1, 1.2, 20):
        disk = small_disk(max(8, int(share * size)))
        try:
            fit(graph, disk / "run", DCGST(**QUICK))
        except WriteError as error:
            failures += 1
            assert "No space left on device" in str(error)  # noqa: PT017
            assert not list(disk.rglob("*.part"))
        else:
            continue
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        found = fit(graph, disk / "run", DCGST(**QUICK), resume=(disk / "run").exists())
        np.testing.assert_array_equal(found.result.proba, expected)
    assert failures >= 8


def test_a_folder_in_use_is_refused(graph, tmp_path):
    fit(graph, tmp_path / "run", GCN(epochs=2))
    with locked(tmp_path / "run"):
        for options in ({"overwrite": True}, {"resume": True}, {}):
            with pytest.raises(InputError, match="another process is fitting into"):
                fit(graph, tmp_path / "run", GCN(epochs=2), **options)
    assert fit(graph, tmp_path / "run", GCN(epochs=2), resume=True).folder.exists()


def test_a_lock_of_a_killed_process_does_not_block(graph, tmp_path):
    code = (
        "import os, signal; from pathlib import Path; from dcgst.runs.folder import locked\n"
        f"with locked(Path({str(tmp_path / 'run')!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert (tmp_path / "run" / ".lock").exists()
    fit(graph, tmp_path / "run", GCN(epochs=2))
    assert not (tmp_path / "run" / ".lock").exists()


def test_temporary_files_of_a_killed_process_are_removed(graph, tmp_path):
    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(graph, tmp_path / "run", GCN(epochs=2), callbacks=[interrupt])
    (tmp_path / "run" / ".abc.part").write_text("")
    fit(graph, tmp_path / "run", GCN(epochs=2), resume=True)
    assert not list((tmp_path / "run").glob(".*.part"))


def test_a_fit_that_cannot_succeed_leaves_nothing(graph, tmp_path):
    with pytest.raises(InputError, match="diverged"):
        fit(graph, tmp_path / "run", GCN(epochs=20, lr=1e20))
    assert not (tmp_path / "run").exists()


@pytest.fixture
def locks(monkeypatch):
    """The locks that are created; ``error`` is raised when one is acquired."""

    class Recorded(filelock.FileLock):
        created: ClassVar[list[Recorded]] = []
        error: ClassVar[Exception | None] = None

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.created.append(self)

        def acquire(self, *arguments, **options):
            if self.error is not None:
                raise self.error
            return super().acquire(*arguments, **options)

    monkeypatch.setattr(filelock, "FileLock", Recorded)
    return Recorded


def test_the_lock_is_held_inside_and_released_at_the_end(tmp_path, locks):
    with locked(tmp_path / "run"):
        assert locks.created[0].is_locked
    assert not locks.created[0].is_locked


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError(),
        OSError(errno.ENOLCK, ""),
        OSError(errno.EOPNOTSUPP, ""),
        OSError(errno.ENOSYS, ""),
    ],
)
def test_a_file_system_without_locks_can_be_used(tmp_path, locks, error):
    locks.error = error
    with locked(tmp_path / "run"):
        assert (tmp_path / "run").is_dir()


def test_other_errors_of_the_lock_name_the_folder(tmp_path, locks):
    locks.error = OSError(errno.EROFS, "Read-only file system")
    with (
        pytest.raises(WriteError, match=r"run cannot be written: Read-only file system"),
        locked(tmp_path / "run"),
    ):
        pass


def test_an_empty_folder_is_removed_only_if_it_is_new(tmp_path):
    (tmp_path / "old").mkdir()
    for name in ("old", "new/deep"):
        with locked(tmp_path / name):
            assert (tmp_path / name).is_dir()
    assert (tmp_path / "old").is_dir()
    assert not (tmp_path / "new" / "deep").exists()
