"""Methods and settings from the command line: ``--method``, ``--preset``, ``--set``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dcgst.errors import InputError
from dcgst.methods import METHODS, Method
from dcgst.methods.core.params import check_settings


def split_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``name=value`` texts."""
    found = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InputError(f"--set needs name=value, got {pair!r}")
        found[name] = text
    return found


def make_method(name: str, preset: str, settings: dict[str, Any]) -> Method:
    """Create a method with valid settings."""
    method = METHODS[name].from_preset(preset, **settings)
    try:
        check_settings(method)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return method


def split_list(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def split_kinds(options: Iterable[str] | None) -> dict[str, str]:
    """Kind by column, from ``column=kind`` texts, each of which may have several."""
    found = {}
    for pair in (part for option in options or () for part in split_list(option)):
        name, equals, kind = (part.strip() for part in pair.rpartition("="))
        if not equals or not name:
            raise InputError(f"--kind needs COLUMN=KIND, like zip=code, got {pair!r}")
        found[name] = kind
    return found
