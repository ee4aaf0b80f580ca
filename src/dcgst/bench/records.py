"""A file of records: one JSON object a line, appended whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dcgst.bench.cells import key_of
from dcgst.bench.protocol import Record
from dcgst.errors import InputError
from dcgst.methods import METHODS

NEEDED = ("dataset", "method", "rate", "sampler", "runs", "first_run", "settings", "accuracy")
"""What a line must have to be a record."""


class Records:
    """What is known, by key.

    Later lines take the place of earlier ones, but substitute features never that of official ones,
    nor a record without history that of one with it.

    Args:
        path: a file that may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key: dict[str, dict[str, Any]] = {}
        for record in _read(path):
            if record["method"] in METHODS:
                self._take(record)

    def add(self, record: Record) -> None:
        """Append a record; what is written is on the disk when this returns."""
        fields = dataclasses.asdict(record)
        line = (json.dumps(fields, allow_nan=False, default=float) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            if file.tell() and not _ends_a_line(self.path):
                line = b"\n" + line  # what was cut off stays a line of its own
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._take(fields)

    def _take(self, record: dict[str, Any]) -> None:
        key = key_of(record)
        known = self.by_key.get(key)
        if known is None or _worth(record) >= _worth(known):
            self.by_key[key] = record


def _worth(record: dict[str, Any]) -> tuple[bool, bool]:
    return bool(record.get("official", True)), record.get("stages") is not None


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a file of records: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if line.startswith("{"):
                continue  # begun like a record: a write that was interrupted
            raise InputError(
                f"{path}, line {number}: not JSON ({error.msg}); mend or delete it"
            ) from error
        lacking = [name for name in NEEDED if not isinstance(record, dict) or name not in record]
        if lacking:
            raise InputError(
                f"{path}, line {number}: not a record, it has no {lacking[0]!r}; mend or delete it"
            )
        yield record


def _ends_a_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
