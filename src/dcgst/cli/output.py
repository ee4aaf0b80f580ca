"""What users see: tables, lines for machines, progress."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from dcgst.engine.training import Callback, Epoch, StageEnd
from dcgst.errors import InputError

console = Console()
errors = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress and no notes.")]


def check_file(path: Path) -> None:
    """Raise before the work if a file could not be written in the end; make its folder."""
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder, a file is needed")
    check_folder(path.absolute().parent)
    path.absolute().parent.mkdir(parents=True, exist_ok=True)


def check_folder(path: Path) -> None:
    """The same for a folder, which need not be there yet."""
    there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{path} cannot be written: {there} is no folder one may write to")


def print_json(record: Any) -> None:
    fields = record if isinstance(record, dict) else asdict(record)
    typer.echo(json.dumps(fields, allow_nan=False, default=float))


@contextmanager
def progress(title: str, trainings: int, quiet: bool) -> Iterator[Callback]:
    """A bar over the epochs of so many trainings; shown on the terminal once it takes a while."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=quiet or not errors.is_terminal,
    )
    task = bar.add_task(title, total=None)
    finished, shown, begun = 0, 0.0, time.monotonic()

    def after_epoch(epoch: Epoch | StageEnd) -> None:
        nonlocal finished, shown
        if isinstance(epoch, StageEnd):
            record = epoch.records[0]
            said = (
                f"stage {epoch.number}, shift {record['cmd']:.3f}, {record['labeled']:.0f} labels"
            )
            bar.update(task, description=f"{title}: {said}")
            return
        now = time.monotonic()
        part = (epoch.number + 1) / epoch.total
        if epoch.number + 1 == epoch.total:
            finished += epoch.loss.numel()
            part = 0.0
        if now - shown > 0.1 and now - begun > 1:
            shown = now
            bar.start()
            bar.update(task, total=trainings, completed=finished + part * epoch.loss.numel())

    try:
        yield after_epoch
    finally:
        bar.stop()
