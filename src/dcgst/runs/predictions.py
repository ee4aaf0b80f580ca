"""Predictions of all nodes, and what they have to do with each column of the table."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.features.matrix import row_ranges
from dcgst.files import columns_to_csv, replacing
from dcgst.graph import FeatureMatrix
from dcgst.memory import forget
from dcgst.methods.result import NOT_LABELED, Result
from dcgst.tables.encoders import FeatureEncoder
from dcgst.tables.sources import write_table
from dcgst.train.progress import counted

MOST_NAMES = 3
"""Columns to name."""

LITTLE = 0.1
"""Columns whose share is smaller than this part of the largest one say little."""


@dataclass(frozen=True)
class ColumnUse:
    """How much the predicted classes differ in a column.

    Attributes:
        name: of the column.
        explained: share of its variance that is between the predicted classes, beyond chance.
    """

    name: str
    explained: float


def column_use(
    encoder: FeatureEncoder, features: FeatureMatrix, classes: NDArray[np.integer]
) -> list[ColumnUse]:
    """Compare the predicted classes in each column, the largest difference first.

    Args:
        encoder: of the columns; its features are the first ones.
        features: ``(n, d)``.
        classes: ``(n,)`` predicted class codes.
    """
    n = len(classes)
    counts = np.bincount(classes)
    members = sp.csr_array((np.ones(n), (classes, np.arange(n))), shape=(len(counts), n))
    sums = members @ features
    sums = np.asarray(sums.toarray() if sp.issparse(sums) else sums, dtype=np.float64)
    between = (sums**2 / np.maximum(counts, 1)[:, None]).sum(axis=0)
    squares = features.multiply(features) if sp.issparse(features) else np.square(features)
    total = np.asarray(squares.sum(axis=0, dtype=np.float64)).reshape(-1)
    mean = sums.sum(axis=0) ** 2 / n
    used = []
    start = 0
    by_chance = (np.count_nonzero(counts) - 1) / max(1, n - 1)
    for column in encoder.columns:
        own = slice(start, start + column.width)
        start += column.width
        variance = (total - mean)[own].sum()
        share = (between - mean)[own].sum() / variance if variance > 0 else 0.0
        used.append(ColumnUse(column.name, round(max(0.0, float(share - by_chance)), 4)))
    return sorted(used, key=lambda column: (-column.explained, column.name))


def verdict(used: Sequence[ColumnUse]) -> str:
    """In which columns the predicted classes differ, in one or two sentences; empty for one column.

    Example:
        >>> verdict([ColumnUse("income", 0.4), ColumnUse("age", 0.2), ColumnUse("name", 0.01)])
        'The predicted classes differ most in the columns: income, age. Hardly at all in: name'
    """
    if len(used) < 2 or not used[0].explained:
        return ""
    least = LITTLE * used[0].explained
    much = [column.name for column in used if column.explained >= least]
    little = [column.name for column in reversed(used) if column.explained < least]
    text = f"The predicted classes differ most in the columns: {', '.join(much[:MOST_NAMES])}"
    if little:
        more = f" and {len(little) - MOST_NAMES} more" if len(little) > MOST_NAMES else ""
        text += f". Hardly at all in: {', '.join(little[:MOST_NAMES])}{more}"
    return text


CSV, PARQUET, JSON_LINES = (".csv", ".txt"), (".parquet", ".pq"), (".jsonl", ".ndjson")
"""Extensions of the files that can be written."""

GIVEN, PSEUDO, PREDICTED = "given", "pseudo", "predicted"
SOURCES = (GIVEN, PSEUDO, PREDICTED)
"""Sources of a node's class: a given label, a pseudo-label, or neither."""

MAX_CLASS_COLUMNS = 50
"""Number of classes up to which predictions have one probability column per class."""

DIGITS = {"agreement": 3}
"""Digits of a column in records and CSV files; others have four."""


def source_codes(result: Result) -> NDArray[np.int8]:
    """``(n,)`` position of the source of each node's class in :data:`SOURCES`."""
    pseudo = np.where(result.labeled_stage > 0, np.int8(1), np.int8(2))
    return np.where(result.given >= 0, np.int8(0), pseudo)


def source_of(result: Result, node: int) -> str:
    """Source of the class of one node."""
    if result.given[node] >= 0:
        return GIVEN
    return PSEUDO if result.labeled_stage[node] > 0 else PREDICTED


def count_sources(result: Result) -> dict[str, int]:
    """Number of nodes by source."""
    counts = np.bincount(source_codes(result), minlength=len(SOURCES)).tolist()
    return dict(zip(SOURCES, counts, strict=True))


@dataclass(frozen=True)
class ClassCounts:
    """The nodes of one predicted or given class.

    Attributes:
        sources: number of nodes by source.
        mean_probability: of the nodes without a given label; None if there are none.
    """

    sources: dict[str, int]
    mean_probability: float | None

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return sum(self.sources.values())


