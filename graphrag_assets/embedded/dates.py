"""Times in text as ISO 8601: stated ones, and in English those relative to the day that the text was written on."""

import calendar
import re
from datetime import date, timedelta
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


_MONTHS = [name.lower() for name in calendar.month_name[1:]]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {word: n for n, word in enumerate(_NUMBERS, 1)}
_DAY_WORDS = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0}
_DAY_WORDS |= {"this morning": 0, "this afternoon": 0, "this evening": 0, "the day after tomorrow": 2, "tomorrow": 1}
_TURNS = {"last": -1, "this": 0, "next": 1}
_STATED = re.compile(
    rf"\b(?:(?P<day>{'|'.join(sorted(_DAY_WORDS, key=len, reverse=True))})"
    rf"|(?P<n>\d{{1,3}}|an?|{'|'.join(_COUNTS)}) (?P<unit>day|week|month|year)s? ago"
    rf"|(?P<turn>last|this|next) (?:(?P<span>week|month|year)|(?P<weekday>{'|'.join(_WEEKDAYS)})"
    rf"|(?P<month>{'|'.join(_MONTHS)})))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile('["“”«»„]')


def relative_periods(text: str, written: date) -> list[Period]:
    """Return the times that a sentence states relative to the day `written`, in order.

    What is quoted was said on another day, so a sentence with a quotation has none. "Three days later" and "the day
    before" are relative to something in the text, not to its date. The first of a month or year may stand for the
    whole of it: days and weeks, or months, relative to it are unknown.

    >>> relative_periods("Field left yesterday, as he did last March.", date(1866, 2, 5))
    [Period(start='1866-02-04', end='1866-02-04'), Period(start='1865-03', end='1865-03')]
    """
    if _QUOTED.search(text):
        return []
    certain = 10 if written.day > 1 else 7 if written.month > 1 else 4  # characters of an ISO date
    stated_periods = []
    for match in _STATED.finditer(text):
        stated = {name: value.lower() for name, value in match.groupdict().items() if value}
        try:
            period = _relative_period(stated, written)
        except (ValueError, OverflowError):  # before the year 1
            continue
        if len(period.end) <= certain:
            stated_periods.append(as_end(period, text[: match.start()], text[match.end() :]))
    return stated_periods


def _relative_period(stated: dict[str, str], written: date) -> Period:
    if day := stated.get("day"):
        return _days(written + timedelta(days=_DAY_WORDS[day]))
    if unit := stated.get("unit"):
        n = stated["n"]
        return _span(unit, -(int(n) if n.isdigit() else _COUNTS.get(n, 1)), written)
    turn = _TURNS[stated["turn"]]
    if span := stated.get("span"):
        return _span(span, turn, written)
    if weekday := stated.get("weekday"):
        days = _WEEKDAYS.index(weekday) - written.weekday()  # within the week of `written`
        days += 7 if turn > 0 and days <= 0 else -7 if turn < 0 and days >= 0 else 0
        return _days(written + timedelta(days=days))
    month = _MONTHS.index(stated["month"]) + 1
    passed = turn > 0 and month <= written.month
    to_come = turn < 0 and month >= written.month
    return _same(f"{written.year + passed - to_come:04d}-{month:02d}")


def _span(unit: str, n: int, written: date) -> Period:
    """Return the day, week (Monday to Sunday), month or year that is n of them after the one of `written`."""
    if unit == "day":
        return _days(written + timedelta(days=n))
    if unit == "week":
        monday = written - timedelta(days=written.weekday()) + timedelta(weeks=n)
        return _days(monday, monday + timedelta(days=6))
    if unit == "month":
        months = written.year * 12 + written.month - 1 + n
        return _same(date(months // 12, months % 12 + 1, 1).isoformat()[:7])
    return _same(date(written.year + n, 1, 1).isoformat()[:4])


def _days(first: date, last: date | None = None) -> Period:
    return Period(first.isoformat(), (last or first).isoformat())


def _same(stated: str) -> Period:
    return Period(stated, stated)
