"""Hyper-parameters as typed, documented, checked fields of a dataclass."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from typing import Any

from dcgst.errors import InputError, unknown


def param(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    symbol: str = "",
) -> Any:
    """A field with what users need to know of it.

    Args:
        default: its value unless set.
        doc: one line for people.
        low: smallest value allowed.
        high: largest value allowed.
        choices: all values allowed.
        symbol: what the paper calls it.
    """
    about = {"doc": doc, "low": low, "high": high, "choices": choices, "symbol": symbol}
    return dataclasses.field(default=default, metadata=about)


def check(settings: Any) -> None:
    """Raise if any field of a dataclass made of :func:`param` has a value it must not have."""
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        _check_one(field.name, getattr(settings, field.name), hints[field.name], field.metadata)


def parse(kind: type, name: str, text: str) -> Any:
    """The value that ``name=text`` means for a dataclass, by the field's type."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if name not in names:
        raise unknown("setting", name, names)
    allowed = _allowed_types(hints[name])
    if type(None) in allowed and text.lower() == "none":
        return None
    if bool in allowed and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind_of_number in (int, float):
        if kind_of_number in allowed:
            try:
                return kind_of_number(text)
            except ValueError:
                continue
    return text


def _allowed_types(hint: Any) -> tuple[type, ...]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return tuple(typing.get_args(hint))
    return (hint,)


def _check_one(name: str, value: Any, hint: Any, about: Any) -> None:
    allowed = _allowed_types(hint)
    if value is None and type(None) in allowed:
        return
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    real = whole or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    fits = type(value) in allowed or (int in allowed and whole) or (float in allowed and real)
    if not fits:
        wanted = " or ".join("None" if t is type(None) else t.__name__ for t in allowed)
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    if real and not math.isfinite(value):
        raise InputError(f"{name} must be finite, got {value!r}")
    if about["choices"] is not None and value not in about["choices"]:
        raise InputError(f"{name} must be one of {', '.join(about['choices'])}, got {value!r}")
    if about["low"] is not None and not value >= about["low"]:
        raise InputError(f"{name} must be at least {about['low']}, got {value!r}")
    if about["high"] is not None and not value <= about["high"]:
        raise InputError(f"{name} must be at most {about['high']}, got {value!r}")
