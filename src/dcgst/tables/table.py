"""Tables of text: named columns with line numbers, from CSV and Parquet files and Arrow."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import EmptyTableError, InputError, option
from dcgst.graph.cleaning import MAX_MAGNITUDE
from dcgst.memory import available_memory, check_memory, in_gib

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 22


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes.

    Raises:
        InputError: if the file cannot be read. The message names the file and the reason.
    """
    try:
        _check_kind(path)
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; a file is required") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if "null byte" in str(error):
            raise InputError(f"{str(path)!r} is not a file name: {error}") from error
        raise


def read_bytes(path: Path, memory_factor: float = 2.0) -> bytes:
    """Return the content of a file; compressed files (gzip, zstd) are decompressed.

    Args:
        path: the file.
        memory_factor: memory that the content needs once it is parsed, as a multiple of its size.

    Raises:
        InputError: as in :func:`open_file`, or if the memory does not suffice.
    """
    most = available_memory() / memory_factor
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        check_memory(
            size * memory_factor, f"{path} needs", "use a machine with more memory, or fewer rows"
        )
        content = _read_at_most(path, file, most)
    if content.startswith(ZSTD):
        return _from_zstd(path, content, most)
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as compressed:
            return _read_at_most(path, compressed, most)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} is not a valid gzip file: {error}") from error


def _from_zstd(path: Path, content: bytes, most: float) -> bytes:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(f"reading {path} requires pyarrow: pip install 'dcgst[io]'") from error
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            return _read_at_most(path, stream, most)
    except OSError as error:
        raise InputError(f"{path} is not a valid zstd file: {error}") from error


def _check_kind(path: Path) -> None:
    """Raise for devices, and for named pipes, which may wait forever for a writer."""
    mode = os.stat(path).st_mode
    from_shell = str(path) == "/dev/stdin" or any(
        path.is_relative_to(folder) for folder in ("/dev/fd", "/proc/self/fd")
    )
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and from_shell):
        return
    kind = "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    raise InputError(f"{path} is {kind}; a regular file is required")


def _read_at_most(path: Path, file: Any, most: float) -> bytes:
    blocks, total = [], 0
    while block := file.read(_BLOCK):
        blocks.append(block)
        total += len(block)
        if total > most:
            raise InputError(
                f"{path} has more than {in_gib(total)} of content, too much for the available "
                "memory; use a machine with more memory, or fewer rows"
            )
    return b"".join(blocks)


MISSING_VALUES = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Cells that count as missing values, in lower case."""

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+|\d+")


@dataclass(frozen=True)
class Table:
    """Named columns of text.

    Args:
        path: file that the table was read from.
        columns: the values of each column by name. A missing value is the empty string.
        lines: for each row, the line of the file where the row starts.
        header_line: line of the file where the header starts.
        unit: what ``lines`` counts: lines of a text file, or rows where the source has no lines.

    Example:
        >>> table = Table(Path("nodes.csv"), {"id": ["a", "b"], "size": ["1.5", ""]}, [2, 3])
        >>> table.where(1)
        'nodes.csv, line 3'
        >>> table.numbers("size")
        array([1.5, nan])
    """

    path: Path
    columns: dict[str, list[str]]
    lines: Sequence[int]
    header_line: int = 1
    unit: str = "line"

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.columns)

    def column(self, name: str) -> list[str]:
        """Return the values of a column as text.

        Raises:
            InputError: if there is no such column. The message lists the columns.
        """
        if name not in self.columns:
            raise InputError(
                f"{self.path} has no column {name!r}; its columns are: "
                f"{', '.join(list(self.columns)[:20])}"
            )
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return the values of a column as numbers, NaN for missing values.

        Raises:
            InputError: if a value is not a number, or not within ±``MAX_MAGNITUDE``.
        """
        texts = self.column(name)
        try:
            numbers = np.array([float(text) if text else np.nan for text in texts])
        except ValueError:
            numbers = np.array([np.inf])
        if (np.abs(numbers) > MAX_MAGNITUDE).any():
            for row, text in enumerate(texts):
                if text:
                    self._check_number(row, name, text)
        return numbers

    def position(self, row: int) -> str:
        """Position of a row in the file, for messages."""
        return f"{self.unit} {self.lines[row]}"

    def where(self, row: int) -> str:
        """File and position of a row, for messages."""
        return f"{self.path}, {self.position(row)}"

    def _check_number(self, row: int, name: str, text: str) -> None:
        number = parse_number(text)
        if number is None:
            fix = "fix the value"
            if is_decimal_comma(text):
                fix = "write a decimal point instead of a decimal comma"
            raise InputError(
                f"{self.where(row)}: column {name!r} must contain numbers, got {text[:40]!r}; {fix}"
            )
        if abs(number) > MAX_MAGNITUDE:
            raise InputError(
                f"{self.where(row)}: column {name!r} must contain finite numbers of magnitude at "
                f"most {MAX_MAGNITUDE:g}, got {text[:40]!r}; fix the value"
            )


