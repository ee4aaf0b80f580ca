"""Tables of Arrow, pandas and Polars, and rows of databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dcgst.errors import EmptyTableError, InputError
from dcgst.io.table import Table, cell_text, clean_cells
from dcgst.memory import check_memory

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
