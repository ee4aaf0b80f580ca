"""Arguments and options of verbs that open a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.output import check_file
from dcgst.errors import InputError

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder created by dcgst fit.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write instead of printing.")
]


def check_out(out: Path | None, json: bool) -> None:
    """Raise if the output file cannot be written, or if --json is also set."""
    if out is not None:
        if json:
            raise InputError("--json prints and --out writes a file; choose one")
        check_file(out)
