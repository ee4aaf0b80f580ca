"""Atomic file writing: a file has its old content or its new content, never a part of it."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcgst.errors import WriteError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet runs as a formula."""

TEMPORARY = ".part"
"""Suffix of temporary files; one may be left behind when a process is killed."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it replaces ``path``.

    If the block raises, ``path`` keeps its old content and the temporary file is removed. The
    folder is created if needed.
    """
    try:
        path = Path(os.path.realpath(path))  # the target of a symbolic link is replaced
        if path.exists() and not path.is_file():
            raise WriteError(f"{path} cannot be written: it is not a regular file")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=TEMPORARY)
        os.close(handle)
        temporary = Path(name)
        with contextlib.suppress(OSError):  # some file systems have no permissions
            temporary.chmod(0o666 & ~_umask())
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary), temporary):
            raise _cannot_write(path, error) from error
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def append_line(path: Path, text: str) -> None:
    """Append a line to a file and flush it to disk.

    A line that an interrupted write left incomplete stays a line of its own.
    """
    line = (text + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        if file.tell() and not _ends_with_newline(path):
            line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def next_folder(folder: Path) -> Path:
    """The first of ``folder-2``, ``folder-3``, … that does not exist."""
    number = 2
    while (found := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return found


def _ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], *, spreadsheet: bool = False) -> None:
    """Write a table as CSV atomically; ``spreadsheet`` as in :func:`rows_to_csv`."""
    write_text(path, rows_to_csv(rows, spreadsheet=spreadsheet))


def columns_to_csv(
    columns: Mapping[str, Sequence[Any]], *, header: bool = True, spreadsheet: bool = False
) -> str:
    r"""Convert columns of equal length to CSV; ``spreadsheet`` as in :func:`rows_to_csv`.

    Example:
        >>> columns_to_csv({"id": ["a", "b"], "size": [1, 2]})
        'id,size\na,1\nb,2\n'
    """
    names = [_clean(name, spreadsheet=spreadsheet) for name in columns]
    cleaned = [_clean_column(values, spreadsheet) for values in columns.values()]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(names)
    writer.writerows(zip(*cleaned, strict=True))
    return buffer.getvalue()


def _clean_column(values: Sequence[Any], spreadsheet: bool) -> Sequence[Any]:
    if not any(isinstance(value, str) for value in values):
        return values
    return [_clean(value, spreadsheet=spreadsheet) for value in values]


def _clean(value: Any, *, spreadsheet: bool) -> Any:
    return _without_lone_breaks(_as_text(value) if spreadsheet else value)


def rows_to_csv(rows: Sequence[Mapping[str, Any]], *, spreadsheet: bool = False) -> str:
    r"""Convert records to CSV with one column for each key, in order of first appearance.

    Args:
        rows: the records.
        spreadsheet: put an apostrophe before text that a spreadsheet would run as a formula.

    Example:
        >>> rows_to_csv([{"id": "a", "class": "x"}, {"id": "b", "note": "1, 2"}])
        'id,class,note\na,x,\nb,,"1, 2"\n'
        >>> rows_to_csv([{"id": "=1+1"}], spreadsheet=True)
        "id\n'=1+1\n"
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name, "") for row in rows] for name in names}
    return columns_to_csv(columns, spreadsheet=spreadsheet)


def _without_lone_breaks(value: Any) -> Any:
    """A carriage return is written as a line feed: the former is not quoted by all versions."""
    return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value


def _as_text(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _sync(path: Path) -> None:
    """Wait until the content is on the disk."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    """The permissions that new files of this process do not get."""
    current = os.umask(0)
    os.umask(current)
    return current


def _cannot_write(path: Path, error: OSError) -> WriteError:
    return WriteError(f"{path} cannot be written: {error.strerror or error}")
