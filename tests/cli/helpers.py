"""Calls of the command line in this process, and tables to call it on."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dcgst.cli import main


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """All output on one line, because tables and messages may be wrapped."""
        return " ".join(f"{self.out} {self.err}".split())


def dcgst(*arguments: object) -> Done:
    """Run ``dcgst`` with the given arguments, without the cost of a new process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["dcgst", *map(str, arguments)])
        patch.setattr(sys, "path", list(sys.path))
        patch.setattr(sys, "meta_path", list(sys.meta_path))
        patch.setenv("DCGST_WORKING_DIRECTORY_MODULES", "")
        with pytest.raises(SystemExit) as stopped:
            main()
    return Done(stopped.value.code or 0, out.getvalue(), err.getvalue())


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))
