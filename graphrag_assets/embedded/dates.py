"""Times that a text states, as ISO 8601."""

import calendar
import re
from typing import NamedTuple

from graphrag_assets.embedded.tagging import alternatives
from graphrag_assets.text.iso_dates import FOREIGN_MONTHS, MONTHS

_MONTH_NAMES = {month.title() for month in MONTHS}.union(*FOREIGN_MONTHS)  # in French and Spanish in lower case
_MONTH = "(?P<month>" + "|".join(sorted(_MONTH_NAMES, key=len, reverse=True)) + r")\b\.?"
_ORDINAL = r"(?:st|nd|rd|th|er|\.)?"
_DAYS = rf"(?:(?P<from>[0-3]?\d){_ORDINAL}\s?(?:-|–|to|and)\s?(?:the )?)?(?P<day>[0-3]?\d){_ORDINAL}"
_CENTURY = "(?:1[0-9]|20)"
_YEAR = rf"(?P<year>{_CENTURY}\d\d)"
_UNIT = alternatives("units", "unit adjectives")
_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<iso>{_CENTURY}\d\d-[01]\d(?:-[0-3]\d)?)\b",
        rf"\b{_DAYS}(?: day)?(?: of| de)? {_MONTH},?(?: de)? {_YEAR}\b",  # 13 to 27 July 1866; 27th of July, 1866
        rf"\b{_MONTH} {_DAYS},? {_YEAR}\b",  # July 13-27, 1866
        rf"\b{_MONTH},? (?:of |de )?{_YEAR}\b",
        rf"\b(?P<first>{_CENTURY}\d\d)\s?(?:-|–|—|to|until)\s?(?P<last>{_CENTURY}?\d\d)\b(?![-,.]?\d)",
        rf"\bbetween (?P<first>{_CENTURY}\d\d) and (?P<last>{_CENTURY}\d\d)\b",
        rf"\b(?P<decade>{_CENTURY}\d)0'?s\b",
        rf"(?<![£$€¥\d.,-]){_YEAR}\b(?![-,.:/]?\d|%| {_UNIT}\b)",
    )
]
_MAYBE = re.compile(rf"{_CENTURY}\d\d")


_ENDED = rf"\b(?:{alternatives('endings')}|(?:stepped|stood) down)\b"
_UNTIL = re.compile(
    r"(?:\b(?:(?<!not )(?<!only )(?:until|till)|up to(?: and including)?|through|bis(?: einschließlich)?|hasta|"
    r"fino (?:a|al)|jusqu['’](?:en|au|aux|à))|['’]til"
    rf"|{_ENDED}(?:(?! (?:that|which|who|when|since|began|begun|started) )[^,;:.\d]){{0,60}}?)"
    r"(?: (?:in|on|as of|the|about|around|early|mid|late|end of|zum|am|im|le|en|la|el|den|au))*[ -]?$",
    re.IGNORECASE,
)
"""What stands before a date until which something held, or on which it ended."""
_CLAUSE_START = re.compile(r"(?:^|[.;:,] )(?:[A-Za-z]{1,3} )?(?:the |le |la |el )?$")
_ENDS_LATER = re.compile(rf"[ ,]+[^,;:.\d]{{0,80}}?{_ENDED}", re.IGNORECASE)
"""What follows a date at the start of a clause, if something ended then."""


class Period(NamedTuple):
    """First and last day of a stated time as ISO 8601, as precise as stated; start None: an end alone."""

    start: str | None
    end: str


def periods(text: str) -> list[Period]:
    """Return the times stated in `text`, in order. A day or month without a year is no date.

    There is no start of a time "until July 1866" or that something "ended in 1866".

    >>> periods("It ran from 13 to 27 July 1866, after trials in 1857–58.")
    [Period(start='1866-07-13', end='1866-07-27'), Period(start='1857', end='1858')]
    """
    if not _MAYBE.search(text):
        return []
    dated_places: list[tuple[int, int, Period]] = []
    wording = text
    for pattern in _PATTERNS:
        places: list[tuple[int, int]] = []
        for match in pattern.finditer(text):
            period = _period(match.groupdict())
            if period:
                dated_places.append((*match.span(), period))
            places.append(match.span())
        for start, end in places:  # a longer wording is read once: "27 July 1866" is no "1866"
            text = text[:start] + " " * (end - start) + text[end:]
    dated_places.sort(key=lambda dated: dated[0])
    return [as_end(period, wording[:start], wording[end:]) for start, end, period in dated_places]


def as_end(period: Period, before: str, after: str) -> Period:
    """`period`, without a start if the words around it say that something ended then.

    >>> as_end(Period("1866", "1866"), "He led it until ", "."), as_end(Period("1866", "1866"), "In ", " he resigned.")
    (Period(start=None, end='1866'), Period(start=None, end='1866'))
    """
    ended = _UNTIL.search(before) or (_CLAUSE_START.search(before) and _ENDS_LATER.match(after))
    return Period(None, period.end) if ended else period


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