def count_classes(result: Result) -> list[ClassCounts]:
    """How many nodes each class has, from where, and how certain the predictions are."""
    classes, new = result.proba.shape[1], result.given < 0
    pairs = len(SOURCES) * result.labels + source_codes(result)
    counts = np.bincount(pairs, minlength=len(SOURCES) * classes).reshape(classes, len(SOURCES))
    totals = np.bincount(result.labels[new], result.confidence[new], minlength=classes)
    predicted = counts[:, 1:].sum(axis=1)
    return [
        ClassCounts(
            dict(zip(SOURCES, counts[code].tolist(), strict=True)),
            float(totals[code] / predicted[code]) if predicted[code] else None,
        )
        for code in range(classes)
    ]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class, probability, margin, source and stage of each node, in blocks of rows.

    Attributes:
        ids: ``(n,)`` node ids.
        names: class names.
        result: the predictions.
        agreement: whether to include the agreement of the replicas.
        all_classes: whether each class has a column, however many there are.
    """

    ids: NDArray[Any]
    names: Sequence[str]
    result: Result
    agreement: bool = True
    all_classes: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def columns(self, nodes: slice) -> dict[str, NDArray[Any]]:
        """The columns of a range of nodes by name; the stage is -1 for nodes without one."""
        result, names = self.result, np.array(self.names, dtype=object)
        proba, labels = result.proba[nodes], result.labels[nodes]
        found: dict[str, NDArray[Any]] = {
            "id": self.ids[nodes],
            "class": names[labels],
            "probability": proba[np.arange(len(labels)), labels],
            "margin": result.margin[nodes],
            "source": np.array(SOURCES, dtype=object)[self._source_codes[nodes]],
            "stage": result.labeled_stage[nodes],
        }
        if self.agreement:
            found["agreement"] = result.agreement[nodes]
        if self.all_classes or len(names) <= MAX_CLASS_COLUMNS:
            for code, name in enumerate(names):
                found[f"p({name})"] = proba[:, code]
        return found

    @cached_property
    def _source_codes(self) -> NDArray[np.int8]:
        return source_codes(self.result)

    def blocks(self) -> Iterator[dict[str, list[Any]]]:
        """The columns for people, in blocks: rounded numbers, and no stage where there is none."""
        for nodes in counted("predictions", list(row_ranges(len(self)))):
            yield {name: _readable(name, own) for name, own in self.columns(nodes).items()}
            forget(self.result.proba)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One record per node."""
        for block in self.blocks():
            names = list(block)
            for row in zip(*block.values(), strict=True):
                yield dict(zip(names, row, strict=True))

    def write(self, path: Path, *, spreadsheet: bool = False) -> None:
        """Write a file atomically; its extension says of which type.

        Raises:
            InputError: if no type has this extension.
        """
        check_extension(path)
        extension = path.suffix.lower()
        if extension in PARQUET:
            self.write_parquet(path)
        elif extension in JSON_LINES:
            self.write_json(path)
        else:
            self.write_csv(path, spreadsheet=spreadsheet)

    def write_json(self, path: Path) -> None:
        """Write a file with one JSON object per line, atomically."""
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for row in self.rows():
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    def write_database(self, url: str, table: str, if_exists: str = "fail") -> None:
        """Write a table of a database; arguments as in :func:`dcgst.tables.sources.write_table`."""
        ranges = counted("predictions", list(row_ranges(len(self))))
        write_table(url, table, (self.columns(nodes) for nodes in ranges), if_exists)

    def write_csv(self, path: Path, *, spreadsheet: bool = False) -> None:
        """Write a CSV file atomically; ``spreadsheet`` as in :func:`dcgst.files.rows_to_csv`."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            for text in self.csv_texts(spreadsheet=spreadsheet):
                file.write(text.encode("utf-8", "backslashreplace"))

    def csv_texts(self, *, spreadsheet: bool = False) -> Iterator[str]:
        """The parts of a CSV file."""
        for number, block in enumerate(self.blocks()):
            yield columns_to_csv(block, header=number == 0, spreadsheet=spreadsheet)

    def write_parquet(self, path: Path) -> None:
        """Write a Parquet file atomically; numbers are not rounded, missing stages are null."""
        check_parquet()
        import pyarrow as pa
        from pyarrow import parquet

        with replacing(path) as temporary, ExitStack() as stack:
            writer = None
            for nodes in counted("predictions", list(row_ranges(len(self)))):
                columns = {
                    name: pa.array(
                        own.astype(str) if name == "id" and own.dtype == object else own,
                        mask=own == NOT_LABELED if name == "stage" else None,
                    )
                    for name, own in self.columns(nodes).items()
                }
                table = pa.table(columns)
                if writer is None:
                    writer = stack.enter_context(parquet.ParquetWriter(temporary, table.schema))
                writer.write_table(table)
                forget(self.result.proba)


def check_extension(path: Path) -> None:
    """Raise if the extension of a file is not that of a type that can be written."""
    if path.suffix.lower() not in (*CSV, *PARQUET, *JSON_LINES):
        raise InputError(
            f"{path}: choose a name that ends with .csv, .parquet or .jsonl, or a database such as "
            "sqlite:///FILE"
        )


def check_parquet() -> None:
    """Raise if Parquet files cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError("Parquet files require pyarrow: pip install 'dcgst[io]'")


def _readable(name: str, values: NDArray[Any]) -> list[Any]:
    if name == "stage":
        return ["" if number == NOT_LABELED else number for number in values.tolist()]
    if values.dtype.kind == "f":
        rounded: list[Any] = np.round(values.astype(float), DIGITS.get(name, 4)).tolist()
        return rounded
    plain: list[Any] = values.tolist()
    return plain
