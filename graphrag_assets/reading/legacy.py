"""Formats of older office programs: rich text, and doc, ppt and msg, which are OLE files, read with olefile."""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

import olefile

from graphrag_assets.reading.decoding import UnreadableError, decode
from graphrag_assets.reading.markdown import table_of
from graphrag_assets.reading.source_records import (
    NO_TEXT,
    PASSWORD,
    Problem,
    Record,
    document,
    filled,
    slides_record,
)

# --- rich text ------------------------------------------------------------------------------------------

_TOKEN = re.compile(rb"\\([a-zA-Z]+)(-?\d+)? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}]+)")
_CODE_PAGES = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
    255: "cp437",
}  # fmt: skip
_CHARACTERS = {
    **{"par": "\n\n", "sect": "\n\n", "page": "\n\n", "line": "\n", "tab": " ", "emdash": "—", "endash": "–"},
    **{"lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " "},
    **{"~": "\xa0", "_": "-", "-": "", "\n": "\n\n", "\r": "\n\n", "\\": "\\", "{": "{", "}": "}"},
}
_ROW, _CELL = "\x01", "\x02"  # a row of a table, and what parts its cells
_MAX_LEVEL = 6  # body text is of level 9
_PROPERTIES = ("title", "author", "subject", "keywords")
_SKIPPED = frozenset((
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "objdata", "sp", "header", "headerl", "headerr", "headerf",
    "footer", "footerl", "footerr", "footerf", "ftnsep", "ftnsepc", "nonshppict", "template", "filetbl",
    "listtable", "listoverridetable", "revtbl", "xmlnstbl", "themedata", "datastore",
))  # fmt: skip


@dataclass
class _Group:
    """The state within braces; `n_fallback`: characters after a Unicode one, for older programs."""

    target: str = "body"
    code_page: str = "cp1252"
    font: str = ""
    n_fallback: int = 1
    hidden: bool = False


class _RichText:
    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {"body": []}
        self.notes: list[str] = []
        self._bytes = bytearray()
        self._page_of_font: dict[str, str] = {}
        self._default, self._font = "cp1252", ""
        self._cells: list[str] = []

    def read(self, data: bytes) -> None:
        groups, n_skipped = [_Group()], 0
        position = 0
        while token := _TOKEN.search(data, position):
            position = token.end()
            word, number, code, symbol, brace, plain = token.groups()
            group = groups[-1]
            if code and not n_skipped:
                self._bytes.append(int(code, 16))
                continue
            if plain and n_skipped == 0:
                self._bytes += plain.replace(b"\r", b"").replace(b"\n", b"")
                continue
            if code or plain:  # stands for a Unicode character in older programs
                rest = (plain or b"").replace(b"\r", b"").replace(b"\n", b"")
                self._bytes += rest[n_skipped:]
                n_skipped = max(0, n_skipped - (len(rest) or 1))
                continue
            self._flush(group)
            n_skipped = 0
            if brace == b"{":
                groups.append(replace(group))
            elif brace:
                if len(groups) > 1:
                    self._close(groups.pop(), groups[-1])
            elif word == b"u":
                self._add(group, chr(int(number or 0) % 0x10000))
                n_skipped = group.n_fallback
            elif word == b"bin":
                position += max(0, int(number or 0))  # bytes of a picture
            else:
                self._control((word or symbol).decode("latin-1"), int(number) if number else None, group)
        self._flush(groups[-1])

    def _control(self, word: str, number: int | None, group: _Group) -> None:
        if word == "*":
            group.target = "skip" if group.target != "notes" else group.target
        elif word in ("shpinst", "shptxt"):
            group.target = "body"
        elif word == "footnote":
            group.target = "notes"
            self.texts["notes"] = []
        elif word in _SKIPPED:
            group.target = word if word in ("fonttbl", "info") else "skip"
            group.code_page = self._page_of_font.get(self._font, self._default)
        elif word in _PROPERTIES and group.target == "info":
            group.target = word
        elif word == "ansicpg" and number:
            self._default = group.code_page = "mac_roman" if number == 10000 else f"cp{number}"
        elif word == "deff":
            self._font = str(number)
        elif word == "f" and number is not None:
            group.font = str(number)
            group.code_page = self._page_of_font.get(group.font, self._default)
        elif word == "fcharset" and group.target == "fonttbl":
            self._page_of_font[group.font] = _CODE_PAGES.get(number or 0, self._default)
        elif word == "uc":
            group.n_fallback = number or 0
        elif word == "outlinelevel" and number is not None and number < _MAX_LEVEL:
            self._add(group, f"\n\n{'#' * (number + 1)} ")
        elif word == "v":
            group.hidden = number != 0
        elif word == "plain":
            group.hidden, group.code_page = False, self._default
        elif word in ("cell", "nestcell", "row", "nestrow") and group.target == "body":
            self._table(word)
        elif word in _CHARACTERS:
            self._add(group, _CHARACTERS[word])

    def _table(self, word: str) -> None:
        body = self.texts["body"]
        if word.endswith("cell"):
            start = max((n for n, text in enumerate(body) if text.endswith("\n\n")), default=-1) + 1
            self._cells.append(" ".join("".join(body[start:]).split()))
            del body[start:]
        elif self._cells:
            body.append(f"{_ROW}{_CELL.join(self._cells)}\n\n")
            self._cells = []

    def _close(self, group: _Group, parent: _Group) -> None:
        if group.target == "notes" and parent.target == "body":
            self.notes.append(" ".join("".join(self.texts.pop("notes", [])).split()))
            self.texts["body"].append(f"[^{len(self.notes)}]")

    def _flush(self, group: _Group) -> None:
        if self._bytes:
            try:
                text = self._bytes.decode(group.code_page, "replace")
            except LookupError:
                text = self._bytes.decode("cp1252", "replace")
            self._bytes.clear()
            self._add(group, text)

    def _add(self, group: _Group, text: str) -> None:
        if not group.hidden and group.target not in ("skip", "fonttbl", "info"):
            self.texts.setdefault(group.target, []).append(text)


def read_rtf(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a rich text file: paragraphs, tables and notes, each font in its code page."""
    rich = _RichText()
    rich.read(data)
    body = ""
    for is_table, group in groupby(rich.texts["body"], lambda text: text.startswith(_ROW)):
        texts = [*group]
        rows = [text.strip().removeprefix(_ROW).split(_CELL) for text in texts]
        body += f"{table_of(rows)}\n\n" if is_table else "".join(texts)
    body = body.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    paragraphs = [re.sub(r"[ \t]+", " ", paragraph).strip() for paragraph in re.split(r"\n{2,}", body)]
    notes = [f"[^{number}]: {note}" for number, note in enumerate(rich.notes, start=1)]
    about = {name: "".join(rich.texts.get(name, [])).strip() for name in _PROPERTIES}
    yield document("\n\n".join(filter(None, (*paragraphs, *notes))), about)


# --- doc ------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"\x13[^\x13-\x15]*(?:\x14([^\x13-\x15]*))?\x15")
_PARTS = ("text", "notes", "headers", "macros", "comments", "endnotes", "boxes")
_DOC_CHARACTERS = {0x0B: "\n", 0x0C: "\n\n", 0x0D: "\n\n", 0x1E: "-", 0xA0: " ", **dict.fromkeys((1, 5, 8, 0x1F), "")}


def read_doc(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a file of Word 97 to 2003, without codes of fields, headers and comments."""
    with olefile.OleFileIO(io.BytesIO(data)) as file:
        main = file.openstream("WordDocument").read()
        flags = _number(main, 0x0A, 2)
        if flags & 0x0100:
            yield PASSWORD
            return
        pieces = file.openstream("1Table" if flags & 0x0200 else "0Table").read()
        about = _ole_properties(file)
    whole = _text_of_pieces(main, pieces[_number(main, 0x01A2) :][: _number(main, 0x01A6)])
    parts, position = {}, 0
    for number, name in enumerate(_PARTS):
        length = _number(main, 0x4C + 4 * number)
        parts[name] = whole[position : position + length]
        position += length
    text, n_notes = parts["text"], 0
    for notes in (parts["notes"], parts["endnotes"]):
        for note in filter(None, (" ".join(part.split()) for part in re.split(r"\x02", notes))):
            n_notes += 1
            text = text.replace("\x02", f"[^{n_notes}]", 1) + f"\r[^{n_notes}]: {note}"
    text = f"{text}\r{parts['boxes']}"
    while (plain := _FIELD.sub(lambda field: field[1] or "", text)) != text:
        text = plain
    text = re.sub(r"\x07\x07", " |\r", text).replace("\x07", " | ").translate(_DOC_CHARACTERS)
    lines = (re.sub(r"[ \t]+", " ", re.sub(r"[\x00-\x08\x0e-\x1f]", "", line)).strip() for line in text.split("\n"))
    yield document(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), about)


def _number(data: bytes, offset: int, size: int = 4) -> int:
    return int.from_bytes(data[offset : offset + size], "little")


def _text_of_pieces(main: bytes, table: bytes) -> str:
    """Return the text of a document, whose pieces stand at places and in encodings that a table tells."""
    position = 0
    while position < len(table) and table[position] == 1:
        position += 3 + _number(table, position + 1, 2)
    table = table[position + 5 :][: _number(table, position + 1)]
    n = (len(table) - 4) // 12
    starts = [_number(table, 4 * number) for number in range(n + 1)]
    text = []
    for number in range(n):
        place, length = _number(table, 4 * (n + 1) + 8 * number + 2), starts[number + 1] - starts[number]
        if place & 0x40000000:
            start = (place & 0x3FFFFFFF) // 2
            text.append(main[start : start + length].decode("cp1252", "replace"))
        else:
            text.append(main[place : place + 2 * length].decode("utf-16-le", "replace"))
    return "".join(text)


def _ole_properties(file: olefile.OleFileIO) -> dict[str, str]:
    about, values = file.get_metadata(), {}
    for name in _PROPERTIES:
        value = getattr(about, name, None)
        if isinstance(value, bytes) and value.strip():
            try:
                values[name] = value.decode(f"cp{about.codepage}" if about.codepage not in (None, 65001) else "utf-8")
            except (LookupError, UnicodeError):
                values[name] = value.decode("cp1252", "replace")
    return values


# --- ppt ------------------------------------------------------------------------------------------------

_CONTAINER = 0xF
_LIST, _SLIDE_PERSIST, _NOTES_ATOM, _SHAPE, _PLACEHOLDER = 4080, 1011, 1009, 0xF004, 3011
_SLIDES_LIST, _NOTES_LIST = 0, 2
_TEXT_TYPE, _UTF16_TEXT, _BYTES_TEXT, _OUTLINE_TEXT = 3999, 4000, 4008, 3998
_TITLES = (0, 6)
"""Types of texts."""
_DATES_AND_FOOTERS = (7, 8, 9, 10)
"""Kinds of placeholders."""
_ENCRYPTED = 0xF3D1C4DF
_Part = tuple[int, int, bytes]
"""The type of a record, its flags with the instance, and its content."""
_SlideText = tuple[int, str]
"""The type of a text, and the text."""


def read_ppt(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a file of PowerPoint 97 to 2003: its slides in their order, and the speaker's notes.

    Follows the directory of the last edit ([MS-PPT] 2.1.2): neither older versions of a slide nor masters are read.
    """
    with olefile.OleFileIO(io.BytesIO(data)) as file:
        user, stream = file.openstream("Current User").read(), file.openstream("PowerPoint Document").read()
        about = _ole_properties(file)
    if _number(user, 12) == _ENCRYPTED:
        yield PASSWORD
        return
    places, document_id = _last_edit(stream, _number(user, 16))
    lists = {flags >> 4: part for kind, flags, part in _parts(_part(stream, places[document_id])) if kind == _LIST}
    notes: dict[int, list[str]] = {}
    for page, _, _ in _pages(lists.get(_NOTES_LIST, b"")):
        parts = list(_parts(_part(stream, places[page])))
        slide = next(_number(part, 0) for kind, _, part in parts if kind == _NOTES_ATOM)
        notes[slide] = [f"Notes: {text}" for _, text in _texts(parts, []) if text]
    texts = []
    for page, slide, outline in _pages(lists.get(_SLIDES_LIST, b"")):
        shapes = _texts(_parts(_part(stream, places[page])), outline)
        paragraphs = [f"## {' '.join(text.split())}" if kind in _TITLES else text for kind, text in shapes]
        texts.append("\n\n".join([*paragraphs, *notes.get(slide, ())]))
    yield slides_record(texts, about)


def _last_edit(stream: bytes, offset: int) -> tuple[dict[int, int], int]:
    """Return where the parts of a presentation stand in their last version, by number, and the document's number."""
    places: dict[int, int] = {}
    document_id, edits = _number(stream, offset + 24), set[int]()
    while offset and offset not in edits:
        edits.add(offset)
        directory, position = _part(stream, _number(stream, offset + 20)), 0
        while position < len(directory):
            first, n = _number(directory, position) & 0xFFFFF, _number(directory, position) >> 20
            for number in range(n):
                places.setdefault(first + number, _number(directory, position + 4 + 4 * number))
            position += 4 + 4 * n
        offset = _number(stream, offset + 16)
    return places, document_id


def _part(stream: bytes, offset: int) -> bytes:
    """Return the content of the record at a place."""
    return stream[offset + 8 : offset + 8 + _number(stream, offset + 4)]


def _parts(content: bytes) -> Iterator[_Part]:
    """Yield the records in a container."""
    position = 0
    while position + 8 <= len(content):
        yield _number(content, position + 2, 2), _number(content, position, 2), _part(content, position)
        position += 8 + _number(content, position + 4)


def _pages(content: bytes) -> list[tuple[int, int, list[_SlideText]]]:
    """Return the part of each slide of a list, the slide's number, and its texts that stand in the list."""
    pages: list[tuple[int, int, list[_Part]]] = []
    for kind, flags, part in _parts(content):
        if kind == _SLIDE_PERSIST:
            pages.append((_number(part, 0), _number(part, 12), []))
        elif pages:
            pages[-1][2].append((kind, flags, part))
    return [(page, slide, _texts(parts, [])) for page, slide, parts in pages]


def _texts(parts: Iterable[_Part], outline: list[_SlideText]) -> list[_SlideText]:
    """Return the texts of records in their order; a shape may refer to one of the outline by its number."""
    texts: list[_SlideText] = []
    text_type = 0
    for kind, flags, part in parts:
        if kind == _TEXT_TYPE:
            text_type = _number(part, 0)
        elif kind == _OUTLINE_TEXT:
            texts += outline[_number(part, 0) :][:1]
        elif kind in (_UTF16_TEXT, _BYTES_TEXT):
            text = part.decode("utf-16-le" if kind == _UTF16_TEXT else "latin-1", "replace")
            texts.append((text_type, re.sub(r"[\r\x0b]", "\n", text).strip()))
        elif flags & _CONTAINER == _CONTAINER and not (kind == _SHAPE and _is_date_or_footer(part)):
            texts += _texts(_parts(part), outline)
    return texts


def _is_date_or_footer(shape: bytes) -> bool:
    data = (inner for _, _, part in _parts(shape) for inner in _parts(part))
    return any(kind == _PLACEHOLDER and part[4] in _DATES_AND_FOOTERS for kind, _, part in data)


# --- msg ------------------------------------------------------------------------------------------------

_MSG_FIELDS = {
    "0037": "subject",
    "0C1A": "name",
    "5D01": "address",
    "0C1F": "sender",
    "0E04": "to",
    "0E03": "cc",
    "1000": "body",
}
_SENT, _RECEIVED = 0x0039, 0x0E06
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def read_msg(data: bytes) -> Iterator[Record | Problem]:
    """Yield the one document of a mail of Outlook: what the sender wrote."""
    from graphrag_assets.reading.mail import latest_message
    from graphrag_assets.reading.web import mail_text

    with olefile.OleFileIO(io.BytesIO(data)) as file:
        fields = {name: _msg_text(file, key) for key, name in _MSG_FIELDS.items()}
        html = _msg_text(file, "1013")
        attached = [part[0] for part in file.listdir(streams=False, storages=True) if part[0].startswith("__attach")]
        names = [_msg_text(file, "3707", f"{part}/") or _msg_text(file, "3704", f"{part}/") for part in {*attached}]
        properties = file.openstream("__properties_version1.0").read()[32:]
    times = {_number(properties, n + 2, 2): _number(properties, n + 8, 8) for n in range(0, len(properties) - 15, 16)}
    sent = times.get(_SENT) or times.get(_RECEIVED)
    body = latest_message(fields["body"] or (mail_text(html) if html else ""))
    address = fields["address"] or fields["sender"]
    sender = f"{fields['name']} <{address}>" if fields["name"] and "@" in address else ""
    metadata = filled(
        {
            "from": sender or fields["name"] or address,
            "to": fields["to"],
            "cc": fields["cc"],
            "attachments": sorted(filter(None, names)),
        }
    )
    date = (_EPOCH + timedelta(microseconds=sent // 10)).date().isoformat() if sent and sent < 3 * 10**17 else None
    yield Record(body, fields["subject"] or None, date=date, metadata=metadata) if body.strip() else NO_TEXT


def _msg_text(file: olefile.OleFileIO, key: str, folder: str = "") -> str:
    """Return a property of a message, in Unicode or in bytes of whatever encoding."""
    for kind in ("001F", "001E", "0102"):
        name = f"{folder}__substg1.0_{key}{kind}"
        if file.exists(name):
            data = file.openstream(name).read()
            try:
                return (data.decode("utf-16-le", "replace") if kind == "001F" else decode(data).text).strip("\0 ")
            except UnreadableError:
                return data.decode("latin-1")
    return ""
