"""Settings of methods: typed, documented, validated fields of a dataclass."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from dcgst.errors import InputError, unknown_name
from dcgst.registry import Registry


def param(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    registry: Registry[Any] | None = None,
    symbol: str = "",
    group: str = "",
) -> Any:
    """Declare a setting.

    Args:
        default: the default value.
        doc: one line of description.
        low: smallest allowed value.
        high: largest allowed value.
        choices: all allowed values.
        registry: the value is a name in this registry, or one of its objects.
        symbol: its symbol in the paper.
        group: settings of one group are shown together; "" for the main group.
    """
    metadata = {
        "doc": doc,
        "low": low,
        "high": high,
        "choices": choices,
        "registry": registry,
        "symbol": symbol,
        "group": group,
    }
    return dataclasses.field(default=default, metadata=metadata)


def choices_of(field: dataclasses.Field[Any]) -> tuple[str, ...] | None:
    """All allowed names of a setting; None if it has no fixed choices."""
    registry: Registry[Any] | None = field.metadata["registry"]
    choices: tuple[str, ...] | None = field.metadata["choices"]
    return choices if registry is None else tuple(registry)


def check_settings(settings: Any) -> None:
    """Raise if a field declared with :func:`param` has an invalid value."""
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.metadata["registry"] is not None:
            field.metadata["registry"].resolve(value)
        else:
            _check_value(field.name, value, hints[field.name], field.metadata)


def parse_setting(kind: type, name: str, text: str) -> Any:
    """Convert the text of ``name=text`` to the type of the setting."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if name not in names:
        raise unknown_name("setting", name, names)
    allowed = _allowed_types(hints[name])
    if type(None) in allowed and text.lower() == "none":
        return None
    if bool in allowed and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if Mapping in allowed:
        return parse_shares(name, text)
    for number in (int, float):
        if number in allowed:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def parse_shares(name: str, text: str) -> dict[str, float]:
    """Convert ``a=0.2,b=0.8`` to numbers by name.

    Example:
        >>> parse_shares("prior", "fraud=0.06, ok=0.94")
        {'fraud': 0.06, 'ok': 0.94}
        >>> parse_shares("prior", "fraud=6%")
        {'fraud': 0.06}
    """
    shares = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            percent = value.endswith("%")
            shares[key] = float(value.removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            key = ""
        if not key:
            raise InputError(
                f"{name} must be classes and their shares, like fraud=0.06,ok=0.94; got {text!r}"
            )
    return shares


_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "none",
    Mapping: "numbers by class",
}


def _allowed_types(hint: Any) -> tuple[type, ...]:
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    members = typing.get_args(hint) if union else (hint,)
    return tuple(typing.get_origin(member) or member for member in members)


def _check_value(name: str, value: Any, hint: Any, metadata: Any) -> None:
    allowed = _allowed_types(hint)
    if value is None and type(None) in allowed:
        return
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    real = whole or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    fits = type(value) in allowed or (int in allowed and whole) or (float in allowed and real)
    fits = fits or (Mapping in allowed and isinstance(value, Mapping))
    if not fits:
        expected = " or ".join(_TYPE_NAMES.get(t, t.__name__) for t in allowed)
        raise InputError(f"{name} must be {expected}, got {value!r}")
    if real and not math.isfinite(value):
        raise InputError(f"{name} must be finite, got {value!r}")
    choices, low, high = metadata["choices"], metadata["low"], metadata["high"]
    if choices is not None and value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    if low is not None and value < low:
        raise InputError(f"{name} must be at least {low}, got {value!r}")
    if high is not None and value > high:
        raise InputError(f"{name} must be at most {high}, got {value!r}")
