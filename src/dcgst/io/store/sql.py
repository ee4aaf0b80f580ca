"""Tables as DuckDB sees them: cells as text, with the words for missing values as null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcgst.errors import InputError
from dcgst.graph.checks import MAX_MAGNITUDE
from dcgst.io.encoders.fitting import MAX_VALUES, MIN_ROWS
from dcgst.io.table import MISSING_VALUES
from dcgst.io.table_files import is_parquet


def name_of(column: str) -> str:
    """A column name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def clean(column: str) -> str:
    """The text of a cell without surrounding spaces; null if it is missing."""
    text = f"trim({name_of(column)}::varchar)"
    missing = ", ".join(literal(word) for word in sorted(MISSING_VALUES))
    return f"case when lower({text}) in ({missing}) then null else {text} end"


def number_of(column: str) -> str:
    """The finite number in a cell; null if it is missing or no number."""
    value = f"try_cast({name_of(column)} as double)"
    return f"case when abs({value}) <= {MAX_MAGNITUDE!r} then {value} end"


def source_of(path: Path, names: Sequence[str], delimiter: str, *, header: bool) -> str:
    """A file as a table of texts, or of the types of a Parquet file."""
    if is_parquet(path):
        return f"read_parquet({literal(str(path))})"
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({literal(str(path))}, delim={literal(delimiter)}, header={str(header).lower()}, "
        f"columns={{{columns}}}, quote='\"', escape='\"', auto_detect=false, null_padding=false)"
    )


@dataclass(frozen=True)
class Statistics:
    """Of a column of numbers: mean, standard deviation, and what is wrong with it."""

    mean: float
    std: float
    binary: bool
    wrong: int
    example: str


class Database:
    """A DuckDB database in a folder, with a limit on its memory.

    Args:
        folder: for its file and for what does not fit into memory.
        memory: bytes.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise InputError(
                "importing tables requires DuckDB: pip install 'dcgst[big]'"
            ) from error
        self._errors = duckdb.Error
        config: dict[str, Any] = {
            "memory_limit": f"{memory // 2**20}MiB",
            "temp_directory": str(folder / "spill"),
        }
        try:
            self._connection = duckdb.connect(str(folder / "import.duckdb"), config=config)
        except duckdb.Error as error:
            raise InputError(f"{folder} cannot be used: {error}") from error

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def view(self, name: str, source: str) -> None:
        """Give a file a name."""
        self._run(f"create or replace view {name} as select * from {source}").fetchall()

    def table(self, name: str, query: str) -> None:
        """Store the result of a query."""
        self._run(f"create or replace table {name} as {query}").fetchall()

    def row(self, query: str) -> Any:
        """The first row of a result; None if there is none."""
        rows = self._run(query).fetchall()
        return rows[0] if rows else None

    def arrow(self, query: str) -> Any:
        """A result as Arrow table."""
        return self._read(lambda: self._connection.sql(query).to_arrow_table())

    def batches(self, query: str, rows: int) -> Iterator[Any]:
        """A result as Arrow record batches."""
        # A connection of its own, so that other queries can be run before the last batch.
        connection = self._connection.cursor()
        reader = self._read(lambda: connection.sql(query).to_arrow_reader(rows))
        while True:
            try:
                yield reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:  # errors of DuckDB come through Arrow
                raise _readable(error) from error

    def statistics(self, table: str, columns: Mapping[str, float]) -> dict[str, Statistics]:
        """Statistics of columns of numbers, from all rows.

        Args:
            table: the table.
            columns: for each column zero, or m for the mean and deviation of ``log(1 + x / m)``.
        """
        if not columns:
            return {}
        parts = []
        for column, median in columns.items():
            number, text = number_of(column), clean(column)
            scaled = number
            if median:  # the greatest of null and zero is zero
                logarithm = f"ln(1 + greatest({number}, 0) / {median!r})"
                scaled = f"case when {number} is not null then {logarithm} end"
            wrong = f"{number} is null and {text} is not null"
            parts += [
                f"avg({scaled})",
                f"stddev_pop({scaled})",
                f"bool_and({number} in (0, 1))",
                f"count(*) filter (where {wrong})",
                f"min({text}) filter (where {wrong})",
            ]
        values = iter(self.row(f"select {', '.join(parts)} from {table}"))
        found = {}
        for column in columns:
            mean, std, binary, wrong, example = (next(values) for _ in range(5))
            mean, std = _without_noise(mean or 0.0, std or 0.0)
            found[column] = Statistics(mean, std, bool(binary), wrong, example or "")
        return found

    def categories(self, table: str, column: str) -> tuple[str, ...]:
        """The most frequent values of a column, sorted."""
        values: list[str] = []
        for least in (MIN_ROWS, 1):  # all values, if each is in one row
            query = (
                f"select {clean(column)} as value from {table} where value is not null group by 1 "
                f"having count(*) >= {least} order by count(*) desc, 1 limit {MAX_VALUES}"
            )
            values = values or self.arrow(query)["value"].to_pylist()
        return tuple(sorted(values))

    def _run(self, query: str) -> Any:
        return self._read(lambda: self._connection.execute(query))

    def _read(self, call: Any) -> Any:
        try:
            return call()
        except self._errors as error:
            raise _readable(error) from error


def _readable(error: Exception) -> InputError:
    """The first lines of an error of DuckDB; the rest is advice about its options."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    advice = next((i for i, line in enumerate(lines) if line.startswith("Possible")), len(lines))
    remedy = ""
    if "CSV" in lines[0]:
        remedy = "; is it a CSV table with the same delimiter, quotes and line ends throughout?"
    return InputError("the tables cannot be read: " + " ".join(lines[: min(advice, 4)]) + remedy)


def _without_noise(mean: float, std: float) -> tuple[float, float]:
    """Mean and standard deviation without the digits that depend on the order of summation."""
    std = float(f"{std:.10g}")
    return (round(mean / std, 10) * std if std else mean), std
