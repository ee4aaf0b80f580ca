"""Dates and times in the ways people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

_TIME = (
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?"
    r"\s*([AaPp]\.?[Mm]\.?)?\s*(Z|UTC|[-+]\d{2}:?\d{2})?)?"
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero ene",
            "feb february februar février fevrier febrero",
            "mar march märz maerz mars marzo mrz",
            "apr april avril abril abr",
            "may mai mayo",
            "jun june juni juin junio",
            "jul july juli juillet julio",
            "aug august août aout agosto ago",
            "sep sept september septembre septiembre",
            "oct october oktober octobre octubre okt",
            "nov november novembre noviembre",
            "dec december dezember décembre decembre diciembre dez dic",
        ),
        1,
    )
    for name in names.split()
}
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})[-/.](\d{{1,2}})[-/.](\d{{4}}|\d{{2}}){_TIME}")
_YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_DIGITS = re.compile(r"(\d{4})(\d{2})(\d{2})")
_DAY_NAME_FIRST = re.compile(
    rf"(?:[A-Za-z]{{3,9}},?\s+)?(\d{{1,2}})\.?[-\s]+([^\W\d_]+)\.?,?[-\s]+(\d{{4}}){_TIME}"
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
)
"""How dates are written. ``epoch``: seconds or milliseconds since 1970; ``clock``: a time alone."""

FIRST_YEAR, LAST_YEAR = 1800, 2200


def parse_date(text: str, form: str) -> datetime | None:
    """The date in a text, in UTC if it has a time zone; None if it is not in this format.

    Example:
        >>> parse_date("2024-02-29T08:30", "year first")
        datetime.datetime(2024, 2, 29, 8, 30)
        >>> parse_date("3/4/24", "month first"), parse_date("2023-02-29", "year first")
        (datetime.datetime(2024, 3, 4, 0, 0), None)
    """
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
        for form in FORMATS
        if any(parse_date(text, form) is not None for text in texts[:20])
    }
    if not counts:
        return None
    slashes = sum("/" in text for text in texts) > len(texts) / 2
    preferred = "month first" if slashes else "day first"
    best = max(counts, key=lambda form: (counts[form], form == preferred))
    return best if counts[best] >= share * len(texts) else None


def _moment(year: int, month: int, day: int, time: tuple[str | None, ...]) -> datetime:
    hour, minute, second, half, zone = time
    if year < 100:
        year += 2000 if year < 70 else 1900
    hours = int(hour or 0)
    if half is not None:
        hours = hours % 12 + (12 if half[0] in "Pp" else 0)
    found = datetime(year, month, day, hours, int(minute or 0), min(int(second or 0), 59))
    if zone in (None, "Z", "UTC"):
        return found
    assert zone is not None
    offset = datetime.strptime(zone.replace(":", ""), "%z").utcoffset()
    return found - offset if offset is not None else found


def _year_first(text: str) -> datetime | None:
    match = _YEAR_FIRST.fullmatch(text)
    return match and _moment(int(match[1]), int(match[2]), int(match[3]), match.groups()[3:])


def _day_first(text: str) -> datetime | None:
    match = _YEAR_LAST.fullmatch(text)
    return match and _moment(int(match[3]), int(match[2]), int(match[1]), match.groups()[3:])


def _month_first(text: str) -> datetime | None:
    match = _YEAR_LAST.fullmatch(text)
    return match and _moment(int(match[3]), int(match[1]), int(match[2]), match.groups()[3:])


def _month_name(text: str) -> datetime | None:
    match = _DAY_NAME_FIRST.fullmatch(text)
    if match is not None:
        day, name, year = match.groups()[:3]
    else:
        match = _NAME_FIRST.fullmatch(text)
        if match is None:
            return None
        name, day, year = match.groups()[:3]
    month = _MONTHS.get(name.lower())
    return None if month is None else _moment(int(year), month, int(day), match.groups()[3:])


def _year_and_month(text: str) -> datetime | None:
    match = _YEAR_MONTH.fullmatch(text)
    return match and datetime(int(match[1]), int(match[2]), 1)


def _digits(text: str) -> datetime | None:
    match = _DIGITS.fullmatch(text)
    return match and datetime(int(match[1]), int(match[2]), int(match[3]))


def _epoch(text: str) -> datetime | None:
    match = _EPOCH.fullmatch(text)
    if match is None:
        return None
    seconds = int(match[1]) if match[1] else int(match[2]) / 1000
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


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
}
