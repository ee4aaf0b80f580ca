"""A file of records in JSON Lines format, to which records are appended durably."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dcgst.bench.cells import Cell, key_of
from dcgst.bench.protocol import Record
from dcgst.errors import InputError
from dcgst.files import append_line

StoredRecord = dict[str, Any]
"""The fields of a record as read from a file."""

REQUIRED_FIELDS = (
    "dataset",
    "method",
    "rate",
    "sampler",
    "runs",
    "first_run",
    "settings",
    "accuracy",
)


class Records:
    """The records of a file, by key.

    If several records have the same key, the last one is used, with two exceptions: a record with
    substitute features never replaces one with official features, and a record without history
    never replaces one with history.

    Args:
        path: File of records. It does not need to exist.

    Attributes:
        path: The file.
        by_key: The record of each key.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key: dict[str, StoredRecord] = {}
        for record in _read(path):
            # Skip records of unknown methods and of settings that are no longer supported.
            with contextlib.suppress(InputError):
                self._update(record)

    def find(self, cell: Cell) -> StoredRecord | None:
        """Return the record of a cell, or None if there is none."""
        return self.by_key.get(cell.key)

    def find_all(self, cells: Sequence[Cell]) -> list[StoredRecord] | None:
        """Return the records of all cells, or None if any is missing."""
        found = [self.find(cell) for cell in cells]
        complete = [record for record in found if record is not None]
        return complete if len(complete) == len(found) else None

    def add(self, record: Record) -> None:
        """Append a record to the file, and flush it to disk."""
        fields = dataclasses.asdict(record)
        append_line(self.path, json.dumps(fields, allow_nan=False, default=float))
        self._update(fields)

    def _update(self, record: StoredRecord) -> None:
        key = key_of(record)
        current = self.by_key.get(key)
        if current is None or _priority(record) >= _priority(current):
            self.by_key[key] = record


def _priority(record: StoredRecord) -> tuple[bool, bool]:
    return bool(record.get("official", True)), record.get("stages") is not None


def _read(path: Path) -> Iterator[StoredRecord]:
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
                continue  # a record whose write was interrupted
            raise InputError(
                f"{path}, line {number}: not JSON ({error.msg}); fix or delete this line"
            ) from error
        absent = [
            name for name in REQUIRED_FIELDS if not isinstance(record, dict) or name not in record
        ]
        if absent:
            raise InputError(
                f"{path}, line {number}: not a record, field {absent[0]!r} is missing; "
                "fix or delete this line"
            )
        yield record
