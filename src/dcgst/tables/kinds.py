"""The kind of a column, guessed from its name and its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dcgst.tables import values as tokens
from dcgst.tables.values import MIXED, NumberFormat, date_format

SAMPLE = 2000
"""Distinct values that decide the kind of a column."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column. A missing value is the empty text.

    What is computed from a value is computed once for all rows that have it.

    Attributes:
        name: name of the column.
        distinct: distinct values, the empty text included if it occurs, in ascending order.
        codes: ``(n,)`` position of each row's value in ``distinct``.
    """

    name: str
    distinct: list[str]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, name: str, texts: Iterable[str]) -> Cells:
        """The cells of a list of texts.

        Example:
            >>> Cells.of("color", ["red", "", "red"]).distinct
            ['', 'red']
        """
        first: dict[str, int] = {}
        codes = np.fromiter((first.setdefault(text, len(first)) for text in texts), np.int64)
        distinct = sorted(first)
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[[first[text] for text in distinct]] = np.arange(len(distinct))
        return cls(name, distinct, rank[codes] if len(distinct) else codes)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each distinct value."""
        return np.bincount(self.codes, minlength=len(self.distinct))

    @cached_property
    def values(self) -> list[str]:
        """Distinct values that are not missing."""
        return [text for text in self.distinct if text]

    @property
    def num_missing(self) -> int:
        """Number of rows without a value."""
        has_missing = bool(self.distinct) and self.distinct[0] == ""
        return int(self.counts[0]) if has_missing else 0

    @property
    def num_present(self) -> int:
        return len(self) - self.num_missing

    @cached_property
    def sample(self) -> list[str]:
        """Some distinct values, evenly spaced in their order."""
        step = -(-len(self.values) // SAMPLE) or 1
        return self.values[::step]

    def map(self, function: Callable[[str], float]) -> NDArray[np.float64]:
        """``(n,)`` the number that a function returns for the value of each row."""
        by_value = np.array([function(text) for text in self.distinct], dtype=np.float64)
        found: NDArray[np.float64] = by_value[self.codes]
        return found

    def share(
        self, condition: Callable[[str], object], texts: Iterable[str] | None = None
    ) -> float:
        """Share of distinct values, or of some of them, that meet a condition."""
        chosen = self.sample if texts is None else list(texts)
        return sum(bool(condition(text)) for text in chosen) / max(1, len(chosen))


NUMBER, FLAG, DATE = "number", "flag", "date"
CATEGORY, CODE, LIST, TEXT, STRING = "category", "code", "list", "text", "string"
UNUSED = "ignore"

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
KINDS = (NUMBER, FLAG, DATE, DAY_FIRST, MONTH_FIRST, CATEGORY, CODE, LIST, TEXT, STRING)
"""What a column can contain; dates also with the order of day and month."""

MOST = 0.9
"""Share of the distinct values that must look like a kind."""

FEW_VALUES = 50
"""Columns with at most so many distinct values, each in two rows on average, are categories."""

ROWS_PER_VALUE = 5
"""Columns with more distinct values are categories if each is in so many rows on average."""

WORDS_PER_TEXT = 3
"""A text has so many words on average."""

FLAGS = (
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("oui", "non"),
    ("sí", "no"),
    ("si", "no"),
    ("s", "n"),
    ("j", "n"),
    ("да", "нет"),
    ("sim", "não"),
    ("tak", "nie"),
    ("ano", "ne"),
    ("是", "否"),
    ("vrai", "faux"),
    ("wahr", "falsch"),
    ("1", "0"),
    ("1.0", "0.0"),
    ("active", "inactive"),
    ("enabled", "disabled"),
)
"""Pairs of words for true and false."""

_SEPARATORS = ("|", ";", ",")
_CODE_WORDS = frozenset(
    {"zip", "zipcode", "postal", "postcode", "plz", "phone", "mobile", "telephone", "tel", "fax"}
    | {"sku", "isbn", "ean", "gtin", "iban", "bic", "swift", "bin", "code", "cusip", "isin"}
    | {"naics", "sic", "mcc", "icd", "icd10", "fips", "npi"}
)
"""Last words of the names of columns of codes; the word before an ending like number counts too."""

_ENDINGS = frozenset(["number", "no", "nr", "num", "code"])
_ID_WORDS = frozenset(
    {"id", "ids", "uuid", "guid", "key", "hash", "number", "nr", "no", "ref", "reference"}
    | {"nummer", "numero", "numéro"}
)
_ROW_NAMES = re.compile(r"unnamed.*|row|rownum|row_?number|index|#|lfd.*", re.IGNORECASE)
_TIME_NAMES = re.compile(
    r"time|date|stamp|created|updated|modified|_at$|_ts$|^ts$|since|until", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")
_HASH = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|[0-9a-f]{16,}", re.IGNORECASE)
_CODE = re.compile(r"[A-Z0-9]+([-_/.:][A-Z0-9]+)*")
_MAC = re.compile(r"[0-9A-F]{2}([-:][0-9A-F]{2}){5}", re.IGNORECASE)
_DECIMAL = re.compile(r"\d*[.,]\d+")


@dataclass(frozen=True)
class Guess:
    """What a column contains.

    Attributes:
        kind: one of :data:`KINDS`, or :data:`UNUSED`.
        form: how dates, codes and lists are written.
        reason: why the column is not used.
    """

    kind: str
    form: str = ""
    reason: str = ""


def guess_kind(cells: Cells) -> Guess:
    """The kind of a column.

    Example:
        >>> guess_kind(Cells.of("price", ["$3,008.16", "$12.00", "$7.50"])).kind
        'number'
        >>> guess_kind(Cells.of("zip", ["02139", "10115", "94110"]))
        Guess(kind='code', form='prefixes', reason='')
        >>> guess_kind(Cells.of("tags", ["a|b", "b|c", "a|c", "b"])).form
        'list |'
    """
    nothing = _nothing(cells)
    if nothing is not None:
        return nothing
    for rule in (_flag, _date, _structured_code, _numeric, _listed, _few_values, _words):
        found = rule(cells)
        if found is not None:
            return found
    return Guess(STRING, "n-grams")


def given_kind(kind: str, cells: Cells) -> Guess:
    """A column of a kind that the user has named."""
    if kind in (DAY_FIRST, MONTH_FIRST):
        return Guess(DATE, MIXED[kind.replace("-", " ")])
    return Guess(kind, form_of(kind, cells))


def form_of(kind: str, cells: Cells) -> str:
    """How the values of a column of a given kind are written."""
    if kind == DATE:
        return date_format(cells.sample, share=0.5) or "year first"
    if kind == CODE:
        found = _structured_code(cells)
        return found.form if found is not None and found.kind == CODE else "prefixes"
    if kind == LIST:
        used = max(_SEPARATORS, key=lambda by: sum(by in text for text in cells.sample))
        return f"list {_separator(cells) or used}"
    return {TEXT: "words", STRING: "n-grams", CATEGORY: "value"}.get(kind, "")


def _nothing(cells: Cells) -> Guess | None:
    if not cells.values:
        return Guess(UNUSED, reason="all values are missing")
    if len(cells.values) == 1 and not cells.num_missing:
        return Guess(UNUSED, reason="all values are equal")
    if len(cells.values) == 1:
        return Guess(FLAG, "present")
    return None


def _flag(cells: Cells) -> Guess | None:
    lower = {text.lower() for text in cells.values[: FEW_VALUES + 1]}
    if len(lower) == 2 and any(lower == set(pair) for pair in FLAGS):
        return Guess(FLAG, "words")
    return None


def _date(cells: Cells) -> Guess | None:
    form = date_format(cells.sample, MOST)
    if form == "epoch" and not _TIME_NAMES.search(cells.name):
        return None
    if form in ("digits", "year and month") and date_format(cells.sample, 1.0) != form:
        return None
    return None if form is None else Guess(DATE, form)


def _structured_code(cells: Cells) -> Guess | None:
    """E-mail, web and IP addresses, identifiers, and codes by leading zeros or by their name."""
    if cells.share(tokens.EMAIL.fullmatch) >= MOST:
        return Guess(CODE, "e-mail")
    if cells.share(tokens.WEB_ADDRESS.fullmatch) >= MOST:
        return Guess(CODE, "web address")
    if cells.share(tokens.network) >= MOST:
        return Guess(CODE, "IP address")
    if cells.share(_MAC.fullmatch) >= MOST:
        return Guess(CODE, "prefixes")
    words = name_words(cells.name)
    digits = cells.share(_DIGITS.fullmatch) >= MOST
    named = bool(words) and words[-1] in _ID_WORDS and cells.share(_looks_like_code) >= MOST
    if cells.share(_HASH.fullmatch) >= MOST or (named and not _is_code_name(words)):
        return _identifier(cells)
    if digits and _ROW_NAMES.fullmatch(cells.name):
        return _identifier(cells)
    leading = cells.share(lambda text: len(text) > 1 and text.startswith("0") and text.isdigit())
    if digits and leading >= 0.05 and leading * len(cells.sample) >= 2:
        return Guess(CODE, "prefixes")
    if _is_code_name(words) and cells.share(_looks_like_code) >= MOST:
        few = _is_few(cells) and not digits
        return Guess(CATEGORY, "value") if few else Guess(CODE, "prefixes")
    return None


def name_words(name: str) -> list[str]:
    """The words of a column name.

    Example:
        >>> name_words("CustomerID"), name_words("zip_code 2")
        (['customer', 'id'], ['zip', 'code', '2'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", spaced.lower())


def _is_code_name(words: list[str]) -> bool:
    if not words or "of" in words:
        return False
    return words[-1] in _CODE_WORDS or (
        len(words) > 1 and words[-1] in _ENDINGS and words[-2] in _CODE_WORDS
    )


def _identifier(cells: Cells) -> Guess:
    """Identifiers that occur once are not used; others are categories."""
    if len(cells.values) == cells.num_present:
        return Guess(UNUSED, reason="identifiers, different in every row")
    return Guess(CATEGORY, "value")


def _is_few(cells: Cells) -> bool:
    return len(cells.values) <= min(FEW_VALUES, max(2, cells.num_present // 2))


def _looks_like_code(text: str) -> bool:
    allowed = re.fullmatch(r"[+(]?[\dA-Za-z][-+()./\s\dA-Za-z]*", text)
    return bool(allowed) and any(map(str.isdigit, text)) and not _DECIMAL.fullmatch(text)


def _numeric(cells: Cells) -> Guess | None:
    form = NumberFormat.of(cells.sample)
    if cells.share(lambda text: form.parse(text) is not None or _is_infinite(text)) < MOST:
        return None
    return Guess(NUMBER)


def _is_infinite(text: str) -> bool:
    """A number, although not one that can be used."""
    return text.lower().lstrip("+-") in ("inf", "infinity")


def _listed(cells: Cells) -> Guess | None:
    separator = _separator(cells)
    return None if separator is None else Guess(LIST, f"list {separator}")


def _separator(cells: Cells) -> str | None:
    """The separator of a column of lists whose items are short and occur again."""
    if cells.share(lambda text: text[0] == "[" and text[-1] == "]") >= MOST:
        return "json"
    for separator in _SEPARATORS:
        if cells.share(lambda text, by=separator: by in text) < 0.3:  # type: ignore[misc]
            continue
        split = [tokens.items(text, separator) for text in cells.sample]
        if separator == "," and all(len(own) == 2 for own in split):
            continue  # last name, first name
        items = [item for own in split for item in own]
        short = sum(len(item) <= 30 and len(item.split()) <= 3 for item in items)
        repeated = len(set(items)) <= 0.5 * len(items)
        if items and short >= 0.95 * len(items) and repeated:
            return separator
    return None


def _few_values(cells: Cells) -> Guess | None:
    return Guess(CATEGORY, "value") if _is_few(cells) else None


def _words(cells: Cells) -> Guess | None:
    mean = sum(len(tokens.words(text)) for text in cells.sample) / max(1, len(cells.sample))
    if mean >= WORDS_PER_TEXT:
        return Guess(TEXT, "words")
    if cells.share(lambda text: _CODE.fullmatch(text) and any(map(str.isdigit, text))) >= MOST:
        return Guess(CODE, "prefixes")
    if cells.num_present >= ROWS_PER_VALUE * len(cells.values):
        return Guess(CATEGORY, "value")
    return None
