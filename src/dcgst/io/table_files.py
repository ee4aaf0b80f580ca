"""Read tables from CSV and Parquet files."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
from collections import Counter
from pathlib import Path

from dcgst.errors import EmptyTableError, InputError
from dcgst.io.arrow import CELL_BYTES, table_from_arrow
from dcgst.io.files import GZIP, open_file, read_bytes
from dcgst.io.table import Table, cell_text, clean_cells
from dcgst.memory import check_memory

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "space"}
"""Delimiters that can be guessed, and their names in messages."""


HEAD, HEAD_ROWS = 1 << 20, 1000
"""Bytes of a CSV file, and rows of a Parquet file, that show which columns it has."""

MEMORY_FACTOR = 15.0
"""Memory of a parsed CSV file as a multiple of its size."""


DATABASES = {"sqlite": (0, b"SQLite format 3"), "duckdb": (8, b"DUCK")}
"""How files of databases are recognized: a position, and the bytes there."""


def read_table(path: Path, delimiter: str | None = None, *, header_required: bool = True) -> Table:
    r"""Read a CSV or Parquet file, depending on the file name extension.

    Args:
        path: file to read.
        delimiter: delimiter of a CSV file, one character or ``"tab"``; guessed from the header by
            default.
        header_required: if False and the first row repeats a value, which column names must not,
            read the first row as data and name the columns ``column 1``, ``column 2``, ….

    Returns:
        The table, with all values as text.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "nodes.csv")
        >>> _ = path.write_text("id;size\na;1\nb;NA\n")
        >>> read_table(path).columns
        {'id': ['a', 'b'], 'size': ['1', '']}
    """
    if os.path.isdir(path):  # unlike Path.is_dir, False for names that are too long
        return _read_folder(path)
    if is_parquet(path):
        return _read_parquet(path)
    character = "\t" if delimiter in ("\\t", "tab") else delimiter
    if character is not None and len(character) != 1:
        raise InputError(f"the delimiter must be one character or 'tab', got {delimiter!r}")
    return _read_csv(path, character, header_required)


def column_names(count: int) -> list[str]:
    """Return the names of columns without a header.

    Example:
        >>> column_names(2)
        ['column 1', 'column 2']
    """
    return [f"column {number}" for number in range(1, count + 1)]


def read_head(path: Path, delimiter: str | None = None) -> tuple[Table, str]:
    """Read the first rows of a large file.

    Args:
        path: file to read.
        delimiter: of a CSV file, one character or ``"tab"``; guessed by default.

    Returns:
        at least the first row, named as by :func:`read_table` for a file that may have no header,
        and the delimiter; empty for a Parquet file.
    """
    if is_parquet(path):
        return _head_of_parquet(path), ""
    character = "\t" if delimiter in ("\\t", "tab") else delimiter
    with open_file(path) as file:
        start = file.read(len(GZIP))
        file.seek(0)
        source = gzip.GzipFile(fileobj=file) if start == GZIP else file
        content = source.read(HEAD)
    if len(content) == HEAD:
        content = content[: content.rfind(b"\n") + 1] or content
    text = _decode(path, content)
    character = character or _guess_delimiter(text)
    return _csv_table(path, text, character, header_required=False), character


def is_parquet(path: Path) -> bool:
    """Whether the name of a file says that it is a Parquet file."""
    return without_compression(path).suffix.lower() in (".parquet", ".pq")


def without_compression(path: Path) -> Path:
    """The name of a file without the extension of a compression.

    Example:
        >>> without_compression(Path("nodes.csv.zst"))
        PosixPath('nodes.csv')
    """
    return Path(path.name.removesuffix(".gz").removesuffix(".zst"))


def _read_csv(path: Path, delimiter: str | None, header_required: bool) -> Table:
    text = _decode(path, read_bytes(path, MEMORY_FACTOR))
    return _csv_table(path, text, delimiter or _guess_delimiter(text), header_required)


def _csv_table(path: Path, text: str, delimiter: str, header_required: bool) -> Table:
    rows = _parse_rows(path, text, delimiter)
    if not rows:
        raise InputError(f"{path} is empty; a header and at least one row are required")
    header_line, header = rows[0]
    names = [name.strip() for name in header]
    if header_required or len(set(names)) == len(names):
        rows = rows[1:]
    else:
        names = column_names(len(names))
    names = _check_header(path, names, DELIMITERS.get(delimiter, repr(delimiter)))
    if not rows:
        raise EmptyTableError(f"{path} has a header but no rows; at least one row is required")
    for line, row in rows:
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {line} has {len(row)} values, but the header has {len(names)} "
                "columns; put values that contain the delimiter in quotes"
            )
    values = zip(*(row for _, row in rows), strict=True)
    columns = {name: clean_cells(column) for name, column in zip(names, values, strict=True)}
    return Table(path, columns, [line for line, _ in rows], header_line)


def _decode(path: Path, content: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte-order mark; remove the mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not valid UTF-16; save the file as UTF-8") from error
    content = content.removeprefix(codecs.BOM_UTF8)
    for scheme, (position, magic) in DATABASES.items():
        if content[position:].startswith(magic):
            raise InputError(
                f"{path} is a database; write {scheme}:///{path} and two queries, --nodes and "
                "--edges"
            )
    if 0 in content:
        line = content.count(b"\n", 0, content.index(0)) + 1
        what = f"has a byte of value zero in line {line} and is not a text file"
        start = content[:1000]
        if start.count(0) >= len(start) / 4:
            what = "looks like UTF-16 without a byte-order mark"
        raise InputError(f"{path} {what}; save the file as UTF-8, in Excel as 'CSV UTF-8'")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line} is not valid UTF-8 (byte {content[error.start]:#04x}); save the "
            "file as UTF-8, in Excel as 'CSV UTF-8'"
        ) from error


def _guess_delimiter(text: str) -> str:
    """Return the delimiter that occurs most often in the header.

    The space counts only if there is no other delimiter, since column names may contain spaces.
    A header without any delimiter gives the comma.
    """
    header = next((line for line in text.splitlines() if line.strip()), "")
    counts = {delimiter: header.count(delimiter) for delimiter in DELIMITERS if delimiter != " "}
    most_frequent = max(counts, key=lambda delimiter: counts[delimiter])
    if counts[most_frequent]:
        return most_frequent
    return " " if " " in header.strip() else ","


def _parse_rows(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return all rows that are not blank, each with the line where it starts."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, start = [], 1
    try:
        for row in reader:
            if row and (row[0].strip() or any(value.strip() for value in row)):
                rows.append((start, row))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {start} cannot be parsed: {error}; check the quotes"
        ) from error
    return rows


def _check_header(path: Path, names: list[str], delimiter_name: str) -> list[str]:
    """Check the column names and name the columns whose header is empty."""
    if len(names) == 1:
        raise InputError(
            f"{path} has a single column, {names[0][:60]!r}, with the {delimiter_name} as "
            "delimiter; if the file has another delimiter, set it with --delimiter"
        )
    names = [name or default for name, default in zip(names, column_names(len(names)), strict=True)]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InputError(f"{path} has more than one column named {repeated[0]!r}; rename one")
    return names


def _head_of_parquet(path: Path) -> Table:
    import pyarrow.parquet as parquet

    try:
        file = parquet.ParquetFile(path)
        batch = next(file.iter_batches(batch_size=HEAD_ROWS))
    except StopIteration as error:
        raise InputError(f"{path} has no rows; at least one row is required") from error
    except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise InputError(f"{path} is not a valid Parquet file: {error}") from error
    columns = {
        str(name): [cell_text(path, str(name), value) for value in column.to_pylist()]
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return Table(path, columns, range(1, batch.num_rows + 1), unit="row")


def _read_folder(path: Path) -> Table:
    """A Parquet data set in several files."""
    if not any(path.rglob("*.parquet")):
        raise InputError(f"{path} is a folder; a file is required, or a folder of Parquet files")
    try:
        import pyarrow.dataset as dataset
    except ImportError as error:
        raise InputError(f"reading {path} requires pyarrow: pip install 'dcgst[io]'") from error
    try:
        found = dataset.dataset(
            path, format="parquet", partitioning="hive", exclude_invalid_files=True
        )
        table = found.to_table()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a valid Parquet data set: {error}") from error
    return table_from_arrow(table, path)


def _read_parquet(path: Path) -> Table:
    content = read_bytes(path)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise InputError(f"reading {path} requires pyarrow: pip install 'dcgst[io]'") from error
    try:
        metadata = parquet.read_metadata(arrow.BufferReader(content))
        cells = metadata.num_rows * metadata.num_columns
        check_memory(CELL_BYTES * cells, f"{path} needs", "use a machine with more memory")
        table = parquet.read_table(arrow.BufferReader(content))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # Arrow and its decoders raise many types for damaged files
        raise InputError(f"{path} is not a valid Parquet file: {error}") from error
    return table_from_arrow(table, path)
