"""Values as people write them: numbers with units, dates, and words, codes and lists."""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

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


_TIME = (
    r"(?:(?:[T:]|,? )(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?"
    r" ?([AaPp]\.?[Mm]\.?)? ?(Z|UTC|GMT|[-+]\d{2}(?::?\d{2})?)?)?"
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero ene gennaio janeiro",
            "feb february februar février fevrier febrero febbraio fevereiro",
            "mar march märz maerz mars marzo mrz março",
            "apr april avril abril abr aprile",
            "may mai mayo maggio maio",
            "jun june juni juin junio giugno junho",
            "jul july juli juillet julio luglio julho",
            "aug august août aout agosto ago",
            "sep sept september septembre septiembre settembre setembro",
            "oct october oktober octobre octubre okt ottobre outubro",
            "nov november novembre noviembre novembro",
            "dec december dezember décembre decembre diciembre dez dic dicembre dezembro",
        ),
        1,
    )
    for name in names.split()
}
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})[-/.](\d{{1,2}})[-/.](\d{{4}}|\d{{2}}){_TIME}")
_SHORT_YEAR_AFTER_POINTS = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2}\b(?!\d)")
_CHINESE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日")
_MONTH_AND_YEAR = re.compile(r"([^\W\d_]+)\.?[-\s](\d{4})")
_YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_DATE_DIGITS = re.compile(r"(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2}))?")
_DAY_NAME_FIRST = re.compile(
    rf"(?:[A-Za-z]{{3,9}},?\s)?(\d{{1,2}})\.?[-/\s](?:de\s)?([^\W\d_]+)\.?,?[-/\s](?:de\s)?"
    rf"(\d{{4}}|\d{{2}}){_TIME}"
)
_NAME_FIRST = re.compile(rf"([^\W\d_]+)\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}}){_TIME}")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([AaPp]\.?[Mm]\.?)?")
_EPOCH = re.compile(r"(\d{10})(?:\.\d+)?|(\d{13})")

FORMATS = (
    "year first",
    "day first",
    "month first",
    "month name",
    "year and month",
    "digits",
    "epoch",
    "clock",
    "several formats, day first",
    "several formats, month first",
)
"""How dates are written. ``epoch``: seconds or milliseconds since 1970; ``clock``: a time alone."""

MIXED = {"day first": FORMATS[-2], "month first": FORMATS[-1]}
"""Columns with several formats, by how dates like 3/4/2024 are read."""

SINGLE = FORMATS[:-2]

FIRST_YEAR, LAST_YEAR = 1800, 2200
LONGEST_DATE = 50
"""Longer texts are not dates."""


def parse_date(text: str, form: str) -> datetime | None:
    """The date in a text, in UTC if it has a time zone; None if it is not in this format.

    Example:
        >>> parse_date("2024-02-29T08:30", "year first")
        datetime.datetime(2024, 2, 29, 8, 30)
        >>> parse_date("3/4/24", "month first"), parse_date("2023-02-29", "year first")
        (datetime.datetime(2024, 3, 4, 0, 0), None)
    """
    if len(text) > LONGEST_DATE:
        return None
    try:
        found = _PARSERS[form](text)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found is not None and FIRST_YEAR <= found.year <= LAST_YEAR else None


def date_format(texts: Iterable[str], share: float = 0.9) -> str | None:
    """The format in which at least a share of the texts are dates; None if there is none.

    Dates like 3/4/2024, of which no part is above 12, are read with the month first; with points or
    hyphens, with the day first.

    Example:
        >>> date_format(["31.12.2023", "1.1.2024"]), date_format(["12/31/2023"]), date_format(["a"])
        ('day first', 'month first', None)
    """
    texts = list(texts)
    counts = {
        form: sum(parse_date(text, form) is not None for text in texts)
        for form in SINGLE
        if any(parse_date(text, form) is not None for text in texts[:20])
    }
    if not counts:
        return None
    slashes = sum("/" in text for text in texts) > len(texts) / 2
    preferred = "month first" if slashes else "day first"
    best = max(counts, key=lambda form: (counts[form], form == preferred))
    if counts[best] >= share * len(texts):
        return best
    days_first = counts.get("day first", 0) >= counts.get("month first", 0) and not slashes
    several = MIXED["day first" if days_first else "month first"]
    parsed = sum(parse_date(text, several) is not None for text in texts)
    return several if parsed >= share * len(texts) else None


