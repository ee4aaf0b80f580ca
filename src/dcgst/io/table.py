"""Tables as people have them: CSV of any delimiter, or Parquet, all values as text."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcgst.errors import InputError, unknown

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""What stands for no value, in any case of letters."""


@dataclass(frozen=True)
class Table:
    """Columns of text.

    Attributes:
        path: the file.
        columns: every column's values by its name; no value is the empty string.
        lines: where each row begins in the file; for messages.
    """

    path: Path
    columns: dict[str, list[str]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def column(self, name: str) -> list[str]:
        """A column by its name; an error lists those there are."""
        if name not in self.columns:
            raise unknown(f"column of {self.path}", name, self.columns)
        return self.columns[name]

    def where(self, row: int) -> str:
        """A row as messages name it."""
        return f"{self.path}, line {self.lines[row]}"


def is_missing(text: str) -> bool:
    return text.lower() in MISSING


def read_table(path: Path, delimiter: str | None = None, *, header: bool = True) -> Table:
    """Read CSV or Parquet, by the ending of the name.

    Args:
        path: the file.
        delimiter: of CSV, one character or ``tab``; guessed by default.
        header: whether a header is needed; without, names that come twice are taken for a row.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    mark = "\t" if delimiter in ("\\t", "tab") else delimiter
    if mark is not None and len(mark) != 1:
        raise InputError(f"the delimiter must be one character or 'tab', got {delimiter!r}")
    return _read_csv(path, mark, header)


def read_bytes(path: Path) -> bytes:
    """A file's content; an error names the file and what is wrong with it."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} is not there; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder, a file is needed") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_csv(path: Path, delimiter: str | None, header_needed: bool) -> Table:
    text = _decode(path, read_bytes(path))
    if not text.strip():
        raise InputError(f"{path} is empty; a header and at least one row are needed")
    delimiter = delimiter or _guess_delimiter(text)
    header, *rows = _rows(path, text, delimiter) or [(1, [""])]
    names = [name.strip() for name in header[1]]
    if not header_needed and len(set(names)) < len(names):
        names, rows = [f"column {place}" for place in range(1, len(names) + 1)], [header, *rows]
    names = _check_header(path, names, delimiter)
    for line, row in rows:
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {line} has {len(row)} values, the header {len(names)} columns; "
                "values that hold the delimiter must be in quotes"
            )
    if not rows:
        raise InputError(f"{path} has a header, but no rows")
    values = zip(*(row for _, row in rows), strict=True)
    columns = {
        name: ["" if is_missing(text := value.strip()) else text for value in column]
        for name, column in zip(names, values, strict=True)
    }
    return Table(path, columns, [line for line, _ in rows])


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line} is not UTF-8 (byte {content[error.start]:#04x}); save the file "
            "as UTF-8, in Excel as 'CSV UTF-8'"
        ) from error


def _rows(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Every row that is not blank, with the line where it begins."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, begun = [], 1
    try:
        for row in reader:
            if any(value.strip() for value in row):
                rows.append((begun, row))
            begun = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {begun} cannot be read: {error}; check the quotes"
        ) from error
    return rows


def _guess_delimiter(text: str) -> str:
    """The delimiter that the header holds most of; where it holds none, the comma."""
    header = next(line for line in text.splitlines() if line.strip())
    counts = {mark: header.count(mark) for mark in DELIMITERS if mark != " "}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    return " " if header.strip().count(" ") else ","


def _check_header(path: Path, names: list[str], delimiter: str) -> list[str]:
    if len(names) == 1:
        word = DELIMITERS.get(delimiter, repr(delimiter))
        raise InputError(
            f"{path} has a single column, {names[0][:60]!r}, when split at each {word}; if another "
            "delimiter is used, name it with --delimiter"
        )
    for place, name in enumerate(names):
        if not name:
            names[place] = f"column {place + 1}"
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"{path} has more than one column {sorted(twice)[0]!r}; rename one")
    return names


def _read_parquet(path: Path) -> Table:
    content = read_bytes(path)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise InputError(f"{path} needs pyarrow to be read: pip install 'dcgst[io]'") from error
    try:
        table = parquet.read_table(arrow.BufferReader(content))
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file that can be read: {error}") from error
    names = [str(name) for name in table.column_names]
    if len(names) < 2:
        raise InputError(f"{path} has {len(names)} columns; at least two are needed")
    _check_header(path, names, ",")
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows")
    columns = {
        name: [text_of(path, name, value) for value in column.to_pylist()]
        for name, column in zip(names, table.columns, strict=True)
    }
    return Table(path, columns, range(1, table.num_rows + 1))


def text_of(path: Path, name: str, value: Any) -> str:
    """A typed value as text; empty where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (list, tuple, dict, bytes)):
        raise InputError(
            f"column {name!r} of {path} holds {type(value).__name__}s; a value per row is needed: "
            "spread it over several columns"
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return "" if is_missing(text) else text
