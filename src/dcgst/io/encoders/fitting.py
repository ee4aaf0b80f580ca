"""Fit encoders to the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dcgst.errors import InputError
from dcgst.io.encoders import kinds
from dcgst.io.encoders.base import ColumnEncoder
from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.features import FeatureEncoder
from dcgst.io.encoders.numbers import NumberFormat
from dcgst.io.encoders.numeric import DateEncoder, FlagEncoder, NumberEncoder
from dcgst.io.encoders.tokenized import TokenEncoder, frequent_tokens
from dcgst.io.table import Table

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
            "read either; choose another --kind"
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