def parse_number(text: str) -> float | None:
    """Return the number that a text represents, or None.

    Example:
        >>> parse_number("1e3"), parse_number("1,5"), parse_number("red")
        (1000.0, None, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def is_decimal_comma(text: str) -> bool:
    """Whether a text is a number with a decimal comma, or an integer.

    Integers count because a column of numbers with a decimal comma contains both.

    Example:
        >>> is_decimal_comma("1,5"), is_decimal_comma("2"), is_decimal_comma("1.5")
        (True, True, False)
    """
    return DECIMAL_COMMA.fullmatch(text) is not None


def clean_cell(text: str) -> str:
    """Strip whitespace and replace words for missing values by the empty string.

    Example:
        >>> clean_cell(" red "), clean_cell("NaN"), clean_cell("nancy")
        ('red', '', 'nancy')
    """
    text = text.strip().replace("\0", "")  # NumPy removes it at the end of a text only
    return "" if text.lower() in MISSING_VALUES else text


def clean_cells(texts: Iterable[str]) -> list[str]:
    """:func:`clean_cell` of each text, without the cost of a call for each."""
    return [
        "" if (clean := text.strip().replace("\0", "")).lower() in MISSING_VALUES else clean
        for text in texts
    ]


def cell_text(path: Path, name: str, value: Any) -> str:
    """Convert a typed value of column ``name`` to text, the empty string if missing.

    Example:
        >>> cell_text(Path("n.parquet"), "size", 3.0), cell_text(Path("n.parquet"), "size", None)
        ('3', '')
    """
    if isinstance(value, (list, tuple)):
        return json.dumps([str(item) for item in value], ensure_ascii=False) if value else ""
    if isinstance(value, (dict, bytes)):
        raise InputError(
            f"column {name!r} of {path} contains values of type {type(value).__name__}; one number "
            "or text per cell is required: split the values into several columns"
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean_cell(str(value))  # "None" and "nan" are missing values


CELL_BYTES = 80
"""Memory of a cell of a table."""


def is_arrow(value: object) -> bool:
    """Whether an object can be converted to an Arrow table: of pandas, Polars, PyArrow, DuckDB."""
    return hasattr(value, "__arrow_c_stream__")


def to_arrow(value: Any) -> Any:
    """Convert a table of another library to an Arrow table."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(
            "tables of other libraries require pyarrow: pip install 'dcgst[io]'"
        ) from error
    return pa.table(value)


def table_from_arrow(table: Any, path: Path) -> Table:
    """Convert an Arrow table to a table of texts.

    Args:
        table: the Arrow table.
        path: its name in messages.
    """
    check_header([str(name) for name in table.column_names], path)
    if table.num_rows == 0:
        raise EmptyTableError(f"{path} has no rows; at least one row is required")
    check_memory(
        CELL_BYTES * table.num_rows * table.num_columns,
        f"{path} needs",
        "use a machine with more memory, or dcgst import",
    )
    columns = {
        str(name): _texts(path, str(name), column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return Table(path, columns, range(1, table.num_rows + 1), unit="row")


def table_from_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], path: Path) -> Table:
    """Convert rows of values of any type to a table of texts."""
    check_header(names, path)
    values = list(zip(*rows, strict=True))
    if not values:
        raise EmptyTableError(f"{path} has no rows; at least one row is required")
    columns = {
        name: [cell_text(path, name, value) for value in column]
        for name, column in zip(names, values, strict=True)
    }
    return Table(path, columns, range(1, len(values[0]) + 1), unit="row")


def check_header(names: Sequence[str], path: Path) -> None:
    """Raise if there are fewer than two columns, or two with the same name."""
    if len(names) < 2:
        raise InputError(f"{path} has {len(names)} columns; at least two are required")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InputError(f"{path} has more than one column named {repeated[0]!r}; rename one")


def _texts(path: Path, name: str, column: Any) -> list[str]:
    """The cells of an Arrow column; as Arrow writes them if Python has no equal type."""
    kind = str(column.type)
    if kind.startswith("map<"):
        raise InputError(
            f"column {name!r} of {path} has type {kind}, which is several values; make a column of "
            "each, or drop it"
        )
    if kind in ("string", "large_string", "string_view"):
        return clean_cells(text or "" for text in column.to_pylist())
    try:
        values: list[Any] = column.to_pylist()
    except MemoryError:
        raise
    except Exception:  # unknown time zones, nanoseconds, durations too long for Python
        try:
            values = column.cast("string").to_pylist()
        except MemoryError:
            raise
        except Exception as error:
            raise InputError(
                f"column {name!r} of {path} has type {column.type}, which cannot be read: {error}; "
                "convert it to text, or drop it"
            ) from error
    return [cell_text(path, name, value) for value in values]


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "space"}
"""Delimiters that can be guessed, and their names in messages."""


