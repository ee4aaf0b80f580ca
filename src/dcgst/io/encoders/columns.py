"""Fitted encoders of single columns, one class for each way to make features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph.checks import MAX_MAGNITUDE
from dcgst.io.encoders import kinds
from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.dates import FORMATS, parse_date
from dcgst.io.encoders.numbers import NumberFormat
from dcgst.io.encoders.tokens import FORMS, tokenizer

MAX_VALUES = 1000
"""Number of categories, words or parts of codes that become features."""

MIN_ROWS = 2
"""Words and parts of codes in fewer rows are ignored."""

MAX_SHARE = 0.9
"""Words in a larger share of the rows are ignored."""

INFORMATIVE = 0.005
"""Whether a value is missing becomes a feature if it differs in so many of the rows."""

SKEWED = 2.5
"""Skewness above which numbers that are not negative are replaced by their logarithms."""

LARGEST = 100.0
"""Standardized numbers beyond this are limited to it."""

DAY = 86400.0
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Length of a year, a week and a day, in days."""


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """Fitted encoder of one column.

    Args:
        name: name of the column.
        kind: what the column contains; see :mod:`dcgst.io.encoders.kinds`.
        form: how its values are written.
        weight: that the features are multiplied by, so that columns count according to their
            content.
        missing: whether the last feature is 1 for a missing value and 0 otherwise.
    """

    name: str
    kind: str
    form: str = ""
    weight: float = 1.0
    missing: bool = False

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of features without the one for missing values."""

    @abstractmethod
    def encode(self, cells: Cells) -> sp.csr_array:
        """``(n, size)`` features before they are weighted; zero for missing values."""

    @abstractmethod
    def describe(self) -> str:
        """What was made of the column, for the user."""

    @property
    def width(self) -> int:
        """Number of features."""
        return self.size + int(self.missing)

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """``(n, width)`` features of the cells of a column."""
        cells = Cells.of(self.name, texts)
        found = self.encode(cells)
        if self.missing:
            absent = cells.map(lambda text: float(text == ""))
            if isinstance(self, NumberEncoder | DateEncoder):  # what cannot be read is missing
                absent = np.maximum(absent, self.unknown(cells))
            found = sp.csr_array(sp.hstack([found, sp.csr_array(absent[:, None])], format="csr"))
        return found * self.weight if self.weight != 1.0 else found

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        """``(n,)`` rows whose value was never seen or cannot be read."""
        return np.zeros(len(cells), dtype=bool)

    def to_json(self) -> dict[str, Any]:
        """All fields, for a file."""
        return asdict(self)

    def check(self) -> None:
        """Raise ``TypeError`` or ``ValueError`` if a field read from a file is invalid."""
        for field in fields(self):
            _check_field(f"{field.name} of {self.name}", getattr(self, field.name), field.default)
        if not self.weight > 0:
            raise ValueError(f"the weight of {self.name} is {self.weight!r}")


@dataclass(frozen=True)
class NumberEncoder(ColumnEncoder):
    """Numbers minus their mean, divided by their standard deviation; missing ones become zero.

    Args:
        mean: of the numbers, or of their logarithms.
        std: likewise.
        decimal: decimal sign.
        unit: common unit of the numbers; they may have another one of the same quantity.
        plain: whether the numbers are written as Python writes them.
        log: if not zero, ``log(1 + x / log)`` is encoded instead of x.
    """

    mean: float = 0.0
    std: float = 1.0
    decimal: str = "."
    unit: str = ""
    plain: bool = True
    log: float = 0.0

    size: ClassVar[int] = 1

    def check(self) -> None:
        super().check()
        _check_std(self.name, self.std)
        if self.decimal not in (".", ","):
            raise ValueError(f"the decimal sign of {self.name} is {self.decimal!r}")

    @property
    def format(self) -> NumberFormat:
        return NumberFormat(self.decimal, self.unit, self.plain)

    def numbers(self, cells: Cells) -> NDArray[np.float64]:
        """``(n,)`` NaN for missing values, and for those that are not numbers."""
        parse = self.format.parse

        def number(text: str) -> float:
            found = parse(text) if text else None
            return math.nan if found is None or abs(found) > MAX_MAGNITUDE else found

        return cells.map(number)

    def scale(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardized numbers; zero for NaN."""
        if self.log:
            numbers = np.log1p(np.maximum(numbers, 0) / self.log)
        scaled = (np.where(np.isnan(numbers), self.mean, numbers) - self.mean) / self.std
        return np.clip(scaled, -LARGEST, LARGEST)

    def encode(self, cells: Cells) -> sp.csr_array:
        return sp.csr_array(self.scale(self.numbers(cells))[:, None])

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        present = cells.map(lambda text: float(text != "")) > 0
        return np.isnan(self.numbers(cells)) & present

    def describe(self) -> str:
        parts = ["number"]
        if self.unit:
            parts.append(f"in {self.unit}")
        if self.decimal == ",":
            parts.append("with decimal commas")
        return " ".join(parts) + (", logarithm" if self.log else "") + ", standardized"


