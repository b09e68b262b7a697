"""Dates as people and models write them, converted to ISO 8601 with the precision that is certain."""

import calendar
import re
from datetime import date

_ENGLISH = " ".join(calendar.month_name[1:]).casefold()
FOREIGN_MONTHS = tuple(
    names.split()
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
)
MONTHS = {name[:length]: number for number, name in enumerate(_ENGLISH.split(), 1) for length in (3, 4, len(name))} | {
    name: number for names in FOREIGN_MONTHS for number, name in enumerate(names, 1)
}
"""Number of each month by its name in English, German, French and Spanish, the English ones abbreviated too."""
_MONTH = "(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?<!\d)(\d{4})(?!\d)"
_ORDINAL = "(?:st|nd|rd|th)?"

_ISO = re.compile(r"(\d{4})(?:[-/.](\d{1,2}|[x?]+)(?:[-/.](\d{1,2}|[x?]+))?)?(?:[t ]\d{1,2}:\d\d.*)?")
_SPAN = re.compile(r"(\d{4}) ?([-–—/]) ?(\d{4}|\d\d)")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:t\d{6}z?)?")
_NUMERIC = re.compile(rf"(\d{{1,2}})([./-])(\d{{1,2}})\2{_YEAR}")
_DAY_FIRST = re.compile(rf"(\d{{1,2}}){_ORDINAL}\.?(?: day)?(?: of)? {_MONTH},? {_YEAR}")
_MONTH_FIRST = re.compile(rf"{_MONTH} (\d{{1,2}}){_ORDINAL},? {_YEAR}")
_MONTH_ONLY = re.compile(rf"{_MONTH},? (?:of )?{_YEAR}")
_DECADE = re.compile(r"(?<!\d)(\d{3})0'?s\b")
_ANY_YEAR = re.compile(_YEAR)
_BC = re.compile(r"\bb\.? ?c\.?(?:e\.?)?(?!\w)")


def iso_date(stated: str | None, last: bool = False) -> str | None:
    """`YYYY`, `YYYY-MM` or `YYYY-MM-DD`, as precise as `stated` is certain; None without a year.

    Ambiguous days and months (03/04/1866) give the year alone. Of a range or a decade it is the
    first year, or with `last` the last. Years BC have no sortable form and give None.

    >>> iso_date("27th of July, 1866"), iso_date("1866-07-XX"), iso_date("the 1850s", last=True), iso_date("NONE")
    ('1866-07-27', '1866-07', '1859', None)
    """
    text = " ".join((stated or "").casefold().split())
    if not text or _BC.search(text):
        return None
    if (match := _SPAN.fullmatch(text)) and (final := _last_year(*match.groups())):
        return final if last else match[1]
    if match := _ISO.fullmatch(text) or _COMPACT.fullmatch(text):
        return _date(match[1], match[2], match[3])
    if match := _NUMERIC.fullmatch(text):
        return _day_and_month(match[1], match[3], match[4], day_first=match[2] == ".")
    # A range in words has several dates; the first or the last one counts.
    dates = [(m.start(), m.end(), _date(m[3], MONTHS[m[2]], m[1])) for m in _DAY_FIRST.finditer(text)]
    dates += [(m.start(), m.end(), _date(m[3], MONTHS[m[1]], m[2])) for m in _MONTH_FIRST.finditer(text)]
    for pattern in (_MONTH_ONLY, _DECADE, _ANY_YEAR):
        for m in pattern.finditer(text):
            if not any(start < m.end() and m.start() < end for start, end, _ in dates):
                dates.append((m.start(), m.end(), _coarse(pattern, m, last)))
    certain = [date for _, _, date in sorted(dates, key=lambda span: span[0]) if date]
    return certain[-1 if last else 0] if certain else None


def _last_year(first: str, dash: str, last: str) -> str | None:
    """1868 for 1866-68; None if it is not a range of years, as in 1866-07."""
    if len(last) == 2 and dash in "-/" and int(last) <= 12:
        return None
    year = first[: 4 - len(last)] + last
    return year if year > first else None


def _coarse(pattern: re.Pattern[str], match: re.Match[str], last: bool) -> str | None:
    if pattern is _MONTH_ONLY:
        return _date(match[2], MONTHS[match[1]])
    if pattern is _DECADE:
        return match[1] + ("9" if last else "0")
    return _date(match[1])


def _day_and_month(first: str, second: str, year: str, day_first: bool) -> str | None:
    if day_first or int(first) > 12 or first == second:
        return _date(year, second, first)
    return _date(year, first, second) if int(second) > 12 else _date(year)


def _date(year: str, month: str | int | None = None, day: str | None = None) -> str | None:
    """Return the date up to its first impossible part."""
    if int(year) == 0:
        return None
    month_number = int(month) if month and str(month).isdigit() else 0
    if not 1 <= month_number <= 12:
        return year
    day_number = int(day) if day and day.isdigit() else 0
    if not 1 <= day_number <= calendar.monthrange(int(year), month_number)[1]:
        return f"{year}-{month_number:02d}"
    return f"{year}-{month_number:02d}-{day_number:02d}"


def first_day(stated: str) -> date:
    """Return the day, or the first one of a month or year, of an ISO date such as 1866-07; raises ValueError."""
    return date.fromisoformat(f"{stated}-01-01"[:10] if len(stated) in (4, 7) else stated)


def last_day(stated: str) -> date:
    """Return the day, or the last one of a month or year, of an ISO date; raises ValueError.

    >>> last_day("1868-02"), last_day("1868")
    (datetime.date(1868, 2, 29), datetime.date(1868, 12, 31))
    """
    first = first_day(stated)
    if len(stated) not in (4, 7):
        return first
    month = 12 if len(stated) == 4 else first.month
    return first.replace(month=month, day=calendar.monthrange(first.year, month)[1])


def period(start: str | None, end: str | None) -> tuple[str | None, str | None]:
    """Start and end of a period as ISO 8601, swapped if they are in the wrong order.

    >>> period("1866-07-27", "July 1866")
    ('1866-07-27', '1866-07')
    """
    first, last = iso_date(start), iso_date(end, last=True)
    if first and last:
        common = min(len(first), len(last))
        if first[:common] > last[:common]:
            return last, first
    return first, last
