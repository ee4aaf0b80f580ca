"""Import large tables into a store with DuckDB, in bounded memory."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.files import write_text
from dcgst.graph import UNKNOWN
from dcgst.graph.cleaning import MAX_MAGNITUDE, EdgeCounts, edge_keys, merge_edges
from dcgst.memory import available_memory, forget, unlimited_addresses
from dcgst.tables import store as files
from dcgst.tables.edges import (
    LARGEST_WEIGHT,
    NO_COLUMN,
    EdgeColumns,
    describe_edge_columns,
    has_header,
    header_as_row,
    no_edge,
    resolve_edge_columns,
    unknown_node,
    wrong_weight,
)
from dcgst.tables.encoders import (
    MAX_VALUES,
    MIN_ROWS,
    ColumnEncoder,
    FeatureEncoder,
    NumberEncoder,
    TokenEncoder,
    fit_encoder,
)
from dcgst.tables.kinds import CATEGORY, FLAG, NUMBER
from dcgst.tables.nodes import (
    MAX_ID_LENGTH,
    Columns,
    NodeColumns,
    describe_classes,
    describe_node_columns,
    feature_columns,
    long_id,
    missing_id,
    natural_order,
    repeated_id,
    resolve_node_columns,
)
from dcgst.tables.store import INDICES, INDPTR, WEIGHTS
from dcgst.tables.table import MISSING_VALUES, Table, read_head, sql_text, table_format
from dcgst.train.progress import Report


def name_of(column: str) -> str:
    """A column name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def clean(column: str) -> str:
    """The text of a cell without surrounding spaces; null if it is missing."""
    text = f"trim({name_of(column)}::varchar)"
    missing = ", ".join(sql_text(word) for word in sorted(MISSING_VALUES))
    return f"case when lower({text}) in ({missing}) then null else {text} end"


def number_of(column: str) -> str:
    """The finite number in a cell; null if it is missing or no number."""
    value = f"try_cast({name_of(column)} as double)"
    return f"case when abs({value}) <= {MAX_MAGNITUDE!r} then {value} end"


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


BATCH = 100_000
"""Rows that are converted at a time."""


@dataclass(frozen=True)
class Plan:
    """What is imported; an interrupted import continues if it is the same.

    Attributes:
        nodes: node table.
        edges: edge table.
        node_columns: id and label column.
        edge_columns: source, target and weight column.
        features: names of the feature columns.
        kinds: of the feature columns that are given.
        encoder: of the feature columns; None: to be fitted.
        has_header: whether the edge table has a header.
        drop_unknown: whether edges with unknown ids are dropped.
        columns: role of each column.
    """

    nodes: Path
    edges: Path
    node_columns: NodeColumns
    edge_columns: EdgeColumns
    features: tuple[str, ...]
    kinds: dict[str, str]
    encoder: FeatureEncoder | None
    has_header: bool
    drop_unknown: bool
    columns: Columns

    def identity(self) -> dict[str, Any]:
        """The plan as JSON, with size and time of the tables: that of the nodes, and the rest."""
        fields = {key: str(value) for key, value in asdict(self).items()}
        of_nodes = ("nodes", "node_columns", "features", "kinds", "encoder")
        times = [[s.st_size, s.st_mtime_ns] for s in (self.nodes.stat(), self.edges.stat())]
        return {
            "nodes": {**{key: fields.pop(key) for key in of_nodes}, "table": times[0]},
            "edges": {**fields, "table": times[1]},
        }


