"""Terminal output: tables, JSON lines, progress bars."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dcgst.cli.logs import as_json, log
from dcgst.errors import InputError
from dcgst.text import printable
from dcgst.train.progress import reporting_to
from dcgst.train.training import Callback, EpochEnd, StageEnd

MARKERS = (
    ("run.json", "predictions.csv"),
    ("run.json", "predictions.parquet"),
    ("begun.json",),
    ("store.json", "ids.npy"),
)
"""Files by which run folders and stores are recognized."""

console = Console()
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
SpreadsheetOption = Annotated[
    bool,
    typer.Option("--spreadsheet", help="Write text so that a spreadsheet runs no formula in it."),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|local|ADDRESS",
        help="Run on a Ray cluster: the one of this machine, a new one here, or its address.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress and no notes.")]


def say(text: str, to: Console = console, *, wrap: bool = False) -> None:
    """Print text without markup or highlighting.

    Args:
        text: what to print.
        to: standard output or standard error.
        wrap: break lines at the screen width; for sentences, not for commands and paths.
    """
    if to is errors and text.strip() and as_json(text) is not None:
        log(text)
        return
    to.print(printable(text), highlight=False, markup=False, soft_wrap=not wrap)


def cell(text: object) -> str:
    """Text for a cell of a table or a title, without markup."""
    return escape(printable(str(text)))


def print_json(record: Any) -> None:
    """Print a dictionary or dataclass as one line of JSON."""
    fields = record if isinstance(record, dict) else asdict(record)
    typer.echo(json.dumps(fields, allow_nan=False, default=float))


def check_file(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise before a long computation if a file cannot be written; create its folder.

    Args:
        path: the file to write.
        inputs: files that the command reads, which must not be replaced.
    """
    refuse_inside_run(path)
    try:
        is_folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {error}") from error
    if is_folder:
        raise InputError(f"{path} cannot be written: it is a folder, not a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be written: it is not a regular file")
    if path.exists() and any(own.exists() and own.samefile(path) for own in inputs):
        raise InputError(f"{path} is an input of this command; choose another output file")
    check_folder(path.absolute().parent)
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def refuse_inside_run(path: Path) -> None:
    """Raise if a file or folder to write lies in a run folder or a store.

    Their files belong together; the only command that writes one of them again is ``report``.
    """
    for folder in path.absolute().parents:
        if any(all((folder / name).exists() for name in names) for names in MARKERS):
            raise InputError(
                f"{path} is in {folder}, which is a run folder or a store; choose another place"
            )


def check_table(path: Path) -> None:
    """Raise if a table cannot be written to a file, or its name is not that of a CSV file."""
    check_file(path)
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path}: the table is written as CSV; choose a name that ends with .csv")


def say_next(*words: object) -> None:
    """Print a command that the user may run next, quoted for the shell."""
    say(f"Next: dcgst {shlex.join(str(word) for word in words)}")


def check_folder(path: Path) -> None:
    """Raise if a folder, which need not exist yet, cannot be written."""
    refuse_inside_run(path)
    try:
        existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} cannot be written: {reason}") from error
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"{path} cannot be written: {existing} is not a writable folder")


SECONDS_PER_LINE = 60
"""Seconds between lines about the progress where there is no terminal."""


class ProgressBar:
    """A progress bar with remaining time; it appears after one second.

    Without a terminal, a line is printed every minute instead.

    Args:
        title: text before the bar.
        total: amount of work, in any unit.
        quiet: never show it.
    """

    def __init__(self, title: str, total: float, quiet: bool) -> None:
        self.title, self.total = title, total
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            console=errors,
            transient=True,
            disable=quiet or not errors.is_terminal,
        )
        self.task = self.bar.add_task(title, total=None)
        self.lines = not quiet and not errors.is_terminal
        self.started = self.updated = self.printed = self.task_started = time.monotonic()
        self.name = ""

    def describe(self, text: str) -> None:
        """Show a text after the title."""
        self.bar.update(self.task, description=f"{self.title}: {text}")

    def show_task(self, name: str, share: float) -> None:
        """Show a task with a bar and a remaining time of its own; see ``dcgst.train.progress``."""
        if share >= 1:
            self.show_trainings()
            return
        if name != self.name:
            self.name, self.task_started = name, time.monotonic()
            self.bar.reset(self.task, total=None, description=f"{self.title}: {name}")
        self.advance_to(share, 1.0)

    def show_trainings(self) -> None:
        """Show the whole bar again after a task."""
        if self.name:
            self.name = ""
            self.bar.reset(self.task, total=None, description=self.title)

    def advance_to(self, completed: float, total: float | None = None) -> None:
        """Set the completed amount of work; ``total`` if it is not that of the whole bar."""
        now = time.monotonic()
        if now - self.started > 1 and now - self.updated > 0.1:
            self.updated = now
            self.bar.start()
            self.bar.update(self.task, total=total or self.total, completed=completed)
        if self.lines and now - self.printed > SECONDS_PER_LINE:
            self.printed = now
            self._print_line(now, completed / (total or self.total))

    def _print_line(self, now: float, share: float) -> None:
        """Print what is done, its share, and the remaining time if the share allows to tell."""
        text = f"{self.title}: {self.name}" if self.name else self.title
        elapsed = now - (self.task_started if self.name else self.started)
        left = f", about {duration(elapsed / share - elapsed)} left" if share > 0.02 else ""
        say(f"{text}: {share:.0%}{left}", errors)


def duration(seconds: float) -> str:
    """Seconds for people, rounded.

    Example:
        >>> duration(42), duration(90), duration(3 * 3600)
        ('42 s', '2 min', '3.0 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(title: str, total: float, quiet: bool) -> Iterator[ProgressBar]:
    """Show a progress bar while the block runs."""
    bar = ProgressBar(title, total, quiet)
    try:
        with reporting_to(bar.show_task):
            yield bar
    finally:
        bar.bar.stop()


@contextmanager
def training_progress(title: str, trainings: int, quiet: bool) -> Iterator[Callback]:
    """Show the progress of trainings; yields a callback for ``fit``."""
    with progress(title, trainings, quiet) as bar:
        finished = 0

        def on_event(event: EpochEnd | StageEnd) -> None:
            nonlocal finished
            if isinstance(event, StageEnd):
                record = event.records[0]
                bar.describe(
                    f"stage {event.number}, shift {record['cmd']:.3f}, "
                    f"{record['labeled']:.0f} labels"
                )
                return
            bar.show_trainings()
            part = (event.number + 1) / event.total
            replicas = event.loss.numel()
            bar.advance_to(finished + part * replicas)
            if event.number + 1 == event.total:
                finished += replicas

        yield on_event
