"""Where tables come from and go to: files, Arrow tables, and databases."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import torch
from numpy.typing import NDArray

from dcgst.errors import InputError, WriteError, option
from dcgst.features.components import spectral_features
from dcgst.graph import Graph
from dcgst.tables.table import (
    Table,
    is_arrow,
    read_table,
    table_from_arrow,
    table_from_rows,
    to_arrow,
)
from dcgst.text import without_passwords

SCHEMES = ("sqlite", "duckdb", "postgresql", "postgres")
IF_EXISTS = ("fail", "append", "replace")
"""What to do with a table that exists."""

Columns = Mapping[str, NDArray[Any]]
"""Columns of equal length by name."""


def is_database(text: object) -> bool:
    """Whether a text is the address of a database.

    Example:
        >>> is_database("sqlite:///bank.db"), is_database("nodes.csv"), is_database("mysql://x")
        (True, False, False)
    """
    scheme, separator, _ = str(text).partition("://")
    return bool(separator) and scheme in SCHEMES


@dataclass(frozen=True)
class Query:
    """A table that is the result of a query.

    Attributes:
        url: ``sqlite:///FILE``, ``duckdb:///FILE`` or ``postgresql://USER:PASSWORD@HOST/DATABASE``.
        sql: the query.
        what: what the table holds, for messages.

    Example:
        >>> query = Query("sqlite:///shop.db", "select id, size, label from customers")
        >>> query.sql.split()[0]
        'select'
    """

    url: str
    sql: str
    what: str = "query"

    @property
    def name(self) -> str:
        """Name of the database."""
        return Path(urlsplit(self.url).path).name or "database"

    def read(self) -> Table:
        """Run the query; nothing in the database is changed.

        Raises:
            InputError: if the database or the query cannot be read.
        """
        path = Path(f"{self.name} ({self.what})")
        scheme = urlsplit(self.url).scheme
        with _errors(self.url, f"the {self.what} query failed"):
            if scheme == "sqlite":
                return _read_sqlite(self, path)
            if scheme == "duckdb":
                with _open_duckdb(self.url, read_only=True) as duckdb:
                    found = duckdb.sql(self.sql)
                    if found is None:
                        raise InputError(f"{self.name}: the {self.what} query returns no table")
                    return table_from_arrow(found.to_arrow_table(), path)
            with _open_postgres(self.url) as connection, connection.cursor() as cursor:
                cursor.execute(self.sql)
                return table_from_arrow(cursor.fetch_arrow_table(), path)


def write_table(url: str, table: str, blocks: Iterable[Columns], if_exists: str = "fail") -> None:
    """Write columns into a table, all of them or nothing.

    Args:
        url: as in :class:`Query`.
        table: name of the table.
        blocks: parts of the rows.
        if_exists: ``fail``, ``append`` or ``replace``.

    Raises:
        InputError: if the table exists and ``if_exists`` is ``fail``.
        WriteError: if the database cannot be written.
    """
    scheme = urlsplit(url).scheme
    with _errors(url, f"table {table!r} cannot be written", WriteError):
        if scheme == "sqlite":
            _write_sqlite(url, table, blocks, if_exists)
        elif scheme == "duckdb":
            _write_duckdb(url, table, blocks, if_exists)
        else:
            _write_postgres(url, table, blocks, if_exists)


def _file_of(url: str) -> Path:
    """The file of ``sqlite:///FILE``; four slashes for an absolute path."""
    path = urlsplit(url).path
    if urlsplit(url).netloc or not path.removeprefix("/"):
        scheme = urlsplit(url).scheme
        raise InputError(
            without_passwords(f"{url} names no file; write {scheme}:///FILE, with three slashes")
        )
    return Path(path[1:])


@contextlib.contextmanager
def _errors(url: str, what: str, kind: type[Exception] = InputError) -> Iterator[None]:
    """Convert errors of the libraries, which have no common type."""
    try:
        yield
    except (InputError, WriteError, MemoryError):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        if any(part in str(error) for part in _parts_of_password(url)):
            lines = ["the address is not valid; write special characters of the password as %xx"]
        raise kind(without_passwords(f"{url}: {what}: {'; '.join(lines[:2])}")) from error


def _parts_of_password(url: str) -> list[str]:
    """Parts of the password in an address, which a library may take for something else."""
    login = url.partition("://")[2].rpartition("@")[0]
    return [part for part in re.split(r"\W+", login.partition(":")[2]) if len(part) > 2]


def _exists(table: str) -> InputError:
    return InputError(
        f"table {table!r} exists; use {option('if_exists')} append or replace, or another "
        f"{option('table')}"
    )


def _name(text: str) -> str:
    """A name in SQL."""
    return '"' + text.replace('"', '""') + '"'


def _read_sqlite(query: Query, path: Path) -> Table:
    file = _file_of(query.url)
    if not file.exists():
        raise InputError(f"{file} does not exist; check the path")
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        cursor = connection.execute(query.sql)
        names = [column[0] for column in cursor.description or ()]
        return table_from_rows(names, cursor, path)


