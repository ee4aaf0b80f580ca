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


class Records:
    """What is known, by key; later lines take the place of earlier ones.

    Args:
        path: a file that may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_key: dict[str, dict[str, Any]] = {}
        for record in _read(path):
            if record["method"] in METHODS:
                self.by_key[key_of(record)] = record

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
        self.by_key[key_of(fields)] = fields


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            if _cut_off(line):
                continue
            raise InputError(
                f"{path}, line {number}: not JSON ({error.msg}); mend or delete it"
            ) from error


def _cut_off(line: str) -> bool:
    """Whether a line begins like a record but has no end: a write that was interrupted."""
    return line.startswith('{"dataset"') and not line.endswith("}")


def _ends_a_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
