"""Import a node table: ids, features and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN
from dcgst.io.encoders import FeatureEncoder, fit_encoder
from dcgst.io.encoders.base import ColumnEncoder
from dcgst.io.encoders.kinds import CATEGORY, FLAG, NUMBER
from dcgst.io.encoders.numeric import NumberEncoder
from dcgst.io.encoders.tokenized import TokenEncoder
from dcgst.io.nodes import MAX_ID_LENGTH, describe_classes, natural_order
from dcgst.io.store import format as files
from dcgst.io.store.job import BATCH, Job
from dcgst.io.store.sql import clean, name_of, number_of
from dcgst.io.table import Table
from dcgst.memory import forget

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
    if longest > MAX_ID_LENGTH:
        raise InputError(
            f"{job.plan.nodes}: an id has {longest:,} characters; ids may have at most "
            f"{MAX_ID_LENGTH:,}"
        )
    ids = np.lib.format.open_memmap(
        job.out / files.IDS, mode="w+", dtype=f"<U{longest}", shape=(count,)
    )
    for batch in job.database.batches("select * from ids", BATCH):
        ids[batch["dcgst_node"].to_numpy()] = batch["dcgst_id"].to_numpy(zero_copy_only=False)
        forget(ids)
    return {"count": count}


def check_ids(job: Job, id_text: str) -> None:
    """Raise if an id is missing or repeated."""
    path, column = job.plan.nodes, job.plan.node_columns.id
    numbered = f"(select row_number() over () as place, {id_text} as id from nodes)"
    missing = job.database.row(f"select min(place) from {numbered} where id is null")[0]
    if missing is not None:
        raise InputError(
            f"{path}, row {missing}: the id in column {column!r} is missing; every node needs "
            "an id, and NA, N/A, NaN, null and none count as missing values"
        )
    repeated = job.database.row(
        f"select id, min(place), max(place) from {numbered} where id in (select {id_text} from "
        f"nodes group by 1 having count(*) > 1 limit 1) group by id"
    )
    if repeated is not None:
        node_id, first, last = repeated
        raise InputError(
            f"{path}, row {last}: the id {node_id!r} is repeated, it is also in row {first}; "
            "ids must be unique, and spaces around them do not count"
        )


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
