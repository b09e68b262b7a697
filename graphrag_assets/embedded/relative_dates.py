"""Times that English text states relative to the day it was written on, as ISO 8601."""

import calendar
import re
from datetime import date, timedelta

from graphrag_assets.embedded.written_dates import Period, as_end

_MONTHS = [name.lower() for name in calendar.month_name[1:]]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {word: n for n, word in enumerate(_NUMBERS, 1)}
_DAYS = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0}
_DAYS |= {"this morning": 0, "this afternoon": 0, "this evening": 0, "the day after tomorrow": 2, "tomorrow": 1}
_TURNS = {"last": -1, "this": 0, "next": 1}
_STATED = re.compile(
    rf"\b(?:(?P<day>{'|'.join(sorted(_DAYS, key=len, reverse=True))})"
    rf"|(?P<n>\d{{1,3}}|an?|{'|'.join(_COUNTS)}) (?P<unit>day|week|month|year)s? ago"
    rf"|(?P<turn>last|this|next) (?:(?P<span>week|month|year)|(?P<weekday>{'|'.join(_WEEKDAYS)})"
    rf"|(?P<month>{'|'.join(_MONTHS)})))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile('["“”«»„]')


def relative_periods(text: str, written: date) -> list[Period]:
    """The times that a sentence states relative to the day `written`, in order.

    What is quoted was said on another day, so a sentence with a quotation has none. "Three days later" and "the day
    before" are relative to something in the text, not to its date. The first of a month or year may stand for the
    whole of it: days and weeks, or months, relative to it are unknown.

    >>> relative_periods("Field left yesterday, as he did last March.", date(1866, 2, 5))
    [Period(start='1866-02-04', end='1866-02-04'), Period(start='1865-03', end='1865-03')]
    """
    if _QUOTED.search(text):
        return []
    certain = 10 if written.day > 1 else 7 if written.month > 1 else 4  # characters of an ISO date
    found = []
    for match in _STATED.finditer(text):
        stated = {name: value.lower() for name, value in match.groupdict().items() if value}
        try:
            period = _period(stated, written)
        except (ValueError, OverflowError):  # before the year 1
            continue
        if len(period.end) <= certain:
            found.append(as_end(period, text[: match.start()], text[match.end() :]))
    return found


def _period(stated: dict[str, str], written: date) -> Period:
    if day := stated.get("day"):
        return _days(written + timedelta(days=_DAYS[day]))
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
    """The day, week (Monday to Sunday), month or year that is n of them after the one of `written`."""
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
