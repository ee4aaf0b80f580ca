"""Which modules of the working directory run: those that the user names, and no others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dcgst
from tests.cli.helpers import dcgst as run

OPTIONAL = ("dill", "cuda", "pynvml", "torchcomms", "sitecustomize", "usercustomize")
"""Modules that libraries look for."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with modules that leave a trace when they run."""
    for name in OPTIONAL:
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()\n")
    info = tmp_path / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dcgst.methods]\nevil = dill:Method\n")
    (tmp_path / "helper.py").write_text("EPOCHS = 2\n")
    (tmp_path / "mine.py").write_text(
        "import helper\nfrom dcgst import GCN\nclass Mine(GCN):\n    name = 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("mine", "helper"):
        sys.modules.pop(name, None)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A new process, as in a terminal."""
    start = f"import sys; sys.path[:] = [p for p in sys.path if p] + {[dcgst.__path__[0] + '/..']}"
    code = f"{start}; from dcgst.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def traces(folder) -> list[str]:
    return sorted(path.name for path in folder.glob("ran-*"))


def test_no_module_of_the_working_directory_runs_unless_it_is_named(folder):
    done = command("methods")
    assert done.returncode == 0, done.stderr
    assert "evil" not in done.stdout
    assert traces(folder) == []


def test_a_named_module_runs_with_what_it_imports(folder):
    done = command(
        *("bench", "--method", "mine:Mine", "--dataset", "synthetic/200", "--per-class", "4"),
        *("--runs", "2", "--set", "epochs=2", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert '"method": "mine:Mine"' in done.stdout
    assert traces(folder) == []
    assert command("--import", "helper", "methods").returncode == 0


def test_processes_that_are_started_find_the_named_modules(folder):
    bench = ("bench", "--suite", "--dataset", "synthetic/200", "--method", "mine:Mine")
    done = command(*bench, "--runs", "1", "--workers", "2", "--results", "suite.jsonl")
    assert done.returncode == 0, done.stderr
    assert "mine:Mine" in done.stdout
    assert traces(folder) == []


def test_the_path_is_as_before_after_an_import(folder):
    before = list(sys.path)
    assert run("--import", "mine", "methods").code == 0
    assert sys.path == before
    assert str(folder) not in sys.path
    assert str(folder) not in os.environ.get("DCGST_WORKING_DIRECTORY_MODULES", "")
