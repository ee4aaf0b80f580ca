"""Fit a feature encoder: infer the kind of each column and compute its statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dcgst.io.features import TOKEN_PATTERN, ColumnEncoder, FeatureEncoder
from dcgst.io.table import Table, are_numbers, is_decimal_comma, parse_number

MAX_GUESSED_CATEGORIES = 50
"""A column with more distinct values is not guessed to be a category."""

MAX_VALUES = 1000
"""Number of values of a category column, or of words of a text column, that become features."""

MIN_DOCUMENT_FREQUENCY = 2
"""Words in fewer rows are ignored."""

MAX_DOCUMENT_SHARE = 0.9
"""Words in a larger share of the rows are ignored."""

WORDS_PER_TEXT = 3
"""A column is guessed to be text if its distinct values have this many words on average."""


def fit_encoder(table: Table, names: Sequence[str], kinds: Mapping[str, str]) -> FeatureEncoder:
    """Fit an encoder to columns of a table.

    Args:
        table: table to fit the encoder to.
        names: names of the columns to encode.
        kinds: ``number``, ``category`` or ``text`` by column name; guessed for other columns.

    Returns:
        The encoder, with columns sorted by name. It does not contain columns that cannot be used;
        its notes give the reason.

    Example:
        >>> from pathlib import Path
        >>> columns = {"size": ["1", "3", ""], "on": ["0", "1", "1"], "unit": ["m", "m", "m"]}
        >>> encoder = fit_encoder(Table(Path("nodes.csv"), columns, [2, 3, 4]), list(columns), {})
        >>> encoder.columns[1].mean, encoder.columns[1].std
        (2.0, 1.0)
        >>> for note in encoder.notes:
        ...     print(note)
        feature size: number, standardized, missing values set to the mean: 1
        feature on: binary (0 or 1)
        feature unit: not used: all values are equal
    """
    columns = []
    names_by_note: dict[str, list[str]] = {}
    for name in names:
        column, note = _fit_column(table, name, kinds.get(name))
        names_by_note.setdefault(note, []).append(name)
        if column is not None:
            columns.append(column)
    notes = [f"feature {_shorten(names)}: {note}" for note, names in names_by_note.items()]
    columns.sort(key=lambda column: column.name)  # results do not depend on the order of columns
    return FeatureEncoder(tuple(columns), tuple(notes))


def _shorten(names: Sequence[str]) -> str:
    """List the first three names and count the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _fit_column(table: Table, name: str, kind: str | None) -> tuple[ColumnEncoder | None, str]:
    """Return the encoder of a column, None if it cannot be used, and a note for the user."""
    present = [text for text in table.column(name) if text]
    distinct = set(present)
    if not distinct:
        return None, "not used: all values are missing"
    if len(distinct) == 1 and len(present) == len(table):
        return None, "not used: all values are equal"
    kind = kind or _guess_kind(distinct, len(present))
    if kind == "number":
        return _fit_number(table, name)
    if kind == "category":
        return _fit_category(name, present)
    if kind == "text":
        return _fit_text(name, table.column(name))
    return None, f"not used: {_reason_not_used(table, name, distinct)}"


def _guess_kind(distinct: Collection[str], num_present: int) -> str | None:
    """Return the kind of a column, None if no kind fits.

    Args:
        distinct: distinct values of the column.
        num_present: number of rows whose value is not missing.
    """
    if are_numbers(distinct):
        return "number"
    if len(distinct) <= min(MAX_GUESSED_CATEGORIES, max(2, num_present // 2)):
        return "category"
    if sum(len(_words(text)) for text in distinct) >= WORDS_PER_TEXT * len(distinct):
        return "text"
    return None


def _reason_not_used(table: Table, name: str, distinct: Collection[str]) -> str:
    """Explain why a column is neither numbers, categories nor text."""
    if sum(is_decimal_comma(text) for text in distinct) > 0.8 * len(distinct):
        return "numbers with a decimal comma; write a decimal point instead"
    invalid = {text for text in distinct if parse_number(text) is None}
    if len(invalid) < 0.2 * len(distinct):
        row = next(row for row, text in enumerate(table.column(name)) if text in invalid)
        return (
            f"numbers except for values like {table.column(name)[row][:20]!r} in "
            f"{table.position(row)}; fix them, or leave the cells empty"
        )
    return f"{len(distinct)} distinct values, too many for categories and too few words for text"


def _fit_number(table: Table, name: str) -> tuple[ColumnEncoder | None, str]:
    numbers = table.numbers(name)
    known = np.sort(numbers[~np.isnan(numbers)])  # sums do not depend on the order of rows
    num_missing = len(numbers) - len(known)
    if np.isin(known, (0, 1)).all():
        filled = f", missing values set to 0: {num_missing}" if num_missing else ""
        return ColumnEncoder(name, "flag"), f"binary (0 or 1){filled}"
    # Scaled exactly to magnitudes around one, so that squares neither overflow nor vanish.
    _, exponent = np.frexp(np.abs(known).max())
    scaled = np.ldexp(known, -exponent)
    mean, std = (float(np.ldexp(value, exponent)) for value in (scaled.mean(), scaled.std()))
    if not scaled.std() > 1e-12 * abs(scaled.mean()) or std == 0:
        return None, "not used: all values are equal"
    filled = f", missing values set to the mean: {num_missing}" if num_missing else ""
    return ColumnEncoder(name, "number", mean=mean, std=std), f"number, standardized{filled}"


def _fit_category(name: str, present: Sequence[str]) -> tuple[ColumnEncoder, str]:
    counts = Counter(present)
    most_common = sorted(counts, key=lambda value: (-counts[value], value))[:MAX_VALUES]
    values = tuple(sorted(most_common))
    num_ignored = len(counts) - len(values)
    ignored = f", rarer values ignored: {num_ignored}" if num_ignored else ""
    return ColumnEncoder(
        name, "category", values=values
    ), f"category, {len(values)} values{ignored}"


def _fit_text(name: str, texts: Sequence[str]) -> tuple[ColumnEncoder | None, str]:
    """Choose the words and compute their smoothed idf, ``ln((1 + n) / (1 + df)) + 1``.

    The ``MAX_VALUES`` words of highest document frequency are kept. ``TfidfVectorizer`` is not used
    because its ``max_features`` keeps the words of highest total count instead.
    """
    frequency = Counter(word for text in texts for word in set(_words(text)))
    most = MAX_DOCUMENT_SHARE * len(texts)
    common = [word for word, df in frequency.items() if MIN_DOCUMENT_FREQUENCY <= df <= most]
    words = sorted(sorted(common, key=lambda word: (-frequency[word], word))[:MAX_VALUES])
    if not words:
        return None, "not used: no word is in at least 2 rows and at most 90% of the rows"
    idf = tuple(float(np.log((1 + len(texts)) / (1 + frequency[word])) + 1) for word in words)
    encoder = ColumnEncoder(name, "text", values=tuple(words), idf=idf)
    return encoder, f"text, tf-idf of {len(words)} words"


def _words(text: str) -> list[str]:
    return re.findall(TOKEN_PATTERN, text.lower())
