"""Encoders of columns: fitted to a table, they turn its cells into features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError, option
from dcgst.graph.cleaning import MAX_MAGNITUDE
from dcgst.tables import kinds
from dcgst.tables.kinds import Cells
from dcgst.tables.table import Table
from dcgst.tables.values import FORMATS, FORMS, NumberFormat, parse_date, tokenizer


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """Fitted encoder of one column.

    Args:
        name: name of the column.
        kind: what the column contains; see :mod:`dcgst.tables.kinds`.
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

    unreadable_is_missing: ClassVar[bool] = False

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
            if self.unreadable_is_missing:
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
        for own in fields(self):
            _check_field(f"{own.name} of {self.name}", getattr(self, own.name), own.default)
        if not self.weight > 0:
            raise ValueError(f"the weight of {self.name} is {self.weight!r}")


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


def check_std(name: str, std: float) -> None:
    if not std > 0:
        raise ValueError(f"std of {name} is {std!r}")


LARGEST = 100.0
"""Standardized numbers beyond this are limited to it."""

DAY = 86400.0
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Length of a year, a week and a day, in days."""
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Length of a year, a week and a day, in days."""


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
    unreadable_is_missing: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        check_std(self.name, self.std)
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

    unreadable_is_missing: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return (self.form != "clock") + 2 * len(self.parts)

    def check(self) -> None:
        super().check()
        check_std(self.name, self.std)
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


ENCODERS: dict[str, type[ColumnEncoder]] = {
    kinds.NUMBER: NumberEncoder,
    kinds.FLAG: FlagEncoder,
    kinds.DATE: DateEncoder,
    **dict.fromkeys(
        (kinds.CATEGORY, kinds.CODE, kinds.LIST, kinds.TEXT, kinds.STRING), TokenEncoder
    ),
}
"""The class that encodes each kind."""


def from_json(stored: Mapping[str, Any]) -> ColumnEncoder:
    """Restore an encoder from :meth:`ColumnEncoder.to_json`."""
    if stored["kind"] not in ENCODERS:
        raise ValueError(f"the encoder of {stored.get('name')} has kind {stored['kind']!r}")
    kind: type[Any] = ENCODERS[stored["kind"]]
    restored: ColumnEncoder = kind(
        **{key: tuple(own) if isinstance(own, list) else own for key, own in stored.items()}
    )
    return restored


DENSE = 0.5
"""Features with a larger share of nonzero entries are dense, and so are those of numbers alone."""