@dataclass(frozen=True)
class FlagEncoder(ColumnEncoder):
    """One for true, zero for false and for missing values.

    Args:
        true: the word for true, in lower case; ``*`` stands for any value.
        false: the word for false.
    """

    true: str = "1"
    false: str = "0"

    size: ClassVar[int] = 1

    def encode(self, cells: Cells) -> sp.csr_array:
        return sp.csr_array(cells.map(self._number)[:, None])

    def _number(self, text: str) -> float:
        if self.true == "*":
            return float(text != "")
        if text.lower() == self.true:
            return 1.0
        try:
            return float(float(text) == 1.0) if self.true in ("1", "1.0") else 0.0
        except ValueError:
            return 0.0

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        known = (self.true, self.false, "1.0", "0.0", "")
        return cells.map(lambda text: float(self.true != "*" and text.lower() not in known)) > 0

    def describe(self) -> str:
        return "yes or no" if self.true != "*" else "yes or no: whether there is a value"


@dataclass(frozen=True)
class DateEncoder(ColumnEncoder):
    """Elapsed time, and the position in year, week and day as points on circles.

    Args:
        mean: of the days since 1970.
        std: likewise.
        parts: of ``year``, ``week`` and ``day``, those that vary.
    """

    mean: float = 0.0
    std: float = 1.0
    parts: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return (self.form != "clock") + 2 * len(self.parts)

    def check(self) -> None:
        super().check()
        _check_std(self.name, self.std)
        if self.form not in FORMATS or not set(self.parts) <= set(PERIODS):
            raise ValueError(f"the dates of {self.name} have form {self.form!r}")

    def days(self, cells: Cells) -> NDArray[np.float64]:
        """``(n,)`` days since 1970; NaN for missing values, and for those that are no dates."""
        return cells.map(lambda text: days_of(text, self.form))

    def encode(self, cells: Cells) -> sp.csr_array:
        days = self.days(cells)
        known = ~np.isnan(days)
        days = np.where(known, days, self.mean)
        elapsed = np.clip((days - self.mean) / self.std, -LARGEST, LARGEST)
        columns = [] if self.form == "clock" else [elapsed]
        for part in self.parts:
            angle = 2 * np.pi * circle(days, part)
            columns += [np.sin(angle) * known, np.cos(angle) * known]
        return sp.csr_array(np.stack(columns, axis=1))

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        present = cells.map(lambda text: float(text != "")) > 0
        return np.isnan(self.days(cells)) & present

    def describe(self) -> str:
        of = {"year": "time of year", "week": "day of week", "day": "time of day"}
        elapsed = [] if self.form == "clock" else ["elapsed time"]
        parts = ", ".join([*elapsed, *(of[part] for part in self.parts)])
        return f"date ({self.form}): {parts}"


@dataclass(frozen=True)
class TokenEncoder(ColumnEncoder):
    """Parts of texts: the number of each, times its weight, in rows of length one.

    Args:
        values: the parts, sorted.
        idf: weight of each part; empty for ones.
    """

    values: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        return len(self.values)

    def check(self) -> None:
        super().check()
        if len(self.idf) != (0 if self.form == "value" else len(self.values)):
            raise ValueError(f"the encoder of {self.name} has another number of words and idf")
        if not self.form.startswith("list ") and self.form not in FORMS:
            raise ValueError(f"the texts of {self.name} have form {self.form!r}")

    def encode(self, cells: Cells) -> sp.csr_array:
        counts = self.count(cells.distinct)
        if self.idf:
            counts.data *= np.asarray(self.idf)[counts.indices]
        if self.form != "value":
            counts = unit_length(counts)
        return sp.csr_array(counts[cells.codes])

    def count(self, texts: Sequence[str]) -> sp.csr_array:
        """``(m, size)`` number of each part in each text."""
        index = {value: number for number, value in enumerate(self.values)}
        split = tokenizer(self.form)
        columns: list[int] = []
        pointers = [0]
        for text in texts:
            found = [index[token] for token in split(text) if token in index] if text else []
            columns += found
            pointers.append(len(columns))
        parts = np.ones(len(columns)), np.array(columns, dtype=np.int64), np.array(pointers)
        matrix = sp.csr_array(parts, shape=(len(texts), self.size))
        matrix.sum_duplicates()
        return matrix

    def unknown(self, cells: Cells) -> NDArray[np.bool_]:
        known = np.diff(self.count(cells.distinct).indptr) > 0
        present = np.array([text != "" for text in cells.distinct], dtype=bool)
        found: NDArray[np.bool_] = (present & ~known)[cells.codes]
        return found

    def describe(self) -> str:
        count = f"{len(self.values):,}"
        if self.kind == kinds.CATEGORY:
            return f"category, {count} values"
        if self.kind == kinds.TEXT:
            return f"text, {count} words"
        if self.kind == kinds.LIST:
            return f"list, {count} items"
        if self.kind == kinds.CODE:
            form = "codes" if self.form == "prefixes" else self.form
            return f"code ({form}), {count} parts"
        return f"short texts, {count} groups of three letters"