HEAD, HEAD_ROWS = 1 << 20, 1000
"""Bytes of a CSV file, and rows of a Parquet file, that show which columns it has."""

MEMORY_FACTOR = 15.0
"""Memory of a parsed CSV file as a multiple of its size."""


DATABASES = {"sqlite": (0, b"SQLite format 3"), "duckdb": (8, b"DUCK")}
"""How files of databases are recognized: a position, and the bytes there."""


@dataclass(frozen=True)
class TableFormat:
    """A file format of tables; one of :data:`TABLE_FORMATS`.

    Attributes:
        extensions: of file names, in lower case, without that of a compression.
        read: all rows, from the path, the delimiter or None, and whether there must be a header.
        head: the first rows and the delimiter, from the path and the delimiter or None.
        in_sql: the file as a table of DuckDB, for ``dcgst import``, from the path, the column
            names, the delimiter and whether there is a header.
    """

    extensions: tuple[str, ...]
    read: Callable[[Path, str | None, bool], Table]
    head: Callable[[Path, str | None], tuple[Table, str]]
    in_sql: Callable[[Path, Sequence[str], str, bool], str]


def table_format(path: Path) -> TableFormat:
    """The format of a file by its extension; CSV by default."""
    extension = without_compression(path).suffix.lower()
    return next((form for form in TABLE_FORMATS if extension in form.extensions), CSV)


def read_table(path: Path, delimiter: str | None = None, *, header_required: bool = True) -> Table:
    r"""Read a table from a file, in the format that its extension says.

    Args:
        path: file to read, or a folder of Parquet files.
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
    return table_format(path).read(path, delimiter, header_required)


def read_head(path: Path, delimiter: str | None = None) -> tuple[Table, str]:
    """Read the first rows of a large file.

    Args:
        path: file to read.
        delimiter: of a CSV file, one character or ``"tab"``; guessed by default.

    Returns:
        at least the first row, named as by :func:`read_table` for a file that may have no header,
        and the delimiter; empty for a Parquet file.
    """
    return table_format(path).head(path, delimiter)


def _character(delimiter: str | None) -> str | None:
    """The delimiter of a CSV file as a character; None: it is guessed."""
    character = "\t" if delimiter in ("\\t", "tab") else delimiter
    if character is not None and (len(character) != 1 or character in '\r\n"\0'):
        raise InputError(f"the delimiter must be one character or 'tab', got {delimiter!r}")
    return character


def column_names(count: int) -> list[str]:
    """Return the names of columns without a header.

    Example:
        >>> column_names(2)
        ['column 1', 'column 2']
    """
    return [f"column {number}" for number in range(1, count + 1)]


def without_compression(path: Path) -> Path:
    """The name of a file without the extension of a compression.

    Example:
        >>> without_compression(Path("nodes.csv.zst"))
        PosixPath('nodes.csv')
    """
    return Path(path.name.removesuffix(".gz").removesuffix(".zst"))


def _read_csv(path: Path, delimiter: str | None, header_required: bool) -> Table:
    character = _character(delimiter)
    text = _decode(path, read_bytes(path, MEMORY_FACTOR))
    return _csv_table(path, text, character or _guess_delimiter(text), header_required)


def _head_of_csv(path: Path, delimiter: str | None) -> tuple[Table, str]:
    character = _character(delimiter)
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


def sql_text(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _csv_in_sql(path: Path, names: Sequence[str], delimiter: str, header: bool) -> str:
    columns = ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({sql_text(str(path))}, delim={sql_text(delimiter)}, "
        f"header={str(header).lower()}, columns={{{columns}}}, quote='\"', escape='\"', "
        "auto_detect=false, null_padding=false)"
    )


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
                f"{path} is a database; write {scheme}:///{path} and two queries, "
                f"{option('nodes')} and "
                f"{option('edges')}"
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
            f"delimiter; if the file has another delimiter, set it with {option('delimiter')}"
        )
    names = [name or default for name, default in zip(names, column_names(len(names)), strict=True)]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InputError(f"{path} has more than one column named {repeated[0]!r}; rename one")
    return names


def _head_of_parquet(path: Path, delimiter: str | None) -> tuple[Table, str]:
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
    return Table(path, columns, range(1, batch.num_rows + 1), unit="row"), ""


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


def _read_parquet(path: Path, delimiter: str | None, header_required: bool) -> Table:
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


def _parquet_in_sql(path: Path, names: Sequence[str], delimiter: str, header: bool) -> str:
    return f"read_parquet({sql_text(str(path))})"


CSV = TableFormat((".csv", ".tsv", ".txt"), _read_csv, _head_of_csv, _csv_in_sql)
PARQUET = TableFormat((".parquet", ".pq"), _read_parquet, _head_of_parquet, _parquet_in_sql)
TABLE_FORMATS = (CSV, PARQUET)