@dataclass(frozen=True)
class Job:
    """An import that runs.

    Attributes:
        plan: what is imported.
        out: the store.
        work: folder for what is removed at the end.
        database: with the views ``nodes`` and ``edges``.
        memory: bytes to use.
        progress: called with the name of a step and the share of it that is done.
    """

    plan: Plan
    out: Path
    work: Path
    database: Database
    memory: int
    progress: Report

    def step(self, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stored result of a step, or compute and store it."""
        path = self.work / f"{name}.json"
        if path.exists():
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return stored
        self.progress(name, 0.0)
        result = compute()
        write_text(path, json.dumps(result))
        self.progress(name, 1.0)
        return result


KEY = np.int64
WEIGHT = np.float32

SORTING = 10
"""Memory of sorting a bucket as a multiple of its size."""


@dataclass
class Entries(EdgeCounts):
    """What was changed in the edges of a table, and what was written."""

    entries: int = 0
    index: str = "int32"


class AdjacencyBuilder:
    """Collects edges in buckets by source, sorts one bucket at a time, and writes CSR arrays.

    Args:
        folder: for the result.
        work: folder for the buckets.
        num_nodes: n.
        num_edges: about how many edges will be added.
        weighted: whether edges have weights.
        memory: bytes that sorting a bucket may use.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        num_nodes: int,
        num_edges: int,
        *,
        weighted: bool,
        memory: int,
    ) -> None:
        self.folder, self.num_nodes, self.weighted = folder, num_nodes, weighted
        size = 2 * num_edges * (KEY().itemsize + (WEIGHT().itemsize if weighted else 0))
        count = max(1, min(1000, num_nodes, -(-SORTING * size // max(1, memory))))
        self.width = -(-num_nodes // count)
        self.counts = Entries()
        for path in (folder, work):
            path.mkdir(parents=True, exist_ok=True)
        self.keys = [work / f"bucket-{number:04d}.keys" for number in range(count)]
        self.values = [path.with_suffix(".weights") for path in self.keys]
        for path in (*self.keys, *self.values):
            path.unlink(missing_ok=True)

    def add(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Add edges; self-loops and edges of weight zero are counted and dropped."""
        keys, weights = edge_keys((source, target), weights, self.num_nodes, self.counts)
        bucket = keys // (2 * self.num_nodes * self.width)
        order = np.argsort(bucket.astype(np.int16), kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(len(self.keys) + 1))
        keys = keys[order]
        if weights is not None:
            weights = weights[order]
        for number, (start, stop) in enumerate(itertools.pairwise(ends)):
            if start < stop:
                _append(self.keys[number], keys[start:stop])
                if weights is not None:
                    _append(self.values[number], weights[start:stop])

    def finish(self, progress: Callable[[float], object] = lambda _: None) -> Entries:
        """Sort the buckets, write the arrays, and remove the buckets.

        Args:
            progress: called with the share of the buckets that are done.
        """
        small = max(self.num_nodes, 2 * sum(_size(path) for path in self.keys) // 16) < 2**31
        index = np.int32 if small else np.int64
        degrees = np.zeros(self.num_nodes, dtype=np.int64)
        with (
            (self.folder / INDICES).open("wb") as indices,
            (self.folder / WEIGHTS).open("wb") as values,
        ):
            for number in range(len(self.keys)):
                positions, weights = self._sort(number)
                rows, columns = np.divmod(positions, self.num_nodes)
                start = number * self.width
                own = degrees[start : start + self.width]
                own += np.bincount(rows - start, minlength=own.size)[: own.size]
                columns.astype(index).tofile(indices)
                ones = np.ones(columns.size, dtype=WEIGHT)
                (ones if weights is None else weights).tofile(values)
                progress((number + 1) / len(self.keys))
        np.concatenate([[0], degrees.cumsum()]).astype(index).tofile(self.folder / INDPTR)
        self.counts.entries = int(degrees.sum())
        self.counts.index = np.dtype(index).name
        for path in (*self.keys, *self.values):
            path.unlink(missing_ok=True)
        return self.counts

    def _sort(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """Positions of a bucket, each once and in order, and their largest weights."""
        if not self.keys[number].exists():
            nothing = np.zeros(0, dtype=WEIGHT) if self.weighted else None
            return np.zeros(0, dtype=KEY), nothing
        keys = np.fromfile(self.keys[number], dtype=KEY)
        weights = np.fromfile(self.values[number], dtype=WEIGHT) if self.weighted else None
        return merge_edges(keys, weights, self.counts)


def _append(path: Path, values: NDArray[np.generic]) -> None:
    with path.open("ab") as file:
        values.tofile(file)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def import_edges(job: Job, count: int) -> dict[str, Any]:
    """Look up the ends of all edges, and write the adjacency matrix."""
    ends = job.plan.edge_columns
    total = job.database.row("select count(*) from edges")[0]
    weighted = ends.weight is not None
    builder = AdjacencyBuilder(
        job.out, job.work, count, total, weighted=weighted, memory=job.memory // 8
    )
    weight = f", {number_of(ends.weight)} as weight" if ends.weight is not None else ""
    query = (
        f"select s.dcgst_node as s, t.dcgst_node as t{weight} from edges "
        f"left join ids s on {clean(ends.source)} = s.dcgst_id "
        f"left join ids t on {clean(ends.target)} = t.dcgst_id"
    )
    done = dropped = 0
    for batch in job.database.batches(query, 10 * BATCH):
        unknown = np.asarray(batch["s"].is_null()) | np.asarray(batch["t"].is_null())
        dropped += int(unknown.sum())
        if dropped and not job.plan.drop_unknown:
            raise find_unknown_end(job)
        known = batch.filter(~unknown)
        weights = None
        if weighted:
            exact = known["weight"].to_numpy(zero_copy_only=False)
            if not ((exact >= 0) & (exact <= LARGEST_WEIGHT)).all():
                raise find_wrong_weight(job)
            weights = exact.astype(np.float32)
        builder.add(known["s"].to_numpy(), known["t"].to_numpy(), weights)
        done += batch.num_rows
        job.progress("edges", 0.7 * done / max(1, total))
    counts = builder.finish(lambda share: job.progress("edges", 0.7 + 0.3 * share))
    if not counts.entries:
        raise no_edge(job.plan.edges)
    notes = [f"edges with unknown node ids dropped: {dropped}"] if dropped else []
    return {
        "num_entries": counts.entries,
        "index": counts.index,
        "weighted": weighted,
        "notes": [*notes, *counts.notes()],
    }


def find_unknown_end(job: Job) -> InputError:
    """The error for the first edge whose end is no node."""
    ends = job.plan.edge_columns
    numbered = (
        f"(select row_number() over () as place, {clean(ends.source)} as a, "
        f"{clean(ends.target)} as b from edges)"
    )
    place, left, right, known = job.database.row(
        f"select place, a, b, s.dcgst_id is not null from {numbered} "
        "left join ids s on a = s.dcgst_id left join ids t on b = t.dcgst_id "
        "where s.dcgst_id is null or t.dcgst_id is null order by place limit 1"
    )
    return unknown_node(f"{job.plan.edges}, row {place}", (right if known else left) or "")


def find_wrong_weight(job: Job) -> InputError:
    """The error for the first edge whose weight is wrong."""
    column = str(job.plan.edge_columns.weight)
    number = number_of(column)
    place, text = job.database.row(
        f"select place, text from (select row_number() over () as place, {clean(column)} as "
        f"text, {number} as number from edges) "
        f"where number is null or number < 0 or number > {LARGEST_WEIGHT} limit 1"
    )
    return wrong_weight(f"{job.plan.edges}, row {place}", column, text or "")


SAMPLE = 100_000
"""Rows that decide the kind of each column, and the words of text columns."""


def import_ids(job: Job) -> dict[str, Any]:
    """Sort the ids and give each node its position."""
    id_text = clean(job.plan.node_columns.id)
    check_ids(job, id_text)
    job.database.table(
        "ids",
        f"select {id_text} as dcgst_id, row_number() over (order by dcgst_id) - 1 "
        "as dcgst_node from nodes",
    )
    count, longest = job.database.row("select count(*), max(length(dcgst_id)) from ids")
    if not count:
        raise InputError(
            f"{job.plan.nodes}: no row can be read after the header; if a name in it has quotes, "
            "they must be around the whole name and doubled inside"
        )
    if longest > MAX_ID_LENGTH:
        raise find_long_id(job, id_text)
    ids = np.lib.format.open_memmap(
        job.out / files.IDS, mode="w+", dtype=f"<U{longest}", shape=(count,)
    )
    for batch in job.database.batches("select * from ids", BATCH):
        ids[batch["dcgst_node"].to_numpy()] = batch["dcgst_id"].to_numpy(zero_copy_only=False)
        forget(ids)
    return {"count": count}


def find_long_id(job: Job, id_text: str) -> InputError:
    """The error for the first id that is too long."""
    numbered = f"(select row_number() over () as place, {id_text} as id from nodes)"
    place, node_id = job.database.row(
        f"select place, id from {numbered} where length(id) > {MAX_ID_LENGTH} order by place "
        "limit 1"
    )
    return long_id(f"{job.plan.nodes}, row {place}", node_id)


def check_ids(job: Job, id_text: str) -> None:
    """Raise if an id is missing or repeated."""
    path, column = job.plan.nodes, job.plan.node_columns.id
    numbered = f"(select row_number() over () as place, {id_text} as id from nodes)"
    missing = job.database.row(f"select min(place) from {numbered} where id is null")[0]
    if missing is not None:
        raise missing_id(f"{path}, row {missing}", column)
    repeated = job.database.row(
        f"select id, min(place), max(place) from {numbered} where id in (select {id_text} from "
        f"nodes group by 1 having count(*) > 1 limit 1) group by id"
    )
    if repeated is not None:
        node_id, first, last = repeated
        raise repeated_id(f"{path}, row {last}", node_id, f"row {first}")


def import_nodes(job: Job, count: int) -> dict[str, Any]:
    """Encode the columns of all nodes, and write features and labels."""
    encoder, notes = fit_columns(job)
    class_names = find_classes(job)
    code = {name: number for number, name in enumerate(class_names)}
    labels = np.lib.format.open_memmap(
        job.out / files.LABELS, mode="w+", dtype=np.int64, shape=(count,)
    )
    labels[:] = UNKNOWN
    width = encoder.width
    target: _Dense | _Sparse = (
        _Sparse(job.out) if is_sparse(job, encoder) else _Dense(job.out, (count, width))
    )
    done = 0
    for nodes, names, table in encoded_rows(job, encoder, sparse=isinstance(target, _Sparse)):
        target.write(nodes, encode(encoder, table))
        labels[nodes] = [UNKNOWN if name is None else code[name] for name in names]
        done += len(nodes)
        job.progress("features", done / count)
    return {
        "columns": width,
        "num_values": target.finish(),
        "class_names": class_names,
        "encoder": encoder.to_json(),
        "notes": [*describe_classes(class_names), *notes],
    }


def fit_columns(job: Job) -> tuple[FeatureEncoder, list[str]]:
    """Kinds from a sample of rows; means, deviations and categories from all rows."""
    if job.plan.encoder is not None:
        return job.plan.encoder, []
    names = job.plan.features
    sample = some_rows(job, names)
    encoder = fit_encoder(sample, names, job.plan.kinds)
    numbers = {c.name: c.log for c in encoder.columns if is_plain(c)}
    flags = {c.name: 0.0 for c in encoder.columns if c.kind == FLAG and c.form != "present"}
    found = job.database.statistics("nodes", numbers | flags)
    exact: list[ColumnEncoder] = []
    notes = list(encoder.notes)
    for column in encoder.columns:
        own = found.get(column.name)
        if isinstance(column, TokenEncoder) and column.kind == CATEGORY:
            values = job.database.categories("nodes", column.name)
            exact.append(replace(column, values=values))
        elif own is not None and column.name in flags and (own.binary or own.wrong):
            exact.append(column)
        elif own is not None:
            if own.wrong:
                notes.append(
                    f"feature {column.name}: {own.wrong} values are not numbers, like "
                    f"{own.example!r}; they count as missing"
                )
            exact.append(
                NumberEncoder(
                    column.name,
                    NUMBER,
                    weight=column.weight,
                    missing=column.missing,
                    mean=own.mean,
                    std=own.std or 1.0,
                    log=numbers.get(column.name, 0.0),
                )
            )
        else:
            exact.append(column)
    if not exact:
        raise InputError(
            f"{job.plan.nodes} has no usable feature columns; a store needs at least one"
        )
    return FeatureEncoder(tuple(exact)), notes


def is_plain(column: ColumnEncoder) -> TypeGuard[NumberEncoder]:
    """Whether a column contains numbers that DuckDB can read."""
    return isinstance(column, NumberEncoder) and column.plain


def some_rows(job: Job, names: Sequence[str]) -> Table:
    """Some rows, the same each time."""
    chosen = "".join(f", {clean(name)} as {name_of(name)}" for name in names)
    numbered = f"(select row_number() over () as dcgst_place{chosen} from nodes)"
    query = (
        f"select * from (select * from {numbered} using sample reservoir({SAMPLE} rows) "
        "repeatable (0)) order by dcgst_place"
    )
    found = job.database.arrow(query)
    columns = {
        name: ["" if value is None else value for value in found[name].to_pylist()]
        for name in names
    }
    return Table(job.plan.nodes, columns, found["dcgst_place"].to_pylist(), unit="row")


def is_sparse(job: Job, encoder: FeatureEncoder) -> bool:
    names = [column.name for column in encoder.columns]
    return bool(sp.issparse(encoder.transform(some_rows(job, names))))


def find_classes(job: Job) -> list[str]:
    label = job.plan.node_columns.label
    if label is None:
        return []
    query = f"select distinct {clean(label)} as name from nodes where name is not null"
    return sorted(job.database.arrow(query)["name"].to_pylist(), key=natural_order)


def encoded_rows(
    job: Job, encoder: FeatureEncoder, *, sparse: bool
) -> Iterator[tuple[NDArray[np.int64], list[str | None], dict[str, Any]]]:
    """Positions, labels and columns of batches of nodes; in order if ``sparse``."""
    label, id_text = job.plan.node_columns.label, clean(job.plan.node_columns.id)
    chosen = ["dcgst_node"]
    chosen.append(f"{clean(label)} as dcgst_label" if label else "null::varchar as dcgst_label")
    for column in encoder.columns:
        text = number_of(column.name) if is_plain(column) else clean(column.name)
        chosen.append(f"{text} as {name_of(column.name)}")
    # A left join, although all ids are known: the optimizer makes an inner join on an
    # expression with a list of words a product of both tables.
    query = f"select {', '.join(chosen)} from nodes left join ids on {id_text} = dcgst_id"
    if sparse:
        query += " order by dcgst_node"
    for batch in job.database.batches(query, BATCH):
        columns = {column.name: batch[column.name] for column in encoder.columns}
        yield batch["dcgst_node"].to_numpy(), batch["dcgst_label"].to_pylist(), columns


def encode(encoder: FeatureEncoder, columns: dict[str, Any]) -> Any:
    """``(m, d)`` features of a batch of Arrow columns: numbers as numbers, others as text."""
    parts: list[Any] = []
    for column in encoder.columns:
        values = columns[column.name]
        if is_plain(column):
            numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
            scaled = [column.scale(numbers)]
            scaled += [np.isnan(numbers).astype(np.float64)] if column.missing else []
            parts.append((column.weight * np.stack(scaled, axis=1)).astype(np.float32))
            continue
        texts = ["" if value is None else value for value in values.to_pylist()]
        parts.append(column.transform(texts))
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, axis=1)
    return sp.csr_array(sp.hstack(parts, format="csr")).astype(np.float32)


class _Dense:
    """Dense features in a file, written in any order."""

    def __init__(self, out: Path, shape: tuple[int, int]) -> None:
        self.array = np.memmap(out / files.FEATURES, np.float32, "w+", shape=shape)

    def write(self, nodes: NDArray[np.int64], features: Any) -> None:
        self.array[nodes] = features.toarray() if sp.issparse(features) else features
        forget(self.array)

    def finish(self) -> int | None:
        self.array.flush()
        return None


class _Sparse:
    """Sparse features in files, written in the order of the nodes."""

    def __init__(self, out: Path) -> None:
        self.paths = [out / name for name in files.SPARSE]
        for path in self.paths:
            path.write_bytes(b"")
        self.count = 0
        self._append(2, np.zeros(1, dtype=np.int64))

    def write(self, nodes: NDArray[np.int64], features: Any) -> None:
        matrix = sp.csr_array(features)
        self._append(0, matrix.data.astype(np.float32))
        self._append(1, matrix.indices.astype(np.int64))
        self._append(2, matrix.indptr[1:].astype(np.int64) + self.count)
        self.count += int(matrix.nnz)

    def finish(self) -> int | None:
        return self.count

    def _append(self, number: int, values: NDArray[Any]) -> None:
        with self.paths[number].open("ab") as file:
            values.tofile(file)


WORK = "import"
"""Folder within a store for an import that is not complete."""


def import_tables(
    nodes: Path,
    edges: Path,
    out: Path,
    columns: Columns | None = None,
    *,
    encoder: FeatureEncoder | None = None,
    delimiter: str | None = None,
    drop_unknown: bool = False,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Report = lambda _step, _share: None,
) -> tuple[str, ...]:
    """Import a node table and an edge table into a store.

    Columns are encoded as by :func:`dcgst.tables.read`, except that the kind of a column and the
    words of a text column are those of some of the rows. Nodes are sorted by id.

    Args:
        nodes: CSV or Parquet file.
        edges: CSV or Parquet file.
        out: folder to create. If it holds an interrupted import of the same tables, it continues.
        columns: role of each column; guessed where they are not given.
        encoder: of the feature columns, fitted on other tables; by default, one is fitted.
        delimiter: of CSV files; guessed by default.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
        memory: bytes to use; default half of what is available.
        overwrite: replace an existing store.
        progress: called with the name of a step and the share of it that is done.

    Returns:
        notes for the user.

    Raises:
        InputError: if a table cannot be used. The message names the file, the row and a remedy.
    """
    plan, tables, notes = plan_import(
        (nodes, edges), columns or Columns(), encoder, delimiter, drop_unknown
    )
    target = out.resolve()
    out = _folder_for(target, overwrite)
    if overwrite:
        overwrite = (out / files.DESCRIPTION).exists() or not _is_import_of(out, plan)
    work = _prepare(out, plan, overwrite)
    memory = memory or available_memory() // 2
    with unlimited_addresses(), Database(work, memory // 2) as database:
        for name, table in tables.items():
            database.view(name, table)
        notes += _import(Job(plan, out, work, database, memory, progress), notes)
    shutil.rmtree(work, ignore_errors=True)
    if out != target:
        _replace_store(target, out)
    return tuple(notes)


def _import(job: Job, notes: Sequence[str]) -> list[str]:
    """Run all steps of an import and describe the store; returns further notes."""
    ids = job.step("ids", lambda: import_ids(job))
    encoded = job.step("features", lambda: import_nodes(job, ids["count"]))
    linked = job.step("edges", lambda: import_edges(job, ids["count"]))
    checked = job.step("digest", lambda: {"files": files.digests_of(job.out)})
    found = [*encoded["notes"], *linked["notes"]]
    files.write_description(
        job.out,
        name=job.plan.nodes.stem,
        shape=(ids["count"], encoded["columns"]),
        num_entries=linked["num_entries"],
        index=linked["index"],
        num_values=encoded["num_values"],
        class_names=list(encoded["class_names"]),
        columns=job.plan.columns,
        encoder=FeatureEncoder.from_json(encoded["encoder"]),
        weighted=linked["weighted"],
        notes=[*notes, *found],
        digests=checked["files"],
    )
    return found


def plan_import(
    paths: tuple[Path, Path],
    columns: Columns,
    encoder: FeatureEncoder | None,
    delimiter: str | None,
    drop_unknown: bool,
) -> tuple[Plan, dict[str, str], list[str]]:
    """What is imported, the tables as DuckDB reads them, and notes.

    Args:
        paths: of the node table and of the edge table.
        columns: role of each column; guessed where they are not given.
        encoder: of the feature columns, fitted on other tables; None: one is fitted.
        delimiter: of CSV files; guessed by default.
        drop_unknown: drop edges with unknown node ids instead of raising an error.
    """
    nodes, edges = paths
    node_head, node_delimiter = read_head(nodes, delimiter)
    edge_head, edge_delimiter = read_head(edges, delimiter)
    node_columns, notes = _plan_nodes(columns, node_head, edge_head, encoder)
    header = has_header(edge_head, node_head.column(node_columns.id))
    if not header:
        edge_head = header_as_row(edge_head)
        notes.append(f"{edges.name} has no header: its first line is read as an edge")
    if columns.edge_type not in (None, NO_COLUMN) or columns.edge_time is not None:
        raise InputError(
            "a store has one relation and no times; import the edges of one relation, or fit the "
            "tables themselves"
        )
    columns = replace(columns, edge_type=NO_COLUMN)
    edge_columns = resolve_edge_columns(columns, edge_head)
    notes += describe_edge_columns(columns, edge_columns, edge_head)
    if encoder is None:
        names = feature_columns(columns, node_columns, node_head)
    else:
        names = encoder.names_in(node_head)
    plan = Plan(
        nodes,
        edges,
        node_columns,
        edge_columns,
        tuple(names),
        dict(columns.kinds),
        encoder,
        header,
        drop_unknown,
        replace(columns, **asdict(node_columns), **asdict(edge_columns) | {"edge_type": NO_COLUMN}),
    )
    tables = {
        "nodes": table_format(nodes).in_sql(nodes, node_head.names, node_delimiter, True),
        "edges": table_format(edges).in_sql(edges, edge_head.names, edge_delimiter, header),
    }
    return plan, tables, notes


def _plan_nodes(
    columns: Columns, node_head: Table, edge_head: Table, encoder: FeatureEncoder | None
) -> tuple[NodeColumns, list[str]]:
    """The roles of the columns of the node table, and notes."""
    if columns.label is not None and encoder is None:
        node_head.column(columns.label)  # a misspelled name would make the labels a feature
    found = resolve_node_columns(columns, node_head, edge_head, labels_needed=False)
    notes = describe_node_columns(columns, found)
    if found.label is None and encoder is None:
        notes.append(
            "Warning: no label column was found; if there is one, name it with "
            f"{option('label')}, else it is a feature; or give labels with {option('labels')} when "
            "you fit"
        )
    return found, notes


def _folder_for(target: Path, overwrite: bool) -> Path:
    """Where a store is built: an old store stays until the new one is complete."""
    old = target.with_name(f".{target.name}.old")
    if old.exists() and not target.exists():
        old.rename(target)  # interrupted between the two renames of _replace_store
    if overwrite and (target / files.DESCRIPTION).exists():
        _check_folder(target)
        return target.with_name(f".{target.name}.new")
    return target


def _replace_store(target: Path, new: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _is_import_of(out: Path, plan: Plan) -> bool:
    """Whether a folder holds an interrupted import of the same tables."""
    begun = out / WORK / "plan.json"
    return begun.exists() and bool(json.loads(begun.read_text(encoding="utf-8")) == plan.identity())


def _check_folder(out: Path) -> list[str]:
    """The files in the folder of a store; raises if it has others."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; choose another name for the store")
    found = [path.name for path in out.iterdir()] if out.exists() else []
    others = sorted(name for name in found if name not in files.FILES and name != WORK)
    if others:
        raise InputError(f"{out} contains other files ({others[0]}); choose another name")
    return found


def _prepare(out: Path, plan: Plan, overwrite: bool) -> Path:
    """Create the folder, or check that it holds an import of the same tables."""
    work = out / WORK
    begun = work / "plan.json"
    found = _check_folder(out)
    if files.DESCRIPTION in found and not overwrite:
        raise InputError(f"{out} exists already; use {option('overwrite', True)}, or another name")
    if begun.exists() and not overwrite:
        before = json.loads(begun.read_text(encoding="utf-8"))
        if before["nodes"] != plan.identity()["nodes"] and not (work / "features.json").exists():
            overwrite = True  # nothing that took long is lost
        elif before["nodes"] != plan.identity()["nodes"]:
            raise InputError(
                f"{out} holds an interrupted import of another node table, or with other options; "
                f"use {option('overwrite', True)} to replace it"
            )
        elif before != plan.identity():  # ids and features stay valid
            for step in ("edges", "digest"):
                (work / f"{step}.json").unlink(missing_ok=True)
            write_text(begun, json.dumps(plan.identity()))
    if overwrite or not begun.exists():
        shutil.rmtree(work, ignore_errors=True)
        for name in files.FILES:
            (out / name).unlink(missing_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    if not begun.exists():
        write_text(begun, json.dumps(plan.identity()))
    return work
