"""Columns of a table as features, by a recipe that can be kept and used again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.io.table import Table

MOST_CATEGORIES = 50
MOST_WORDS = 1000
WORD = re.compile(r"\w\w+")
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+|\d+")


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes:
        name: the column's.
        kind: ``number`` (scaled to mean 0 and deviation 1), ``flag`` (0 or 1, as it is),
            ``category`` (one feature for each value) or ``text`` (tf-idf, a feature for each word).
        mean: of a number; what stands where there is no value.
        spread: its standard deviation.
        values: the categories, or the words.
        rarity: the words' inverse document frequencies.
    """

    name: str
    kind: str
    mean: float = 0.0
    spread: float = 1.0
    values: tuple[str, ...] = ()
    rarity: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        return len(self.values) if self.kind in ("category", "text") else 1

    def encode(self, table: Table) -> sp.csr_array:
        """``(n, width)`` features."""
        column = table.column(self.name)
        if self.kind in ("number", "flag"):
            numbers = parse_numbers(table, self.name)
            numbers = np.where(np.isnan(numbers), self.mean, numbers)
            return sp.csr_array(((numbers - self.mean) / self.spread)[:, None])
        place = {value: at for at, value in enumerate(self.values)}
        if self.kind == "category":
            entries = [(row, place[v], 1.0) for row, v in enumerate(column) if v in place]
        else:
            entries = [
                (row, place[word], count * self.rarity[place[word]])
                for row, text in enumerate(column)
                for word, count in Counter(words_of(text)).items()
                if word in place
            ]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        matrix = sp.csr_array(
            (np.array(values, dtype=float), (np.array(rows, int), np.array(columns, int))),
            shape=(len(table), self.width),
        )
        return _unit_rows(matrix) if self.kind == "text" else matrix


