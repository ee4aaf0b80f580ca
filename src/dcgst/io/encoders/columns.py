"""Encoders of single columns, by the kind of the column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dcgst.io.encoders import kinds
from dcgst.io.encoders.base import ColumnEncoder
from dcgst.io.encoders.numeric import DateEncoder, FlagEncoder, NumberEncoder
from dcgst.io.encoders.tokenized import TokenEncoder

ENCODERS: dict[str, type[ColumnEncoder]] = {
    kinds.NUMBER: NumberEncoder,
    kinds.FLAG: FlagEncoder,
    kinds.DATE: DateEncoder,
    **dict.fromkeys(
        (kinds.CATEGORY, kinds.CODE, kinds.LIST, kinds.TEXT, kinds.STRING), TokenEncoder
    ),
}
"""The class that encodes each kind."""

FORMS_BEFORE = {kinds.CATEGORY: "value", kinds.TEXT: "words"}
"""Forms of encoders stored by version 0.1."""


def from_json(stored: Mapping[str, Any]) -> ColumnEncoder:
    """Restore an encoder from :meth:`ColumnEncoder.to_json`, or from a file of version 0.1."""
    if stored["kind"] not in ENCODERS:
        raise ValueError(f"the encoder of {stored.get('name')} has kind {stored['kind']!r}")
    kind: type[Any] = ENCODERS[stored["kind"]]
    names = {field.name for field in fields(kind)}
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in stored.items()
        if key in names
    }
    values.setdefault("form", FORMS_BEFORE.get(stored["kind"], ""))
    restored: ColumnEncoder = kind(**values)
    return restored
