"""``dcgst report``: the HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.output import progress, say
from dcgst.cli.run_options import RunArgument, check_out
from dcgst.insight import write_report
from dcgst.runs import open_run
from dcgst.runs.format import REPORT


def command(
    folder: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write.  [default: report.html in RUN]"),
    ] = None,
) -> None:
    """Write the HTML report of a run.

    The report is one file that needs no network.
    """
    run = open_run(folder)
    if out is not None and out.resolve() != (folder / REPORT).resolve():
        check_out(out, json=False)
    with progress("report", 1.0, quiet=False):
        path = write_report(run, out)
    say(str(path))