@dataclass(frozen=True)
class Recipe:
    """How the columns of a table become features; none for features from the graph alone."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    def encode(self, table: Table) -> NDArray[np.float32] | sp.csr_array:
        """``(n, d)`` features, sparse if under a tenth of them is set."""
        lacking = [c.name for c in self.columns if c.name not in table.columns]
        if lacking:
            raise InputError(
                f"{table.path} lacks the column {lacking[0]!r}: the model knows the features "
                f"{', '.join(c.name for c in self.columns)}"
            )
        matrix = sp.hstack([c.encode(table) for c in self.columns], format="csr")
        matrix = sp.csr_array(matrix).astype(np.float32)
        few = matrix.nnz < matrix.shape[0] * matrix.shape[1] / 10
        return matrix if few else matrix.toarray()

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: Iterable[Mapping[str, Any]]) -> Recipe:
        def restore(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        return cls(tuple(Column(**{k: restore(v) for k, v in c.items()}) for c in columns))


def make_recipe(table: Table, names: Sequence[str], kinds: Mapping[str, str]) -> Recipe:
    """Look at the named columns and decide how each becomes features.

    Args:
        table: where they are.
        names: which columns.
        kinds: what the user says of some of them: ``number``, ``category`` or ``text``.
    """
    columns, notes = [], []
    for name in names:
        column, note = _look_at(table, name, kinds.get(name))
        notes.append(f"{name}: {note}")
        if column is not None:
            columns.append(column)
    return Recipe(tuple(columns), tuple(notes))


def parse_numbers(table: Table, name: str) -> NDArray[np.float64]:
    """A column as numbers, nan where there is no value; an error names the first that is none."""
    numbers = np.full(len(table), np.nan)
    for row, text in enumerate(table.column(name)):
        if text:
            number = _number(text)
            if number is None:
                remedy = "mend it, or leave it empty"
                if DECIMAL_COMMA.fullmatch(text):
                    remedy = "write a point for the decimal comma"
                raise InputError(
                    f"{table.where(row)}: {name!r} is to be a number, got {text[:40]!r}; {remedy}"
                )
            if np.isinf(number) or abs(number) > 1e30:
                raise InputError(
                    f"{table.where(row)}: {name!r} is infinite or too large ({text[:40]}); leave "
                    "it empty if it is not known"
                )
            numbers[row] = number
    return numbers


def words_of(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _look_at(table: Table, name: str, kind: str | None) -> tuple[Column | None, str]:
    """What becomes of one column, and the words that say so."""
    present = [text for text in table.column(name) if text]
    distinct = set(present)
    if len(distinct) < 2 and (len(present) == len(table) or not distinct):
        return None, "not used, since it is " + ("the same everywhere" if distinct else "empty")
    if kind == "number" or (kind is None and all(_number(text) is not None for text in distinct)):
        return _look_at_numbers(table, name)
    worded = sum(len(words_of(text)) for text in distinct) >= 3 * len(distinct)
    few = len(distinct) <= min(MOST_CATEGORIES, max(2, len(present) // 2))
    if kind == "category" or (kind is None and few):
        return _look_at_categories(name, present)
    if kind == "text" or worded:
        return _look_at_text(table, name)
    return None, f"not used: {_why_not(table, name, distinct)}"


def _why_not(table: Table, name: str, distinct: set[str]) -> str:
    """What a column that is neither numbers, categories nor text looks like."""
    if sum(bool(DECIMAL_COMMA.fullmatch(text)) for text in distinct) > 0.8 * len(distinct):
        return "numbers with a decimal comma; write a point instead"
    wrong = [text for text in distinct if _number(text) is None]
    if len(wrong) < 0.2 * len(distinct):
        first = next(row for row, text in enumerate(table.column(name)) if text in wrong)
        return (
            f"numbers but for {table.column(name)[first][:20]!r} in line {table.lines[first]} and "
            f"its like; mend it, or leave it empty"
        )
    return f"{len(distinct)} different names say little of what nodes have in common"


def _look_at_numbers(table: Table, name: str) -> tuple[Column | None, str]:
    numbers = parse_numbers(table, name)
    known = numbers[~np.isnan(numbers)]
    unknown = len(numbers) - known.size
    if np.isin(known, (0, 1)).all():
        return Column(name, "flag"), "0 or 1" + (
            f", {unknown} missing taken as 0" if unknown else ""
        )
    mean, spread = float(known.mean()), float(known.std())
    if not spread > 1e-12 * max(1.0, abs(mean)):
        return None, "not used, since it is the same everywhere"
    filled = f", {unknown} missing set to the mean" if unknown else ""
    return Column(name, "number", mean=mean, spread=spread), f"number, scaled{filled}"


def _look_at_categories(name: str, present: list[str]) -> tuple[Column | None, str]:
    counts = Counter(present).most_common(MOST_WORDS)
    values = tuple(sorted(value for value, _ in counts))
    rest = len(set(present)) - len(values)
    rare = f", {rest} rarer ones left out" if rest else ""
    return Column(name, "category", values=values), f"category, {len(values)} values{rare}"


def _look_at_text(table: Table, name: str) -> tuple[Column | None, str]:
    documents = [set(words_of(text)) for text in table.column(name)]
    having = Counter(word for words in documents for word in words)
    common = [(word, n) for word, n in having.items() if 2 <= n <= 0.9 * len(documents)]
    kept = sorted(common, key=lambda item: (-item[1], item[0]))[:MOST_WORDS]
    if not kept:
        return None, "not used: no word is in more than one row"
    kept.sort()
    rarity = tuple(float(np.log((1 + len(documents)) / (1 + n)) + 1) for _, n in kept)
    words = tuple(word for word, _ in kept)
    return Column(name, "text", values=words, rarity=rarity), f"text, tf-idf of {len(words)} words"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unit_rows(matrix: sp.csr_array) -> sp.csr_array:
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1))
    inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sp.csr_array(sp.diags_array(inverse) @ matrix)
