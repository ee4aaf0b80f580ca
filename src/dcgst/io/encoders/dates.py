"""Dates and times in the ways people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

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
_DIGITS = re.compile(r"(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2}))?")
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
LONGEST = 50
"""Longer texts are not dates."""


def parse_date(text: str, form: str) -> datetime | None:
    """The date in a text, in UTC if it has a time zone; None if it is not in this format.

    Example:
        >>> parse_date("2024-02-29T08:30", "year first")
        datetime.datetime(2024, 2, 29, 8, 30)
        >>> parse_date("3/4/24", "month first"), parse_date("2023-02-29", "year first")
        (datetime.datetime(2024, 3, 4, 0, 0), None)
    """
    if len(text) > LONGEST:
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
    match = _DIGITS.fullmatch(text)
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
