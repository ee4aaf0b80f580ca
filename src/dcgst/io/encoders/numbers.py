"""Numbers as people write them: with units, currencies, thousands separators and percent signs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_SPACES = r"[ \u00a0\u2009\u202f]"
_DIGITS = rf"\d{{1,3}}(?:(?:{_SPACES}|['’])\d{{3}})+(?:[.,]\d+)?|\d+(?:[.,]\d+)*|[.,]\d+"
_SYMBOLS = "€$£¥₹₽₩₺₪₫฿₴₦₱"
_CURRENCY = (
    rf"(?:US|R|A|C|NZ|HK|S)?[{_SYMBOLS}]|Rs\.?|Fr\.?|kr\.?|zł|Kč|Ft|lei|"
    r"(?:USD|EUR|GBP|JPY|CHF|CNY|INR|BRL|CAD|AUD|NZD|MXN|SEK|NOK|DKK|PLN|CZK|HUF|TRY|ZAR|KRW|RUB)"
)
_WORD = r"[^\W\d_]+[23²³]?"
_UNIT = rf"{_WORD}(?:/{_WORD})?|[%‰{_SYMBOLS}]|°[CF]?"
_QUANTITY = re.compile(
    rf"(?P<open>\()?[<>≤≥~≈]?{_SPACES}?(?P<sign>[-+−–])?{_SPACES}?(?P<before>{_CURRENCY})?"
    rf"{_SPACES}?(?P<sign2>[-+−–])?(?P<number>{_DIGITS})(?P<exponent>[eE][-+]?\d{{1,3}})?"
    rf"(?P<sign3>-)?{_SPACES}?(?P<after>{_UNIT})?(?:{_SPACES}(?P<currency>{_CURRENCY}))?(?P<close>\))?"
)
"""A number with a currency before it, or a unit after it; parentheses mean a negative amount."""

_IS_CURRENCY = re.compile(_CURRENCY, re.IGNORECASE)
_DURATION = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?")
LONGEST = 60
"""Longer texts are not numbers."""

_GROUPED_BY_COMMA = re.compile(r"[1-9]\d{0,2}(,\d{2,3})*,\d{3}(\.\d*)?")
_GROUPED_BY_POINT = re.compile(r"[1-9]\d{0,2}(\.\d{3})*\.\d{3}(,\d*)?")

_POWERS = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mio": 1e6,
    "mn": 1e6,
    "million": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "mrd": 1e9,
    "billion": 1e9,
    "tn": 1e12,
}
"""Powers of ten after an amount, in lower case: 2.5M, 30k."""

_ABBREVIATED = ("k", "K", "M", "B", "bn", "Bn", "Mio", "mio", "Mrd", "mrd", "million", "billion")
"""Powers of ten that may stand alone after a number; a small m is a meter."""

_SCALES: dict[str, tuple[str, float]] = {
    "mg": ("g", 1e-3),
    "g": ("g", 1.0),
    "kg": ("g", 1e3),
    "t": ("g", 1e6),
    "oz": ("g", 28.35),
    "lb": ("g", 453.6),
    "mm": ("m", 1e-3),
    "cm": ("m", 1e-2),
    "m": ("m", 1.0),
    "km": ("m", 1e3),
    "ft": ("m", 0.3048),
    "mile": ("m", 1609.3),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "sec": ("s", 1.0),
    "min": ("s", 60.0),
    "h": ("s", 3600.0),
    "hr": ("s", 3600.0),
    "hour": ("s", 3600.0),
    "minute": ("s", 60.0),
    "d": ("s", 86_400.0),
    "day": ("s", 86_400.0),
    "week": ("s", 604_800.0),
    "month": ("s", 2_629_746.0),
    "year": ("s", 31_556_952.0),
    "yr": ("s", 31_556_952.0),
    "byte": ("b", 1.0),
    "kb": ("b", 1e3),
    "mb": ("b", 1e6),
    "gb": ("b", 1e9),
    "tb": ("b", 1e12),
    "ml": ("l", 1e-3),
    "cl": ("l", 1e-2),
    "l": ("l", 1.0),
    "w": ("w", 1.0),
    "kw": ("w", 1e3),
    "mw": ("w", 1e6),
}
"""Units of the same quantity: name of the common unit, and the factor."""


_BY_CASE = {"mW": ("w", 1e-3)}
"""Units that differ from others in letter case only."""


@dataclass(frozen=True)
class Quantity:
    """A number and its unit, in lower case; the unit is empty if there is none."""

    value: float
    unit: str


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes:
        decimal: the decimal sign, a point or a comma.
        unit: the common unit; empty if there is none.
        plain: whether all numbers are written as Python writes them.
    """

    decimal: str = "."
    unit: str = ""
    plain: bool = True

    @classmethod
    def of(cls, texts: Iterable[str]) -> NumberFormat:
        """The format of a column with these values.

        Example:
            >>> NumberFormat.of(["$1,200.50", "$3"])
            NumberFormat(decimal='.', unit='$', plain=False)
            >>> NumberFormat.of(["3,5", "12"]).decimal
            ','
        """
        texts = list(texts)
        if all(_plain(text) is not None for text in texts):
            return cls()
        decimal = "," if _uses_decimal_comma(texts) else "."
        units: Counter[str] = Counter()
        for text in texts:
            found = parse_quantity(text, decimal)
            if found is not None:
                units[found.unit] += 1
        named = {unit: count for unit, count in units.items() if unit}
        unit = max(named, key=lambda name: (named[name], name)) if named else ""
        return cls(decimal, unit, plain=False)

    def parse(self, text: str) -> float | None:
        """The number in a cell, in the common unit; None if it is not a number of this column.

        Example:
            >>> weight = NumberFormat(unit="g", plain=False)
            >>> weight.parse("1.5 kg"), weight.parse("20g"), weight.parse("7"), weight.parse("3 m")
            (1500.0, 20.0, 7.0, None)
        """
        if self.plain:
            return _plain(text)
        if self.unit == "b" and text[-1:] in "Bb" and text[-2:-1] in "0123456789 ":
            text = text[:-1].rstrip() + " byte"  # not billions
        found = parse_quantity(text, self.decimal)
        if found is None:
            return None
        both = _is_currency(found.unit) and _is_currency(self.unit)
        return found.value if found.unit in ("", self.unit) or both else None


