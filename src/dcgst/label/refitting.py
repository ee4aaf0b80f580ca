"""Fit again in another process, with progress."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dcgst.engine.training import EpochEnd, StageEnd


@dataclass(frozen=True)
class RefitStatus:
    """State of a fit in the background: ``idle``, ``running``, ``done`` or ``failed``."""

    state: str
    progress: float = 0.0
    message: str = ""
    folder: str = ""


class Refit:
    """One fit at a time in another process, so that the page stays fast."""

    def __init__(self) -> None:
        self._status = RefitStatus("idle")
        self._process: Any = None
        self._connection: Connection | None = None

    @property
    def running(self) -> bool:
        return self.status().state == "running"

    def start(self, run: Path, labels: Path, out: Path) -> None:
        """Fit ``run`` again with the labels of a table, into the folder ``out``."""
        context = get_context("spawn")
        self._connection, child = context.Pipe(duplex=False)
        self._process = context.Process(target=_refit, args=(run, labels, out, child), daemon=True)
        self._process.start()
        child.close()
        self._status = RefitStatus("running", folder=str(out))

    def status(self) -> RefitStatus:
        """The latest message of the process."""
        connection = self._connection
        with contextlib.suppress(EOFError, OSError):
            while connection is not None and connection.poll():
                self._status = connection.recv()
        if self._status.state == "running" and not self._process.is_alive():
            with contextlib.suppress(EOFError, OSError):
                while connection is not None and connection.poll():
                    self._status = connection.recv()
            if self._status.state == "running":
                self._status = RefitStatus("failed", message="the process ended unexpectedly")
        return self._status

    def stop(self) -> None:
        """End a running fit."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(10)


def _refit(run: Path, labels: Path, out: Path, connection: Connection) -> None:
    """Runs in the other process."""
    from dcgst.runs import fit, open_run

    try:
        source = open_run(run)
        model = source.new_method()
        total = model.count_trainings(validation=True) * model.replicas
        finished = 0

        def report(event: EpochEnd | StageEnd) -> None:
            nonlocal finished
            if isinstance(event, StageEnd):
                return
            replicas = event.loss.numel()
            done = finished + replicas * (event.number + 1) / event.total
            connection.send(RefitStatus("running", min(0.99, done / total), folder=str(out)))
            if event.number + 1 == event.total:
                finished += replicas

        fit(source, out, model, labels=[labels], overwrite=True, callbacks=[report])
        connection.send(RefitStatus("done", 1.0, folder=str(out)))
    except Exception as error:  # whatever it is, the page shows it
        connection.send(RefitStatus("failed", message=str(error)))
    finally:
        connection.close()
