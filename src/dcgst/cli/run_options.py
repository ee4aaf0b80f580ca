"""Arguments and options of verbs that open a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.output import check_file, check_table
from dcgst.errors import InputError

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder created by dcgst fit.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="File to write instead of printing.")
]
DestinationOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write instead of printing (.csv, .parquet, .jsonl), or a database.",
    ),
]
TableOption = Annotated[str, typer.Option("--table", help="Table of a database to write.")]
IfExistsOption = Annotated[
    str,
    typer.Option(
        "--if-exists", metavar="fail|append|replace", help="What to do with an existing table."
    ),
]


def check_new_table(path: Path) -> None:
    """Raise if a table exists, which a person may have filled in, or cannot be written."""
    check_table(path)
    if path.exists():
        raise InputError(f"{path} exists; choose another file with -o")


def check_out(out: Path | None, json: bool, inputs: Sequence[Path | None] = ()) -> None:
    """Raise if the output file cannot be written or is needed, or if --json is also set.

    Args:
        out: the output file.
        json: whether --json is set.
        inputs: files that the command reads.
    """
    if out is None:
        return
    if json:
        raise InputError("--json prints and --out writes a file; choose one")
    check_file(out, [path for path in inputs if path is not None])
