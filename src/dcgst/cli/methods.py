"""``dcgst methods``: the methods and their settings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.table import Table

from dcgst.cli.output import JsonOption, cell, console, print_json, say
from dcgst.methods import METHODS
from dcgst.methods.core.params import choices_of


def command(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    json: JsonOption = False,
) -> None:
    """List the methods, or the settings of one."""
    if name is None:
        _list_methods(json)
    else:
        _list_settings(name, json)


def _list_methods(json: bool) -> None:
    table = Table("name", "what it does", "presets", box=None)
    for name in METHODS:
        method = METHODS[name]
        line = (inspect.getdoc(method) or "").splitlines()[0]
        if json:
            print_json({"name": name, "about": line, "presets": list(method.presets)})
        presets = dict.fromkeys(re.sub(r"/\d+$", "/LABELS", preset) for preset in method.presets)
        table.add_row(name, line, ", ".join(presets))
    if not json:
        console.print(table)
        say("\nSettings of a method: dcgst methods NAME")


def _list_settings(name: str, json: bool) -> None:
    fields = dataclasses.fields(METHODS[name])
    if json:
        for field in fields:
            about = {k: v for k, v in field.metadata.items() if k != "registry"}
            about["choices"] = choices_of(field)
            print_json({"setting": field.name, "default": field.default, **about})
        return
    ordered = sorted(fields, key=lambda field: field.metadata["group"] != "")
    for group, members in groupby(ordered, key=lambda field: str(field.metadata["group"])):
        if group:
            say(f"\n{group[0].upper()}{group[1:]}:")
        console.print(_settings_table(list(members)))
    for preset, settings in METHODS[name].presets.items():
        if settings:
            pairs = (
                f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items()
            )
            say(f"\n{preset}: " + ", ".join(pairs))


def _settings_table(fields: list[dataclasses.Field[Any]]) -> Table:
    table = Table("setting", "default", "description", box=None)
    for field in fields:
        symbol, doc, choices = field.metadata["symbol"], field.metadata["doc"], choices_of(field)
        about = f"{doc} ({symbol})" if symbol else doc
        if choices:
            about += f" [{' | '.join(choices)}]"
        table.add_row(field.name, str(field.default), cell(about))
    return table
