"""Run a command of ``dcgst`` in a forked process, and judge how it ended."""

from __future__ import annotations

import csv
import importlib
import io
import os
import resource
import signal
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

OK, REFUSED = "accepted", "refused"
FAILED, SIGNAL, TIMEOUT = "failed", "signal", "timeout"
HALF_WRITTEN, NOT_FINITE, OTHER_RESULT = "half-written", "not finite", "other result"
GOOD = (OK, REFUSED)
STATES = (*GOOD, FAILED, SIGNAL, TIMEOUT, HALF_WRITTEN, NOT_FINITE, OTHER_RESULT)
NUMBERS = ("probability", "margin", "agreement", "covers")
SECONDS = 60
MEMORY = 6 * 2**30


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        state: one of the names above.
        message: the end of its standard error.
    """

    state: str
    message: str

    @property
    def good(self) -> bool:
        return self.state in GOOD


def preload() -> None:
    """Import what commands import, so that forked processes need not."""
    for name in ("fit", "predict", "inspect", "label"):
        importlib.import_module(f"dcgst.cli.{name}")
    for name in ("networkx", "pyarrow.parquet", "torch_geometric.data", "sklearn.preprocessing",
                 "sklearn.feature_extraction.text", "filelock", "rich.table"):  # fmt: skip
        importlib.import_module(name)


def run(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """Exit code (negative: signal), standard output and error of a command, run in a folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            _run_in_child(arguments, folder, out.fileno(), err.fileno())
        _, status = os.waitpid(process, 0)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def _run_in_child(arguments: list[str], folder: Path, out: int, err: int) -> None:
    code = 99
    try:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(folder)
        warnings.resetwarnings()  # pytest turns warnings into errors
        sys.argv = ["dcgst", *arguments]
        import rich.console

        from dcgst.cli import main, output

        output.console, output.errors = rich.console.Console(), rich.console.Console(stderr=True)
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def judge(code: int, out: str, err: str, folder: Path, run_name: str | None) -> Outcome:
    """Judge a command by its exit code, its output and the files that it left.

    Args:
        code: exit code; negative: signal.
        out: standard output.
        err: standard error.
        folder: where the command ran.
        run_name: name of the run folder that it creates; None if it creates none.
    """
    message = err.strip()[-300:]
    if code == -signal.SIGALRM:
        return Outcome(TIMEOUT, message)
    if code < 0:
        return Outcome(SIGNAL, f"signal {-code}: {message}")
    if code not in (0, 2) or "Traceback" in err:
        return Outcome(FAILED, f"exit code {code}: {message}")
    if list(folder.rglob("*.part")):
        return Outcome(HALF_WRITTEN, f"temporary files: {message}")
    if run_name is not None:
        created = folder / run_name
        complete = (created / "run.json").exists() and (created / "predictions.csv").exists()
        if complete != (code == 0) or (code == 2 and created.exists()):
            return Outcome(HALF_WRITTEN, f"exit code {code}, complete: {complete}: {message}")
        if complete and _has_nan((created / "predictions.csv").read_text()):
            return Outcome(NOT_FINITE, message)
    if code == 0 and _has_nan(out):
        return Outcome(NOT_FINITE, out[-300:])
    return Outcome(OK if code == 0 else REFUSED, message)


def _has_nan(text: str) -> bool:
    """Whether a number in a table of predictions is not finite; a class may be named ``inf``."""
    rows = csv.DictReader(io.StringIO(text))
    names = [n for n in rows.fieldnames or () if n in NUMBERS or n.startswith("p(")]
    return any(
        (row[name] or "").lower() in ("nan", "inf", "-inf") for row in rows for name in names
    )