def _moment(year: int, month: int, day: int, time: tuple[str | None, ...]) -> datetime:
    hour, minute, second, half, zone = time
    if year < 100:
        year += 2000 if year < 70 else 1900
    hours = int(hour or 0)
    if half is not None:
        hours = hours % 12 + (12 if half[0] in "Pp" else 0)
    found = datetime(year, month, day, hours, int(minute or 0), min(int(second or 0), 59))
    if zone in (None, "Z", "UTC", "GMT"):
        return found
    assert zone is not None
    hours, minutes = int(zone[1:3]), int(zone.replace(":", "")[3:] or 0)
    offset = timedelta(hours=hours, minutes=minutes)
    return found - offset if zone[0] == "+" else found + offset


def _year_first(text: str) -> datetime | None:
    match = _YEAR_FIRST.fullmatch(text)
    if match is None and (chinese := _CHINESE.fullmatch(text)):
        return datetime(int(chinese[1]), int(chinese[2]), int(chinese[3]))
    return match and _moment(int(match[1]), int(match[2]), int(match[3]), match.groups()[3:])


def _day_first(text: str) -> datetime | None:
    match = _YEAR_LAST.fullmatch(text)
    if match and _SHORT_YEAR_AFTER_POINTS.match(text) and len(match[1] + match[2]) < 4:
        return None  # 1.8.25 is a version
    return match and _moment(int(match[3]), int(match[2]), int(match[1]), match.groups()[3:])


def _month_first(text: str) -> datetime | None:
    match = _YEAR_LAST.fullmatch(text)
    if match and "." in text.split(" ")[0]:
        return None
    return match and _moment(int(match[3]), int(match[1]), int(match[2]), match.groups()[3:])


def _month_name(text: str) -> datetime | None:
    match = _DAY_NAME_FIRST.fullmatch(text)
    if match is not None:
        day, name, year = match.groups()[:3]
    else:
        match = _NAME_FIRST.fullmatch(text)
        if match is None:
            return _month_and_year(text)
        name, day, year = match.groups()[:3]
    month = _MONTHS.get(name.lower())
    return None if month is None else _moment(int(year), month, int(day), match.groups()[3:])


def _month_and_year(text: str) -> datetime | None:
    match = _MONTH_AND_YEAR.fullmatch(text)
    month = _MONTHS.get(match[1].lower()) if match else None
    return datetime(int(match[2]), month, 1) if match and month else None


def _year_and_month(text: str) -> datetime | None:
    match = _YEAR_MONTH.fullmatch(text)
    return match and datetime(int(match[1]), int(match[2]), 1)


def _digits(text: str) -> datetime | None:
    match = _DATE_DIGITS.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    return datetime(year, month, day, hour, minute, second)


def _epoch(text: str) -> datetime | None:
    match = _EPOCH.fullmatch(text)
    if match is None:
        return None
    seconds = int(match[1]) if match[1] else int(match[2]) / 1000
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _mixed(text: str, order: tuple[str, str]) -> datetime | None:
    """Formats with years of four digits or names of months; the second order if the first fails."""
    for form in ("year first", "month name", *order):
        found = parse_date(text, form)
        if found is not None:
            return found
    return None


def _clock(text: str) -> datetime | None:
    match = _CLOCK.fullmatch(text)
    return match and _moment(1970, 1, 1, (*match.groups(), None))


_PARSERS: dict[str, Callable[[str], datetime | None]] = {
    "year first": _year_first,
    "day first": _day_first,
    "month first": _month_first,
    "month name": _month_name,
    "year and month": _year_and_month,
    "digits": _digits,
    "epoch": _epoch,
    "clock": _clock,
    MIXED["day first"]: lambda text: _mixed(text, ("day first", "month first")),
    MIXED["month first"]: lambda text: _mixed(text, ("month first", "day first")),
}


WORD = re.compile(r"(?u)\w\w+")
"""Two or more letters, digits or underscores."""

