"""``dcgst config``: options of a command as a file, for ``--config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcgst.cli.config_file import options_of, to_toml
from dcgst.cli.output import check_file, errors, say
from dcgst.errors import InputError
from dcgst.files import write_text
from dcgst.text import without_passwords


def config_command(
    context: typer.Context,
    verb: Annotated[str, typer.Argument(help="The command, such as fit.")],
    out: Annotated[
        Path | None, typer.Option("--save", help="File to write instead of printing.")
    ] = None,
) -> None:
    """Write the options of a command to a file that --config reads.

    Example: dcgst config --save run.toml fit nodes.csv edges.csv --label topic --out run.
    Then dcgst fit --config run.toml does the same. Options after it replace those of the file.
    """
    root = context.find_root()
    group = root.command
    found = group.get_command(root, verb)  # type: ignore[attr-defined]
    if found is None or verb == "config":
        raise InputError(f"there is no command {verb!r}; see dcgst --help")
    with found.make_context(verb, list(context.args), parent=root) as parsed:
        written = to_toml(verb, options_of(parsed))
    text = without_passwords(written)
    if text != written:
        say(
            "Warning: passwords are not written; set PGPASSWORD, or give the address after "
            "--config.",
            errors,
        )
    if out is not None:
        check_file(out)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        say(f"Options of {verb}: {out}")
