"""The application that the verbs are hung on, and what it does with errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import dcgst
from dcgst.cli import bench, datasets, demo, fit, look, methods, reproduce, tune
from dcgst.cli.output import errors
from dcgst.errors import InputError

app = typer.Typer(
    name="dcgst",
    help="Label all nodes of a graph from a few labels that are probably not representative.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo.demo)
app.command()(fit.fit)
app.command("predict")(look.predict_command)
app.command("diagnose")(look.diagnose_command)
app.command("explain")(look.explain_command)
app.command("suggest")(look.suggest_command)
app.command("report")(look.report_command)
app.command()(bench.bench)
app.command()(reproduce.reproduce)
app.command("tune")(tune.tune_command)
app.command()(datasets.datasets)
app.command()(methods.methods)

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_debug = False


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dcgst {dcgst.__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    global _debug
    _debug = debug


def main() -> None:
    """Run the command line; exit 0 if all went well, 1 if it failed, 2 on bad usage or input."""
    try:
        app()
    except InputError as error:
        _fail(f"Error: {error}", BAD_INPUT)
    except KeyboardInterrupt:
        _fail("Interrupted.", INTERRUPTED)
    except Exception as error:
        _fail(f"Failed: {type(error).__name__}: {error} (--debug shows where)", FAILED)


def _fail(message: str, code: int) -> None:
    if _debug:
        raise
    errors.print(message, highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)
