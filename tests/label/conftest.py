"""Fixtures of the tests of the labeling page."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcgst import EM, Run, fit
from dcgst.tables import Columns, Input
from tests.runs.helpers import small_graph, with_known_truth

HOSTILE = "<img src=x onerror=alert(1)>"
"""A value that would run a script if a page treated text as markup."""

TRUTH = ["abc"[code] for code in with_known_truth(small_graph()).labels]


@pytest.fixture(scope="session")
def stored(tmp_path_factory) -> Path:
    """The folder of a run of EM with a table; never changed."""
    graph = small_graph()
    ids = np.array([f"n{i:03d}" if i != 50 else f"n050{HOSTILE}" for i in range(120)])
    graph = replace(graph, ids=ids, class_names=("a", "b", "c"))
    table = {"id": ids.tolist(), "title": [f"about {i} {HOSTILE}" for i in range(120)]}
    data = Input(graph, columns=Columns(id="id", label="kind"), table=table)
    return fit(data, tmp_path_factory.mktemp("labeled") / "run", EM()).folder


@pytest.fixture
def folder(stored, tmp_path) -> Path:
    """A copy of the run, beside which a test may write."""
    return Path(shutil.copytree(stored, tmp_path / "run"))


def truth_of(run: Run, node: int) -> str:
    return TRUTH[node]


@contextmanager
def label_server(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``dcgst label`` in another process; yields the address and the process."""
    command = [sys.executable, "-m", "dcgst", "label", str(folder), "--no-browser", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout:
                found = re.search(r"http://\S+", line)
                if found:
                    break
            yield found[0], process
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait(timeout=30)