def _is_currency(unit: str) -> bool:
    return _IS_CURRENCY.fullmatch(unit) is not None


def parse_quantity(text: str, decimal: str = ".") -> Quantity | None:
    """The number and the unit in a text; None if the text is anything else.

    Example:
        >>> parse_quantity("$3,008.16"), parse_quantity("(12.50 EUR)")
        (Quantity(value=3008.16, unit='$'), Quantity(value=-12.5, unit='eur'))
        >>> parse_quantity("45 %"), parse_quantity("2.5M"), parse_quantity("A4")
        (Quantity(value=45.0, unit='%'), Quantity(value=2500000.0, unit=''), None)
    """
    if len(text) > LONGEST:
        return None
    plain = _plain(text)
    if plain is not None and decimal == ".":
        return Quantity(plain, "")
    duration = _DURATION.fullmatch(text)
    if duration is not None:
        return _seconds(duration)
    match = _QUANTITY.fullmatch(text)
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    before, after = match["before"] or match["currency"] or "", match["after"] or ""
    if before and after and after.lower() not in _POWERS:
        return None
    value = _to_float(match["number"], decimal, match["exponent"] or "")
    if value is None:
        return None
    unit, factor = _common_unit(before.lower(), after)
    signs = "".join(_minus(match[name]) for name in ("sign", "sign2", "sign3"))
    negative = bool(match["open"]) or "-" in signs
    return Quantity(-value * factor if negative else value * factor, unit)


def _seconds(duration: re.Match[str]) -> Quantity:
    """Hours, minutes and seconds, or minutes and seconds."""
    first, second, third = duration.groups()
    total = int(first) * 60 + int(second)
    return Quantity(float(total if third is None else 60 * total + int(third)), "s")


def _plain(text: str) -> float | None:
    if "_" in text:  # Python's own notation
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _minus(sign: str | None) -> str:
    return (sign or "").replace("−", "-").replace("–", "-")


def _common_unit(before: str, after: str) -> tuple[str, float]:
    unit = after.lower()
    if unit in _POWERS and (before or after in _ABBREVIATED):
        return before, _POWERS[unit]
    if before:
        return before, 1.0
    if after in _BY_CASE:
        return _BY_CASE[after]
    singular = unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit
    return _SCALES.get(unit, _SCALES.get(singular, (singular, 1.0)))


def _to_float(digits: str, decimal: str, exponent: str) -> float | None:
    """The value of digits with separators; None if they are not grouped as numbers are."""
    digits = re.sub(rf"{_SPACES}|['’]", "", digits)
    other = "," if decimal == "." else "."
    grouped = _GROUPED_BY_COMMA if decimal == "." else _GROUPED_BY_POINT
    if other in digits:
        if not grouped.fullmatch(digits):
            return None
        digits = digits.replace(other, "")
    if digits.count(decimal) > 1:
        return None
    value = float(digits.replace(decimal, ".") + exponent)
    return value if math.isfinite(value) else None


def _uses_decimal_comma(texts: Iterable[str]) -> bool:
    """Whether more numbers can be read with a decimal comma than with a decimal point."""
    point = comma = 0
    for text in texts:
        point += parse_quantity(text, ".") is not None
        comma += parse_quantity(text, ",") is not None
    return comma > point
