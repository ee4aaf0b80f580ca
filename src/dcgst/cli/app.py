"""The command-line application: verbs, global options, exit codes.

Verbs are imported when they are used, so that ``dcgst --help`` does not import PyTorch.
"""

from __future__ import annotations

import errno
import importlib
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from dcgst.cli.config_file import expand
from dcgst.cli.logs import log, write_json_logs
from dcgst.errors import InputError, as_flag, options_named_by
from dcgst.registry import import_named
from dcgst.text import printable
from dcgst.version import VERSION

JSON_LOGS = "--json-logs"
"""May stand before or after the command."""

VERBS = {
    "demo": "Show the cost of biased labels, and what wins it back, on built-in data.",
    "import": "Make a store of large tables, for all other commands.",
    "fit": "Learn from the labels in a table and predict all other nodes.",
    "refit": "Fit a run again, with more labels.",
    "predict": "Predict with a stored model, on its own graph or another one.",
    "diagnose": "Measure how few, how biased and how well connected the labels are.",
    "audit": "Write a table of randomly chosen nodes to label.",
    "label": "Label nodes in a page in your browser.",
    "evaluate": "Compare the predictions of a run with true classes.",
    "compare": "Compare two runs: what changed, for which nodes, and whether it helped.",
    "explain": "Explain the predicted class of a node.",
    "suggest": "Suggest which nodes to label next.",
    "report": "Write the HTML report of a run.",
    "check": "Read all files of a store, a run or a journal of labels, and say what is damaged.",
    "bench": "Measure the accuracy of methods on datasets under one protocol.",
    "reproduce": "Run the experiments of the paper and compare with the published results.",
    "tune": "Search for better settings of a method.",
    "config": "Write the options of a command to a file that --config reads.",
    "datasets": "List the datasets.",
    "methods": "List the methods, or the settings of one.",
}
"""Verbs and the first lines of their help texts."""

MODULES = {
    "fit": ("fit", "refit"),
    "label": ("audit", "label", "suggest"),
    "inspect": ("diagnose", "evaluate", "compare", "explain", "report", "check"),
    "bench": ("bench", "reproduce", "tune", "datasets", "methods"),
    "import_": ("import",),
}
"""Modules with several commands, or another name than their command."""

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
OUT_OF_MEMORY = (
    "Error: the memory does not suffice; use a smaller graph, or a machine with more memory. An "
    "interrupted fit continues with --resume."
)


PASS_THROUGH = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}
"""``config`` takes the options of another command."""


CONFIG_HELP = "--config FILE reads options from a TOML file; dcgst config writes one."


def function_of(verb: str) -> Callable[..., None]:
    """The function of a verb; its module is imported."""
    module = next((name for name, verbs in MODULES.items() if verb in verbs), verb)
    found: Callable[..., None] = getattr(
        importlib.import_module(f"dcgst.cli.{module}"), f"{verb}_command"
    )
    return found


class LazyGroup(TyperGroup):
    """A group of verbs, each a function ``VERB_command`` in a module of ``dcgst.cli``."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        verb = typer.Typer(add_completion=False, rich_markup_mode=None)
        settings = PASS_THROUGH if cmd_name == "config" else {}
        function = function_of(cmd_name)
        epilog = None if cmd_name == "config" else CONFIG_HELP
        verb.command(cmd_name, context_settings=settings, epilog=epilog)(function)
        return typer.main.get_command(verb)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    name="dcgst",
    cls=LazyGroup,
    help="Predict the classes of all nodes of a graph from a few, possibly biased labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"dcgst {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import", metavar="MODULE", help="Import a module first, e.g. with your own methods."
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory to use at most, like 4GB.")
    ] = None,
    json_logs: Annotated[
        bool, typer.Option(JSON_LOGS, help="Print messages and errors as JSON lines.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    if memory is not None:
        from dcgst.memory import limit_memory, parse_size

        limit_memory(parse_size(memory))
    for module in modules or ():
        try:
            import_named(module)
        except Exception as error:  # whatever the module of the user raises
            name = type(error).__name__
            raise InputError(f"--import {module!r} failed: {name}: {error}") from error


def main() -> None:
    """Run the command line; exit codes: 0 success, 1 failure, 2 invalid usage or input."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    write_json_logs(JSON_LOGS in sys.argv)  # errors before the options are read, too
    try:
        arguments = [word for word in sys.argv[1:] if word != JSON_LOGS]
        logs = [JSON_LOGS] if JSON_LOGS in sys.argv else []
        with options_named_by(as_flag):
            app([*logs, *expand(arguments, tuple(VERBS))], prog_name="dcgst")
    except InputError as error:
        _fail(f"Error: {error}", BAD_INPUT)
    except SystemExit as stop:
        # Typer converts a KeyboardInterrupt; a verb that handles it has printed more already.
        exit_by_typer = stop.__context__
        if exit_by_typer and isinstance(exit_by_typer.__cause__, KeyboardInterrupt):
            _fail("Interrupted.", INTERRUPTED)
        raise
    except MemoryError:
        _fail(OUT_OF_MEMORY, BAD_INPUT)
    except (ImportError, RuntimeError) as error:
        from dcgst.memory import is_out_of_memory

        if is_out_of_memory(error):
            _fail(OUT_OF_MEMORY, BAD_INPUT)
        _fail(_failure(error), FAILED)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            _fail(
                f"Error: {error.strerror}: {error.filename or 'a file'} cannot be written",
                BAD_INPUT,
            )
        _fail(_failure(error), FAILED)
    except Exception as error:
        _fail(_failure(error), FAILED)


def _show_warning(message: Warning | str, *_: Any) -> None:
    log(f"Warning: {message}.")


def _failure(error: Exception) -> str:
    return f"Failed: {type(error).__name__}: {error} (use --debug for a traceback)"


def _fail(message: str, code: int) -> NoReturn:
    if "--debug" in sys.argv:
        print(printable(traceback.format_exc()), file=sys.stderr)
    log(message)
    sys.exit(code)
