"""Calendars and address cards: a document for each event or person, a line for each of its properties."""

import re
from collections.abc import Iterator
from quopri import decodestring
from typing import NamedTuple

from graphrag_assets.reading.decoding import decode
from graphrag_assets.reading.source_records import Place, Problem, Record, filled

_BEGIN = re.compile(r"^BEGIN:(VEVENT|VTODO|VJOURNAL|VCARD)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)")
_NAME = re.compile(r"CN=(?:\"([^\"]*)\"|([^;:]*))", re.IGNORECASE)
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?))?")
_ESCAPE = re.compile(r"\\([\\,;nN])")
_LABELS = {
    **{"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "LOCATION": "Place", "ORGANIZER": "Organizer"},
    **{"ATTENDEE": "Attendee", "DESCRIPTION": "Description", "CATEGORIES": "Categories", "STATUS": "Status"},
    **{"RRULE": "Repeats", "COMMENT": "Comment", "CONTACT": "Contact", "NICKNAME": "Nickname", "ORG": "Organization"},
    **{"TITLE": "Position", "ROLE": "Role", "EMAIL": "Email", "TEL": "Telephone", "ADR": "Address", "URL": "Web"},
    **{"BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "NOTE": "Note", "RELATED": "Related"},
}
_STRUCTURED = ("N", "ADR", "ORG")
_NO_TEXT = Problem("no event or person was found in the file", "Check whether the file is complete.")


class _Property(NamedTuple):
    name: str
    parameters: str
    value: str


def read_cards(text: str) -> Iterator[Record | Problem]:
    """Yield the document of each event, task or person of a file; pictures and keys are left out."""
    text = re.sub(r"=\n(?=[^\n]*=[0-9A-F]{2})", "", text)  # lines of quoted-printable text, of vCard 2.1
    parts = _BEGIN.split(re.sub(r"\n[ \t]", "", text))
    kinds_and_bodies = [*zip(parts[1::2], parts[2::2], strict=True)]
    for number, (kind, body) in enumerate(kinds_and_bodies, start=1):
        body = re.sub(r"(?ims)^BEGIN:VALARM.*?^END:VALARM[^\n]*", "", body)
        block = re.split(rf"^END:{kind}", body, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE)[0]
        properties = [_property(line) for line in map(_LINE.fullmatch, block.split("\n")) if line]
        yield _record(properties, number if len(kinds_and_bodies) > 1 else None)
    if not kinds_and_bodies:
        yield _NO_TEXT


def _property(line: re.Match[str]) -> _Property:
    name, parameters, value = line[1].upper(), line[2], line[3].strip()
    if "QUOTED-PRINTABLE" in parameters.upper():
        value = decode(decodestring(value)).text
    if name in _STRUCTURED:
        value = ", ".join(filter(None, map(str.strip, re.split(r"(?<!\\)[;]", value))))
    value = _ESCAPE.sub(lambda mark: "\n" if mark[1] in "nN" else mark[1], value)
    person = _NAME.search(parameters)
    if person and name in ("ATTENDEE", "ORGANIZER"):
        value = f"{(person[1] or person[2]).strip()} <{re.sub('(?i)^mailto:', '', value)}>"
    return _Property(name, parameters, re.sub("(?i)^(?:mailto|tel):", "", value))


def _record(properties: list[_Property], number: int | None) -> Record | Problem:
    values = {one.name: one.value for one in reversed(properties)}
    title = values.get("SUMMARY") or values.get("FN") or values.get("N")
    lines = [title or ""]
    for one in properties:
        label, value = _LABELS.get(one.name), one.value
        if label and value and not re.search("ENCODING=B|BASE64", one.parameters, re.IGNORECASE):
            stamp = _STAMP.fullmatch(value)
            lines.append(f"{label}: {_time(stamp) if stamp else ' '.join(value.split())}")
    text = "\n".join(filter(None, lines))
    if not text:
        return Problem(_NO_TEXT.error, _NO_TEXT.hint, number)
    start = _STAMP.match(values.get("DTSTART", values.get("DUE", "")))
    date = "-".join(start.group(1, 2, 3)) if start else None
    places = (Place(0, "time", _time(start)),) if start else ()
    people = [one.value for one in properties if one.name in ("ATTENDEE", "ORGANIZER")]
    metadata = filled({"people": people, "place": values.get("LOCATION"), "uid": values.get("UID")})
    return Record(text, title, number, values.get("UID"), metadata, date=date, places=places)


def _time(stamp: re.Match[str]) -> str:
    day = "-".join(stamp.group(1, 2, 3))
    return f"{day} {stamp[4]}:{stamp[5]}{' UTC' if stamp[6] else ''}" if stamp[4] else day