ENCODERS: dict[str, type[ColumnEncoder]] = {
    kinds.NUMBER: NumberEncoder,
    kinds.FLAG: FlagEncoder,
    kinds.DATE: DateEncoder,
    **dict.fromkeys(
        (kinds.CATEGORY, kinds.CODE, kinds.LIST, kinds.TEXT, kinds.STRING), TokenEncoder
    ),
}
"""The class that encodes each kind."""

FORMS_BEFORE = {kinds.CATEGORY: "value", kinds.TEXT: "words"}
"""Forms of encoders stored by version 0.1."""


def from_json(stored: Mapping[str, Any]) -> ColumnEncoder:
    """Restore an encoder from :meth:`ColumnEncoder.to_json`, or from a file of version 0.1."""
    if stored["kind"] not in ENCODERS:
        raise ValueError(f"the encoder of {stored.get('name')} has kind {stored['kind']!r}")
    kind: type[Any] = ENCODERS[stored["kind"]]
    names = {field.name for field in fields(kind)}
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in stored.items()
        if key in names
    }
    values.setdefault("form", FORMS_BEFORE.get(stored["kind"], ""))
    restored: ColumnEncoder = kind(**values)
    return restored


def days_of(text: str, form: str) -> float:
    """Days since 1970 of the date in a text; NaN if there is none."""
    found = parse_date(text, form) if text else None
    if found is None:
        return math.nan
    return (found.toordinal() - 719163) + (
        found.hour * 3600 + found.minute * 60 + found.second
    ) / DAY


def circle(days: NDArray[np.float64], part: str) -> NDArray[np.float64]:
    """Position in the year, week or day, from zero to one."""
    offset = 3.0 if part == "week" else 0.0  # 1970 began on a Thursday
    return (days + offset) % PERIODS[part] / PERIODS[part]


def unit_length(matrix: sp.csr_array) -> sp.csr_array:
    """Rows of Euclidean length one; rows of zeros stay zero."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1))
    lengths[lengths == 0] = 1
    matrix.data = matrix.data / np.repeat(lengths, np.diff(matrix.indptr))
    return matrix


def frequent_tokens(cells: Cells, form: str) -> dict[str, int]:
    """Number of rows of each part of the texts of a column."""
    split, counts = tokenizer(form), Counter[str]()
    for text, rows in zip(cells.distinct, cells.counts.tolist(), strict=True):
        if text:
            for token in set(split(text)):
                counts[token] += rows
    return dict(counts)


def _check_field(name: str, value: object, default: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless a value has the type of its default."""
    if isinstance(default, bool) and not isinstance(value, bool):
        raise TypeError(f"{name} is {type(value).__name__}")
    if isinstance(default, float) and not isinstance(default, bool):
        _check_number(name, value)
    elif isinstance(default, tuple):
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is {type(value).__name__}")
        for item in value:
            if name.startswith("idf"):
                _check_number(name, item)
            elif not isinstance(item, str):
                raise TypeError(f"{name} is {type(item).__name__}")
    elif not isinstance(value, (str, bool)):
        raise TypeError(f"{name} is {type(value).__name__}")


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {type(value).__name__}")
    if not math.isfinite(value) or (name.startswith("idf") and value < 0):
        raise ValueError(f"{name} is {value}")


def _check_std(name: str, std: float) -> None:
    if not std > 0:
        raise ValueError(f"std of {name} is {std!r}")