def _write_sqlite(url: str, table: str, blocks: Iterable[Columns], if_exists: str) -> None:
    with contextlib.closing(sqlite3.connect(_file_of(url), isolation_level=None)) as connection:
        connection.execute("begin immediate")
        found = connection.execute(
            "select count(*) from sqlite_master where type = 'table' and lower(name) = lower(?)",
            [table],
        ).fetchone()[0]
        if found and if_exists == "fail":
            raise _exists(table)
        if found and if_exists == "replace":
            connection.execute(f"drop table {_name(table)}")
        for number, block in enumerate(blocks):
            if number == 0 and not (found and if_exists == "append"):
                types = {"i": "integer", "f": "real"}
                columns = ", ".join(
                    f"{_name(name)} {types.get(values.dtype.kind, 'text')}"
                    for name, values in block.items()
                )
                connection.execute(f"create table {_name(table)} ({columns})")
            places = ", ".join("?" * len(block))
            names = ", ".join(map(_name, block))
            rows = zip(*(values.tolist() for values in block.values()), strict=True)
            connection.executemany(f"insert into {_name(table)} ({names}) values ({places})", rows)
        connection.execute("commit")


@contextlib.contextmanager
def _open_duckdb(url: str, *, read_only: bool) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError as error:
        raise InputError("DuckDB files require DuckDB: pip install 'dcgst[big]'") from error
    file = _file_of(url)
    if read_only and not file.exists():
        raise InputError(f"{file} does not exist; check the path")
    with contextlib.closing(duckdb.connect(str(file), read_only=read_only)) as connection:
        yield connection


def _write_duckdb(url: str, table: str, blocks: Iterable[Columns], if_exists: str) -> None:
    with _open_duckdb(url, read_only=False) as connection:

        def run(sql: str, *values: Any) -> list[Any]:
            rows: list[Any] = connection.execute(sql, list(values)).fetchall()
            return rows

        run("begin")
        ((found,),) = run(
            "select count(*) from duckdb_tables() where lower(table_name) = lower(?)", table
        )
        if found and if_exists == "fail":
            raise _exists(table)
        if found and if_exists == "replace":
            run(f"drop table {_name(table)}")
        for number, block in enumerate(blocks):
            connection.register("dcgst_rows", _arrow(block))
            create = number == 0 and not (found and if_exists == "append")
            name = _name(table)
            start = f"create table {name} as" if create else f"insert into {name} by name"
            run(f"{start} select * from dcgst_rows")
            connection.unregister("dcgst_rows")
        run("commit")


@contextlib.contextmanager
def _open_postgres(url: str) -> Iterator[Any]:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise InputError("PostgreSQL requires ADBC: pip install 'dcgst[sql]'") from error
    with contextlib.closing(dbapi.connect(url)) as connection:
        yield connection


def _write_postgres(url: str, table: str, blocks: Iterable[Columns], if_exists: str) -> None:
    with _open_postgres(url) as connection, connection.cursor() as cursor:
        cursor.execute("select to_regclass($1) is not null", [_name(table)])
        (found,) = cursor.fetchone()
        if found and if_exists == "fail":
            raise _exists(table)
        if found and if_exists == "replace":
            cursor.execute(f"drop table {_name(table)}")
        for number, block in enumerate(blocks):
            create = number == 0 and not (found and if_exists == "append")
            cursor.adbc_ingest(table, _arrow(block), mode="create" if create else "append")
        connection.commit()


def _arrow(block: Columns) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values.astype(str) if values.dtype.kind in "OU" else values)
            for name, values in block.items()
        }
    )


STDIN = "-"
"""Stands for standard input."""

NUM_SPECTRAL_FEATURES = 64
"""Number of features computed from the graph structure if there are no feature columns."""


def open_table(
    source: Any, delimiter: str | None, what: str, *, header_required: bool = True
) -> Table:
    """Read a table.

    Args:
        source: a file, ``-`` for standard input, a folder of Parquet files, a :class:`Query`, or a
            table of pandas, Polars or Arrow.
        delimiter: of a CSV file.
        what: ``nodes`` or ``edges``, for messages.
        header_required: as in :func:`read_table`.
    """
    if isinstance(source, Query):
        return source.read()
    if is_arrow(source):
        return table_from_arrow(to_arrow(source), Path(what))
    path = Path("/dev/stdin") if str(source) == STDIN else Path(source)
    return read_table(path, delimiter, header_required=header_required)


def has_no_features(data: Any) -> bool:
    """Whether an object is PyG data without ``x``."""
    return hasattr(data, "edge_index") and getattr(data, "x", None) is None


def pyg_without_features(data: Any) -> Graph:
    """PyG data without ``x``: features are computed from the graph structure."""
    count = int(data.num_nodes)
    placeholder = data.clone()
    placeholder.x = torch.ones(count, 1)
    graph = Graph.from_pyg(placeholder)
    features = spectral_features(graph.adjacency, NUM_SPECTRAL_FEATURES)
    note = f"no x: {features.shape[1]} spectral features are computed from the graph"
    return replace(graph, features=features, notes=(*graph.notes, note))
