"""Dates, months, years, decades and ranges of them in English text, as ISO 8601."""

import calendar
import re
from typing import NamedTuple

from graphrag_assets.embedded.tagging import alternatives
from graphrag_assets.text.iso_dates import MONTHS

_MONTH = "(?P<month>" + "|".join(sorted({m.title() for m in MONTHS}, key=len, reverse=True)) + r")\b\.?"
_ORDINAL = "(?:st|nd|rd|th)?"
_DAYS = rf"(?:(?P<from>[0-3]?\d){_ORDINAL}\s?(?:-|–|to|and)\s?(?:the )?)?(?P<day>[0-3]?\d){_ORDINAL}"
_CENTURY = "(?:1[0-9]|20)"
_YEAR = rf"(?P<year>{_CENTURY}\d\d)"
_UNIT = alternatives("units", "unit adjectives")
_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<iso>{_CENTURY}\d\d-[01]\d(?:-[0-3]\d)?)\b",
        rf"\b{_DAYS}(?: day)?(?: of)? {_MONTH},? {_YEAR}\b",  # 13 to 27 July 1866; 27th of July, 1866
        rf"\b{_MONTH} {_DAYS},? {_YEAR}\b",  # July 13-27, 1866
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
        rf"\b(?P<first>{_CENTURY}\d\d)\s?(?:-|–|—|to|until)\s?(?P<last>{_CENTURY}?\d\d)\b(?![-,.]?\d)",
        rf"\bbetween (?P<first>{_CENTURY}\d\d) and (?P<last>{_CENTURY}\d\d)\b",
        rf"\b(?P<decade>{_CENTURY}\d)0'?s\b",
        rf"(?<![£$€¥\d.,-]){_YEAR}\b(?![-,.:/]?\d|%| {_UNIT}\b)",
    )
]
_MAYBE = re.compile(rf"{_CENTURY}\d\d")


class Period(NamedTuple):
    """First and last day of a stated time as ISO 8601, as precise as stated."""

    start: str
    end: str


def periods(text: str) -> list[Period]:
    """The times stated in `text`, in order. A day or month without a year is no date.

    >>> periods("It ran from 13 to 27 July 1866, after trials in 1857–58.")
    [Period(start='1866-07-13', end='1866-07-27'), Period(start='1857', end='1858')]
    """
    if not _MAYBE.search(text):
        return []
    found: list[tuple[int, Period]] = []
    for pattern in _PATTERNS:
        taken: list[tuple[int, int]] = []
        for match in pattern.finditer(text):
            period = _period(match.groupdict())
            if period:
                found.append((match.start(), period))
            taken.append(match.span())
        for start, end in taken:  # a longer wording is read once: "27 July 1866" is no "1866"
            text = text[:start] + " " * (end - start) + text[end:]
    return [period for _, period in sorted(found)]


def _period(stated: dict[str, str]) -> Period | None:
    if iso := stated.get("iso"):
        return Period(iso, iso) if _valid(iso) else None
    if decade := stated.get("decade"):
        return Period(f"{decade}0", f"{decade}9")
    if first := stated.get("first"):
        last = first[: 4 - len(stated["last"])] + stated["last"]
        return Period(first, last) if last > first else None
    start = end = stated["year"]
    if month := stated.get("month"):
        start = end = f"{end}-{MONTHS[month.lower()]:02d}"
    if day := stated.get("day"):
        start, end = f"{end}-{int(stated['from'] or day):02d}", f"{end}-{int(day):02d}"
    return Period(start, end) if start <= end and _valid(start) and _valid(end) else None


def _valid(date: str) -> bool:
    parts = [int(part) for part in date.split("-")]
    if len(parts) > 1 and not 1 <= parts[1] <= 12:
        return False
    return len(parts) < 3 or 1 <= parts[2] <= calendar.monthrange(parts[0], parts[1])[1]
