"""The table type shared by all readers: named columns of text, with line numbers for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcgst.errors import InputError
from dcgst.graph.checks import MAX_MAGNITUDE

MISSING_VALUES = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Cells that count as missing values, in lower case."""

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+|\d+")


@dataclass(frozen=True)
class Table:
    """Named columns of text.

    Args:
        path: file that the table was read from.
        columns: the values of each column by name. A missing value is the empty string.
        lines: for each row, the line of the file where the row starts.
        header_line: line of the file where the header starts.
        unit: what ``lines`` counts: lines of a text file, or rows where the source has no lines.

    Example:
        >>> table = Table(Path("nodes.csv"), {"id": ["a", "b"], "size": ["1.5", ""]}, [2, 3])
        >>> table.where(1)
        'nodes.csv, line 3'
        >>> table.numbers("size")
        array([1.5, nan])
    """

    path: Path
    columns: dict[str, list[str]]
    lines: Sequence[int]
    header_line: int = 1
    unit: str = "line"

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.columns)

    def column(self, name: str) -> list[str]:
        """Return the values of a column as text.

        Raises:
            InputError: if there is no such column. The message lists the columns.
        """
        if name not in self.columns:
            raise InputError(
                f"{self.path} has no column {name!r}; its columns are: "
                f"{', '.join(list(self.columns)[:20])}"
            )
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return the values of a column as numbers, NaN for missing values.

        Raises:
            InputError: if a value is not a number, or not within ±``MAX_MAGNITUDE``.
        """
        texts = self.column(name)
        try:
            numbers = np.array([float(text) if text else np.nan for text in texts])
        except ValueError:
            numbers = np.array([np.inf])
        if (np.abs(numbers) > MAX_MAGNITUDE).any():
            for row, text in enumerate(texts):
                if text:
                    self._check_number(row, name, text)
        return numbers

    def position(self, row: int) -> str:
        """Position of a row in the file, for messages."""
        return f"{self.unit} {self.lines[row]}"

    def where(self, row: int) -> str:
        """File and position of a row, for messages."""
        return f"{self.path}, {self.position(row)}"

    def _check_number(self, row: int, name: str, text: str) -> None:
        number = parse_number(text)
        if number is None:
            fix = "fix the value"
            if is_decimal_comma(text):
                fix = "write a decimal point instead of a decimal comma"
            raise InputError(
                f"{self.where(row)}: column {name!r} must contain numbers, got {text[:40]!r}; {fix}"
            )
        if abs(number) > MAX_MAGNITUDE:
            raise InputError(
                f"{self.where(row)}: column {name!r} must contain finite numbers of magnitude at "
                f"most {MAX_MAGNITUDE:g}, got {text[:40]!r}; fix the value"
            )


def parse_number(text: str) -> float | None:
    """Return the number that a text represents, or None.

    Example:
        >>> parse_number("1e3"), parse_number("1,5"), parse_number("red")
        (1000.0, None, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether all texts represent numbers.

    Example:
        >>> are_numbers(["1e3", "2"]), are_numbers(["1", "red"])
        (True, False)
    """
    try:
        for text in texts:
            float(text)
    except ValueError:
        return False
    return True


def is_decimal_comma(text: str) -> bool:
    """Whether a text is a number with a decimal comma, or an integer.

    Integers count because a column of numbers with a decimal comma contains both.

    Example:
        >>> is_decimal_comma("1,5"), is_decimal_comma("2"), is_decimal_comma("1.5")
        (True, True, False)
    """
    return DECIMAL_COMMA.fullmatch(text) is not None


def clean_cell(text: str) -> str:
    """Strip whitespace and replace words for missing values by the empty string.

    Example:
        >>> clean_cell(" red "), clean_cell("NaN"), clean_cell("nancy")
        ('red', '', 'nancy')
    """
    text = text.strip().replace("\0", "")  # NumPy removes it at the end of a text only
    return "" if text.lower() in MISSING_VALUES else text


def clean_cells(texts: Iterable[str]) -> list[str]:
    """:func:`clean_cell` of each text, without the cost of a call for each."""
    return [
        "" if (clean := text.strip().replace("\0", "")).lower() in MISSING_VALUES else clean
        for text in texts
    ]


def cell_text(path: Path, name: str, value: Any) -> str:
    """Convert a typed value of column ``name`` to text, the empty string if missing.

    Example:
        >>> cell_text(Path("n.parquet"), "size", 3.0), cell_text(Path("n.parquet"), "size", None)
        ('3', '')
    """
    if isinstance(value, (list, tuple)):
        return json.dumps([str(item) for item in value], ensure_ascii=False) if value else ""
    if isinstance(value, (dict, bytes)):
        raise InputError(
            f"column {name!r} of {path} contains values of type {type(value).__name__}; one number "
            "or text per cell is required: split the values into several columns"
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean_cell(str(value))  # "None" and "nan" are missing values