EMAIL = re.compile(r"[^@\s]+@([^@\s]+\.[^@\s.]+)")
WEB_ADDRESS = re.compile(r"(?:https?|ftp)://\S+|www\.\S+", re.IGNORECASE)
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces between words: Thai, Khmer, Chinese, Japanese and others."""

LONGEST_PREFIX = 6
NGRAM = 3


def words(text: str) -> list[str]:
    """Words in lower case; where words are not separated, pairs of characters.

    Example:
        >>> words("The red fox"), words("東京都")
        (['the', 'red', 'fox'], ['東京', '京都'])
    """
    found = []
    for word in WORD.findall(text.lower()):
        if _UNSPACED.search(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            found.append(word)
    return found


def ngrams(text: str) -> list[str]:
    """Three consecutive characters of each word with its boundaries: spellings that are similar.

    Example:
        >>> ngrams("Ann B")
        [' an', 'ann', 'nn ', ' b ']
    """
    found = []
    for word in re.findall(r"\w+", text.lower()):
        padded = f" {word} "
        found += [padded[i : i + NGRAM] for i in range(len(padded) - NGRAM + 1)]
    return found


def value(text: str) -> list[str]:
    """The whole text: a category."""
    return [text]


def prefixes(text: str) -> list[str]:
    """A code and its beginnings, which often stand for a region or a group.

    Example:
        >>> prefixes("02139")
        ['0*', '02*', '021*', '02139']
        >>> prefixes("AB-1200-X")
        ['AB*', 'AB-1200*', 'AB-1200-X']
    """
    parts = re.split(r"([-_/.: ])", text)
    if len(parts) > 1:
        starts = ["".join(parts[:end]) for end in range(1, min(len(parts), 2 * LONGEST_PREFIX), 2)]
    else:
        starts = [text[:end] for end in range(1, min(len(text), LONGEST_PREFIX) - 1)]
    return [*(f"{start}*" for start in starts if start and start != text), text]


def email_domain(text: str) -> list[str]:
    """The domain of an e-mail address, and its ending.

    Example:
        >>> email_domain("ann@mail.example.org")
        ['@mail.example.org', '.org']
    """
    match = EMAIL.fullmatch(text)
    if match is None:
        return []
    domain = match[1].lower()
    return [f"@{domain}", f".{domain.rpartition('.')[2]}"]


def web_host(text: str) -> list[str]:
    """The host of a web address, and the first part of its path.

    Example:
        >>> web_host("https://www.example.org/shop/7")
        ['example.org', 'example.org/shop']
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:
        return []
    host = (parts.hostname or "").removeprefix("www.")
    first = parts.path.strip("/").split("/")[0]
    return [host, f"{host}/{first}"] if host and first else [host] if host else []


def network(text: str) -> list[str]:
    """The networks that an IP address is in.

    Example:
        >>> network("192.168.1.7")
        ['192.0.0.0/8', '192.168.0.0/16', '192.168.1.0/24']
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return []
    lengths = (8, 16, 24) if address.version == 4 else (32, 48, 64)
    return [str(ipaddress.ip_network(f"{address}/{length}", strict=False)) for length in lengths]


def items(text: str, separator: str) -> list[str]:
    """The items of a list, in lower case; ``json`` is the separator of JSON lists.

    Example:
        >>> items("Red|blue", "|"), items('["a", 3]', "json"), items("{a,b}", ",")
        (['red', 'blue'], ['a', '3'], ['a', 'b'])
    """
    if separator == "json":
        found = _from_json(text)
        if found is None:
            return items(text, ",")
        parts = [str(item) for item in found]
    else:
        enclosed = len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()")
        parts = (text[1:-1] if enclosed else text).split(separator)
    return [item for part in parts if (item := part.strip().strip("\"'").lower())]


def _from_json(text: str) -> list[object] | None:
    for candidate in (text, text.replace("'", '"')):  # lists of Python have other quotes
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, list) else None
    return None


_BY_FORM: dict[str, Callable[[str], list[str]]] = {
    "words": words,
    "n-grams": ngrams,
    "value": value,
    "prefixes": prefixes,
    "e-mail": email_domain,
    "web address": web_host,
    "IP address": network,
}
FORMS = tuple(_BY_FORM)


def tokenizer(form: str) -> Callable[[str], list[str]]:
    """The function of a form; ``list X`` stands for a list with the separator X."""
    if form.startswith("list "):
        separator = form.removeprefix("list ")
        return lambda text: items(text, separator)
    return _BY_FORM[form]
