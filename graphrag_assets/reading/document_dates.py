"""The date of a document: as its file states it, or as its name or the head of its text does."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import Any

from graphrag_assets.text.iso_dates import first_day, iso_date

FIELDS = (
    *("document_date", "date", "published", "publisheddate", "publishedat", "pubdate", "issued", "sent", "created"),
    *("createdat", "createddate", "creationdate", "datetime", "timestamp", "time"),
)
"""Columns, fields of front matter and of metadata that hold the date, the likelier first, unless a setting names one.

Names may differ in case, and in dashes and underscores.
"""

_EPOCH = re.compile(r"1[0-9]{9}(?:[0-9]{3}|\.\d+)?")
_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?")
_IN_NAME = re.compile(r"(?<!\d)(?:(\d{4})([-_.])(\d\d)\2(\d\d)|((?:19|20)\d\d)(\d\d)(\d\d))(?!\d)")

_HEAD_LINES, _LONGEST_LINE = 12, 60
_DATE_LINE = re.compile(
    r"(?:(?:date|dated|datum|fecha|stand|issued)\s*:?|(?:[^\W\d_][\w.'’-]*[ ]?){1,4},)?\s*(?:the|den|le|el|of)?\s*"
    r"(\d{1,2}(?:st|nd|rd|th)?\.?\s(?:de\s)?[^\W\d_]{3,}\.?,?\s(?:de\s)?\d{4}|[^\W\d_]{3,}\.?\s\d{1,2}(?:st|nd|rd|th)?,\s\d{4}"
    r"|\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{4})\.?",
    re.IGNORECASE,
)
"""A line that is a date, alone or after a place, a day of the week or the word "date"."""


def date_of(stated: str | None) -> date | None:
    """Return the day that a text states; None if it states none for certain, as 03/04/2021 does.

    A year or a month alone, in digits, is its first day.

    >>> date_of("Sat, 03 Apr 2021 10:00:00 GMT"), date_of("1866-07")
    (datetime.date(2021, 4, 3), datetime.date(1866, 7, 1))
    """
    text = (stated or "").strip()
    iso = iso_date(text) or ""
    is_certain = len(iso) == len("YYYY-MM-DD") or (_YEAR_OR_MONTH.fullmatch(text) and iso == text)
    return first_day(iso) if is_certain else None


def first_date(stated: Iterable[object]) -> str | None:
    """Return the first of the values that states a date, else the first value at all, as texts."""
    texts = [text for value in stated if isinstance(value, str | int | float | date) and (text := _written(value))]
    return next((text for text in texts if date_of(text)), texts[0] if texts else None)


def _written(value: str | float | date) -> str:
    """Return a date as it is written; of seconds or milliseconds since 1970 the day."""
    text = str(value).strip()
    if _EPOCH.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC).date().isoformat()
    return text


def in_fields(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the date in fields of these names, else in those of the field `metadata`."""
    metadata = fields.get("metadata")
    places = [fields, *([metadata] if isinstance(metadata, Mapping) else [])]
    by_key = [{_key(str(name)): value for name, value in reversed([*place.items()])} for place in places]
    return first_date(place.get(_key(name)) for place in by_key for name in names)


def _key(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def in_head(text: str) -> date | None:
    """Return the date that stands as a line of its own in the head of a letter or report; None if other days follow so.

    >>> in_head("Foundry Lane, Stennis\\nStennis, 25 April 2025\\n\\nDear Ms Marsh")
    datetime.date(2025, 4, 25)
    """
    lines = [line.strip(" \t*_#") for line in text.splitlines() if line.strip()]
    date_lines = [(place, match[1]) for place, line in enumerate(lines) if (match := _dated(line))]
    days = {date_of(re.sub(r"\bde ", "", stated)) for _, stated in date_lines}
    return days.pop() if date_lines and date_lines[0][0] < _HEAD_LINES and len(days) == 1 else None


def _dated(line: str) -> re.Match[str] | None:
    is_short = len(line) <= _LONGEST_LINE and line[-2:-1].isdigit()
    return _DATE_LINE.fullmatch(line) if is_short else None


def in_name(path: str) -> date | None:
    """Return the first date in a file's name: 2021-04-03, 2021_04_03, 2021.04.03 or 20210403."""
    for match in _IN_NAME.finditer(PurePosixPath(path).name):
        year, _, month, day, *compact = match.groups()
        try:
            return date.fromisoformat("-".join(compact if year is None else (year, month, day)))
        except ValueError:
            continue
    return None
