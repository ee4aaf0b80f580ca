"""``dcgst methods``: what there is to choose from, and its settings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dcgst.cli.output import JsonOption, console, print_json
from dcgst.errors import unknown
from dcgst.methods import METHODS


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    json: JsonOption = False,
) -> None:
    """List the methods, or the settings of one."""
    if name is None:
        _list_methods(json)
    elif name in METHODS:
        _list_settings(name, json)
    else:
        raise unknown("method", name, METHODS)


def _list_methods(json: bool) -> None:
    table = Table("name", "what it does", "presets", box=None)
    for name, method in METHODS.items():
        line = (inspect.getdoc(method) or "").splitlines()[0]
        if json:
            print_json({"name": name, "about": line, "presets": list(method.presets)})
        presets = dict.fromkeys(re.sub(r"/\d+$", "/LABELS", preset) for preset in method.presets)
        table.add_row(name, line, ", ".join(presets))
    if not json:
        console.print(table)
        console.print("\nSettings of one: dcgst methods NAME")


def _list_settings(name: str, json: bool) -> None:
    table = Table("setting", "default", "what it is", box=None)
    for field in dataclasses.fields(METHODS[name]):
        symbol, doc = field.metadata["symbol"], field.metadata["doc"]
        choices = field.metadata["choices"]
        if json:
            print_json({"setting": field.name, "default": field.default, **field.metadata})
        about = f"{doc} ({symbol})" if symbol else doc
        if choices:
            about += f" [{' | '.join(choices)}]"
        table.add_row(field.name, str(field.default), escape(about))
    if json:
        return
    console.print(table)
    for preset, settings in METHODS[name].presets.items():
        if settings:
            pairs = (
                f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items()
            )
            console.print(f"\n{preset}: " + ", ".join(pairs))
