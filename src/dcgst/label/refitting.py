"""Fit again in another process, with progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dcgst.errors import as_flag, options_named_by
from dcgst.train.training import EpochEnd, StageEnd

BETWEEN_REPORTS = 0.2
"""Seconds between two reports of progress."""


@dataclass(frozen=True)
class RefitStatus:
    """State of a fit in the background: ``idle``, ``running``, ``done`` or ``failed``."""

    state: str
    progress: float = 0.0
    message: str = ""
    folder: str = ""


class Refit:
    """One fit at a time in another process, so that the page stays fast.

    Attributes:
        status: state of the last fit; set by the thread that watches the process.
    """

    def __init__(self) -> None:
        self.status = RefitStatus("idle")
        self._process: Any = None

    @property
    def running(self) -> bool:
        return self.status.state == "running"

    def start(self, run: Path, labels: Path, out: Path, on_done: Callable[[Path], None]) -> None:
        """Fit ``run`` again with the labels of a table, into the folder ``out``.

        Args:
            run: folder of the run.
            labels: the table.
            out: the new folder.
            on_done: called with the new folder before the state becomes ``done``.
        """
        context = get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_refit, args=(run, labels, out, sender), daemon=True)
        self._process.start()
        sender.close()
        self.status = RefitStatus("running", folder=str(out))
        threading.Thread(target=self._watch, args=(receiver, on_done), daemon=True).start()

    def stop(self) -> None:
        """End a running fit."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(10)

    def _watch(self, receiver: Connection, on_done: Callable[[Path], None]) -> None:
        last = RefitStatus("failed", message="the process ended unexpectedly")
        try:
            while True:
                found: RefitStatus = receiver.recv()
                if found.state == "running":
                    self.status = found
                else:
                    last = found
        except (EOFError, OSError):
            pass
        if last.state == "done":
            try:
                on_done(Path(last.folder))
            except Exception as error:  # whatever it is, the page shows it
                last = RefitStatus("failed", message=str(error))
        self.status = last


def _refit(run: Path, labels: Path, out: Path, connection: Connection) -> None:
    """Runs in the other process."""
    from dcgst.runs import fit, open_run

    try:
        source = open_run(run)
        model = source.new_method()
        total = model.count_trainings(validation=True) * model.replicas
        finished, reported = 0, 0.0

        def report(event: EpochEnd | StageEnd) -> None:
            nonlocal finished, reported
            if isinstance(event, StageEnd):
                return
            replicas = event.loss.numel()
            done = finished + replicas * (event.number + 1) / event.total
            if event.number + 1 == event.total:
                finished += replicas
            if time.monotonic() - reported > BETWEEN_REPORTS:
                reported = time.monotonic()
                progress = min(0.99, done / total)
                connection.send(RefitStatus("running", progress, folder=str(out)))

        with options_named_by(as_flag):  # the user is on the command line
            fit(source, out, model, labels=[labels], callbacks=[report])
        connection.send(RefitStatus("done", 1.0, folder=str(out)))
    except Exception as error:  # whatever it is, the page shows it
        connection.send(RefitStatus("failed", message=str(error)))
    finally:
        connection.close()
