"""Interrupted fits: a folder is complete or says that it is not, and a fit can be resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dcgst import DCGST, ST, InputError, fit, open_run
from tests.runs.helpers import QUICK

FILES = ("predictions.csv", "history.csv", "candidates.csv.gz", "model.safetensors",
         "graph.npz",
         "metrics.json", "run.json")  # fmt: skip


class DiskFull(Exception):  # noqa: N818
    """Raised in place of writing a file."""


def make_writing_fail(monkeypatch, file_name: str) -> None:
    """Raise when a file of that name is to be written."""
    replace = os.replace

    def failing(source, target):
        if Path(target).name == file_name:
            raise DiskFull
        replace(source, target)

    monkeypatch.setattr("dcgst.files.os.replace", failing)


@pytest.fixture(scope="module")
def interrupted(graph, tmp_path_factory):
    """Return a function that makes a fit fail at a file, and returns its folder."""
    folder = tmp_path_factory.mktemp("interrupted") / "run"

    def interrupt(file_name: str) -> Path:
        with pytest.MonkeyPatch.context() as monkeypatch:
            make_writing_fail(monkeypatch, file_name)
            with pytest.raises(DiskFull):
                fit(graph, folder, DCGST(replicas=2, **QUICK), resume=True)
        return folder

    return interrupt


@pytest.mark.parametrize("file_name", FILES)
def test_a_folder_without_its_last_file_is_an_interrupted_run(graph, interrupted, file_name):
    folder = interrupted(file_name)
    with pytest.raises(
        InputError, match="contains an interrupted run; continue its fit with resume=True"
    ):
        open_run(folder)
    with pytest.raises(InputError, match="already contains an interrupted run"):
        fit(graph, folder, DCGST(replicas=2, **QUICK))


def test_a_fit_that_failed_while_writing_is_resumed_to_the_same_files(graph, run, interrupted):
    folder = interrupted("run.json")
    assert {path.name for path in folder.iterdir()} == {*FILES[:-1], "begun.json", "checkpoint"}
    events = []
    model = DCGST(replicas=2, **QUICK)
    fit(graph, folder, model, resume=True, callbacks=[events.append])
    assert not [event for event in events if hasattr(event, "loss")], "no epoch is repeated"
    assert_same_run(folder, run.folder)


@pytest.mark.parametrize("last", [5, 15, 30])
def test_a_fit_interrupted_while_training_is_resumed_to_the_same_files(graph, run, tmp_path, last):
    count = 0

    def interrupt(event):
        nonlocal count
        count += 1
        if count == last:
            raise KeyboardInterrupt

    model = DCGST(replicas=2, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        fit(graph, tmp_path / "run", model, callbacks=[interrupt])
    fit(graph, tmp_path / "run", model, resume=True)
    assert_same_run(tmp_path / "run", run.folder)


SCRIPT = """
import os, signal, sys
from pathlib import Path
from dcgst import InputError, fit, open_run
from tests.runs.helpers import small_graph
from tests.runs.test_interruption import self_training

folder, graph, replace = Path(sys.argv[1]), small_graph(), os.replace
allowed, count = 2, 0
self_training().fit(graph)  # imports what all children need

def replace_or_die(source, target):
    global count
    count += 1
    if count > allowed:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

while True:
    child = os.fork()
    if not child:
        os.replace = replace_or_die
        fit(graph, folder, self_training(), resume=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        break
    try:
        print("complete" if open_run(folder) else "")
    except InputError as error:
        print("interrupted" if "interrupted run" in str(error) else error)
    if (folder / "predictions.csv").exists():  # only the files of the result are missing
        allowed += 1
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Fits in child processes that kill themselves before a file is moved to its place."""


def self_training() -> ST:
    return ST(replicas=2, stages=3, epochs=3, hidden=8)


def test_a_fit_killed_again_and_again_is_resumed_to_the_same_files(graph, tmp_path):
    expected = fit(graph, tmp_path / "expected", self_training())
    folder = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills = done.stdout.split()
    assert len(kills) >= 8
    assert set(kills) == {"interrupted"}
    assert_same_run(folder, expected.folder)


def assert_same_run(folder: Path, expected: Path) -> None:
    """Two folders hold the same files, except for times in ``run.json``."""
    assert not (folder / "checkpoint").exists()
    for name in (name for name in FILES[:-1] if (expected / name).exists()):
        assert (folder / name).read_bytes() == (expected / name).read_bytes(), name
    left, right = (json.loads((path / "run.json").read_text()) for path in (folder, expected))
    assert {k for k in left if left[k] != right[k]} <= {"created", "seconds", "digest"}