@dataclass(frozen=True)
class FeatureEncoder:
    """Fitted encoder of a table: converts columns to features.

    :func:`dcgst.tables.encoders.fit_encoder` fits one.

    Args:
        columns: one encoder per column, in the order of the features.
        notes: for the user, how each column is encoded or why it is not used.

    Example:
        >>> from pathlib import Path
        >>> from dcgst.tables.encoders import NumberEncoder
        >>> size = NumberEncoder("size", "number", mean=2.0, std=0.5)
        >>> color = TokenEncoder("color", "category", "value", values=("blue", "red"))
        >>> columns = {"color": ["red", "green"], "size": ["3", ""]}
        >>> table = Table(Path("nodes.csv"), columns, [2, 3])
        >>> FeatureEncoder((size, color)).transform(table).toarray()
        array([[2., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """

    columns: tuple[ColumnEncoder, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each column, by name."""
        return {column.name: column.width for column in self.columns}

    def transform(self, table: Table) -> NDArray[np.float32] | sp.csr_array:
        """Return the ``(n, d)`` float32 features, CSR if most of them are zero.

        Categories, words and parts of codes that the encoder does not know are ignored.

        Raises:
            InputError: if the table does not have all columns of the encoder.
        """
        self.names_in(table)
        parts = [column.transform(table.column(column.name)) for column in self.columns]
        return self.join(parts)

    def names_in(self, table: Table) -> list[str]:
        """The names of the columns of the encoder; raises if the table does not have all."""
        names = [column.name for column in self.columns]
        missing = [name for name in names if name not in table.columns]
        if missing:
            raise InputError(
                f"{table.path} has no column {missing[0]!r}; the model requires the feature "
                f"columns: {', '.join(names)}"
            )
        return names

    def join(self, parts: Iterable[sp.csr_array]) -> NDArray[np.float32] | sp.csr_array:
        """The features of all columns as one matrix."""
        matrix = sp.csr_array(sp.hstack(list(parts), format="csr")).astype(np.float32)
        return matrix if self.is_sparse(matrix) else matrix.toarray()

    def is_sparse(self, matrix: sp.csr_array) -> bool:
        """Whether features stay sparse."""
        texts = any(isinstance(column, TokenEncoder) for column in self.columns)
        return texts and bool(matrix.nnz < DENSE * matrix.shape[0] * matrix.shape[1])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the encoder as it is stored in ``run.json``: one object per column."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, columns: Iterable[Mapping[str, Any]]) -> FeatureEncoder:
        """Restore an encoder from the output of :meth:`to_json`."""
        return cls(tuple(from_json(column) for column in columns))


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

MOST_ROWS = 20_000
"""Rows from which the weight of a column is computed."""

MOST_WEIGHT = 10.0
"""Largest weight: of a column that differs in few rows only."""

Fitted = tuple[ColumnEncoder | None, str]
"""The encoder of a column, None if it cannot be used, and a note for the user."""


def fit_encoder(table: Table, names: Sequence[str], given: Mapping[str, str]) -> FeatureEncoder:
    """Fit an encoder to columns of a table.

    Args:
        table: table to fit the encoder to.
        names: names of the columns to encode.
        given: kind by column name; guessed for other columns.

    Returns:
        The encoder, with columns sorted by name. It does not contain columns that cannot be used;
        its notes give the reason.

    Example:
        >>> from pathlib import Path
        >>> columns = {"size": ["1", "3", "8"], "on": ["0", "1", "1"], "unit": ["m", "m", "m"]}
        >>> encoder = fit_encoder(Table(Path("nodes.csv"), columns, [2, 3, 4]), list(columns), {})
        >>> encoder.columns[1].mean
        4.0
        >>> for note in encoder.notes:
        ...     print(note)
        feature size: number, standardized
        feature on: yes or no
        feature unit: not used: all values are equal
    """
    columns = []
    names_by_note: dict[str, list[str]] = {}
    for name in names:
        cells = Cells.of(name, table.column(name))
        column, note = fit_column(cells, given.get(name))
        if name in given:
            _check_given(table, cells, column, given[name])
        names_by_note.setdefault(note + _unread(table, cells, column), []).append(name)
        if column is not None:
            columns.append(column)
    notes = [f"feature {_shorten(names)}: {note}" for note, names in names_by_note.items()]
    columns.sort(key=lambda column: column.name)  # results do not depend on the order of columns
    return FeatureEncoder(tuple(columns), tuple(notes))


def fit_column(cells: Cells, kind: str | None = None) -> Fitted:
    """Fit the encoder of one column; its kind is guessed if it is not given."""
    if kind is None:
        guess = kinds.guess_kind(cells)
    elif not cells.values:
        guess = kinds.Guess(kinds.UNUSED, reason="all values are missing")
    else:
        guess = kinds.given_kind(kind, cells)
    if guess.kind == kinds.UNUSED:
        return None, f"not used: {guess.reason or 'as you asked'}"
    column, reason = _FITTERS[guess.kind](cells, guess)
    if column is None:
        return None, f"not used: {reason}"
    share = cells.num_missing / max(1, len(cells))
    known_by_value = isinstance(column, FlagEncoder) and column.true == "*"
    missing = INFORMATIVE < share < 1 - INFORMATIVE and not known_by_value
    column = weigh(replace(column, missing=missing), cells)
    note = column.describe() + (f", {reason}" if reason else "")
    if cells.num_missing and not known_by_value:
        note += f", missing values: {cells.num_missing:,}"
        note += " (a feature of their own)" if missing else ""
    return column, note


def weigh(column: ColumnEncoder, cells: Cells) -> ColumnEncoder:
    """Set the weight of a column: the variances of its features sum to one.

    So all columns count the same, however many features they become.

    Example:
        >>> cells = Cells.of("color", ["red", "blue", "blue", "red"])
        >>> color = TokenEncoder("color", "category", "value", values=("blue", "red"))
        >>> round(weigh(color, cells).weight, 3)
        1.414
    """
    rows = np.sort(cells.codes)[:: -(-len(cells) // MOST_ROWS) or 1]  # in any order of the table
    found = replace(column, weight=1.0).transform([cells.distinct[code] for code in rows])
    mean = found.mean(axis=0)
    variance = float(found.multiply(found).sum() / len(rows) - mean @ mean)
    weight = 1 / math.sqrt(variance) if variance > MOST_WEIGHT**-2 else MOST_WEIGHT
    return replace(column, weight=weight)


def _check_given(table: Table, cells: Cells, column: ColumnEncoder | None, kind: str) -> None:
    """Raise if most values of a column cannot be read as the kind that the user gave."""
    if not cells.values or kind not in (kinds.NUMBER, kinds.DATE):
        return
    rows = np.arange(len(cells)) if column is None else np.flatnonzero(column.unknown(cells))
    rows = rows[[table.column(cells.name)[row] != "" for row in rows]]
    if 2 * rows.size > cells.num_present and (column is None or column.kind == kind):
        row = int(rows[0])
        raise InputError(
            f"{table.where(row)}: column {cells.name!r} should contain {kind}s, got "
            f"{table.column(cells.name)[row][:40]!r}, and {rows.size - 1:,} other values cannot be "
            f"read either; choose another {option('kinds')}"
        )


def _unread(table: Table, cells: Cells, column: ColumnEncoder | None) -> str:
    """A note on values that cannot be read as the kind of their column."""
    if not isinstance(column, NumberEncoder | DateEncoder):
        return ""
    rows = np.flatnonzero(column.unknown(cells))
    if not rows.size:
        return ""
    text = table.column(column.name)[rows[0]][:20]
    return (
        f"; {rows.size:,} values cannot be read, like {text!r} in {table.position(int(rows[0]))}; "
        "they count as missing"
    )


def _shorten(names: Sequence[str]) -> str:
    """List the first three names and count the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _fit_number(cells: Cells, guess: kinds.Guess) -> Fitted:
    form = NumberFormat.of(cells.sample)
    if form.plain and cells.share(lambda text: form.parse(text) is not None, cells.values) < 1:
        form = replace(form, plain=False)
    column = NumberEncoder(
        cells.name, kinds.NUMBER, decimal=form.decimal, unit=form.unit, plain=form.plain
    )
    numbers = column.numbers(cells)
    known = np.sort(numbers[~np.isnan(numbers)])  # sums do not depend on the order of rows
    if not known.size:
        return None, f"no value is a number, like {cells.values[0][:20]!r}"
    if form.plain and np.isin(known, (0, 1)).all():
        return FlagEncoder(cells.name, kinds.FLAG), ""
    # Scaled exactly to magnitudes around one, so that squares neither overflow nor vanish.
    _, exponent = np.frexp(np.abs(known).max())
    scaled = np.ldexp(known, -exponent)
    mean, std = (float(np.ldexp(value, exponent)) for value in (scaled.mean(), scaled.std()))
    if not scaled.std() > 1e-12 * abs(scaled.mean()) or std == 0:
        return None, "all values are equal"
    skewness = float((((scaled - scaled.mean()) / scaled.std()) ** 3).mean())
    if known[0] >= 0 and skewness > SKEWED:
        median = float(np.median(known[known > 0]))
        logarithms = np.log1p(known / median)
        if logarithms.std() > 0:
            mean, std = float(logarithms.mean()), float(logarithms.std())
            return replace(column, mean=mean, std=std, log=median), ""
    return replace(column, mean=mean, std=std), ""


def _fit_flag(cells: Cells, guess: kinds.Guess) -> Fitted:
    if len(cells.values) == 1 and guess.form == "present":
        return FlagEncoder(cells.name, kinds.FLAG, "present", true="*"), ""
    lower = {text.lower() for text in cells.values}
    for true, false in kinds.FLAGS:
        if lower <= {true, false}:
            return FlagEncoder(cells.name, kinds.FLAG, "words", true=true, false=false), ""
    if len(lower) > 2:
        return None, f"{len(lower)} distinct values, yes or no has two"
    true, false = max(lower), min(lower)
    return FlagEncoder(cells.name, kinds.FLAG, "words", true=true, false=false), f"yes is {true!r}"


def _fit_date(cells: Cells, guess: kinds.Guess) -> Fitted:
    column = DateEncoder(cells.name, kinds.DATE, guess.form)
    days = column.days(cells)
    known = np.sort(days[~np.isnan(days)])
    if not known.size:
        return None, f"no value is a date, like {cells.values[0][:20]!r}"
    if known[0] == known[-1]:
        return None, "all dates are equal"
    parts = []
    if np.unique(np.floor(known / 30.4)).size > 2 and known[-1] - known[0] > 90:
        parts.append("year")
    if guess.form != "year and month" and known[-1] - known[0] > 3:
        parts.append("week")
    if guess.form == "clock" or np.unique(np.round(known % 1, 4)).size > 2:
        parts.append("day")
    return replace(column, mean=float(known.mean()), std=float(known.std()), parts=tuple(parts)), ""


def _fit_category(cells: Cells, guess: kinds.Guess) -> Fitted:
    counts = dict(zip(cells.distinct, cells.counts.tolist(), strict=True))
    ordered = sorted(cells.values, key=lambda value: (-counts[value], value))
    kept = [value for value in ordered[:MAX_VALUES] if counts[value] >= MIN_ROWS]
    kept = kept or ordered[:MAX_VALUES]
    ignored = len(ordered) - len(kept)
    note = f"rare values ignored: {ignored:,}" if ignored else ""
    return TokenEncoder(cells.name, kinds.CATEGORY, "value", values=tuple(sorted(kept))), note


def _fit_tokens(cells: Cells, guess: kinds.Guess) -> Fitted:
    """Choose the most frequent parts, with smoothed weights ``ln((1 + n) / (1 + rows)) + 1``."""
    frequency = frequent_tokens(cells, guess.form)
    most = MAX_SHARE * len(cells)
    common = [token for token, rows in frequency.items() if MIN_ROWS <= rows <= most]
    kept = sorted(sorted(common, key=lambda token: (-frequency[token], token))[:MAX_VALUES])
    if not kept:
        what = "no word" if guess.kind in (kinds.TEXT, kinds.STRING) else "no part"
        return None, f"{what} is in at least 2 rows and at most 90% of the rows"
    idf = tuple(float(np.log((1 + len(cells)) / (1 + frequency[token])) + 1) for token in kept)
    return TokenEncoder(cells.name, guess.kind, guess.form, values=tuple(kept), idf=idf), ""


_FITTERS: dict[str, Callable[[Cells, kinds.Guess], Fitted]] = {
    kinds.NUMBER: _fit_number,
    kinds.FLAG: _fit_flag,
    kinds.DATE: _fit_date,
    kinds.CATEGORY: _fit_category,
    **dict.fromkeys((kinds.CODE, kinds.LIST, kinds.TEXT, kinds.STRING), _fit_tokens),
}
