"""Encoders of numbers, dates and yes or no."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dcgst.graph.checks import MAX_MAGNITUDE
from dcgst.io.encoders.base import ColumnEncoder, check_std
from dcgst.io.encoders.cells import Cells
from dcgst.io.encoders.dates import FORMATS, parse_date
from dcgst.io.encoders.numbers import NumberFormat

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
