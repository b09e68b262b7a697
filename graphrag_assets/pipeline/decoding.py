"""The text of a file's bytes: its encoding by byte order mark, as UTF-8, as a setting names it, or detected."""

import codecs
import contextlib
from typing import NamedTuple

from charset_normalizer import CharsetMatch, from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_PROBE = 8192  # as git does
_SAMPLE_BYTES = 20_000
# Encodings of text in files and on the web, the more common first. charset-normalizer knows 90, and takes short texts
# for rare ones such as those of old Macintosh systems.
_DETECTED = [
    "cp1252",
    "cp1251",
    "cp1250",
    "cp932",
    "gb18030",
    "big5",
    "cp949",
    "euc_jp",
    "cp1256",
    "cp1254",
    "cp1253",
    "cp1255",
    "cp1257",
    "cp1258",
    "koi8_r",
    "koi8_u",
    "iso8859_2",
]


class UnreadableError(Exception):
    """The file as a whole cannot be read. `error` and `hint` are for index_errors."""

    def __init__(self, error: str, hint: str) -> None:
        super().__init__(error)
        self.error, self.hint = error, hint


class Decoded(NamedTuple):
    """A file's text and Python's name of the encoding."""

    text: str
    encoding: str


def decode(data: bytes, otherwise: str = "") -> Decoded:
    """The text by the byte order mark, else as UTF-8, else in the encoding `otherwise`; if that is empty, as detected.

    Raises:
        UnreadableError: it is binary data, or not in the encoding.
    """
    mark, encoding = next(((m, e) for m, e in _BOMS if data.startswith(m)), (b"", "utf-8"))
    if not mark:
        wide = bool(otherwise) and b"\0" in "a".encode(otherwise)
        if not wide:
            if b"\0" in data[:_BINARY_PROBE]:
                raise UnreadableError(
                    "looks like binary data, not text (it has NUL bytes)",
                    "Give it the extension of its actual format, or save it as UTF-8 text.",
                )
            with contextlib.suppress(UnicodeDecodeError):
                return Decoded(data.decode(), encoding)
        encoding = codecs.lookup(otherwise).name if otherwise else _detected(data)
    try:
        return Decoded(data[len(mark) :].decode(encoding), encoding)
    except UnicodeDecodeError as error:
        offset = error.start + len(mark)
        line = data.count(b"\n", 0, offset) + 1
        raise UnreadableError(
            f"not valid {encoding.upper()}: byte {data[offset]:#04x} at offset {offset} (line {line})",
            "Save it as UTF-8, or set GRAPHRAG_TEXT_ENCODING to its encoding.",
        ) from None


def _detected(data: bytes) -> str:
    """The likeliest encoding; among equally likely ones the most common."""
    matches = list(from_bytes(_sample(data), chunk_size=4096, cp_isolation=_DETECTED))
    if not matches:
        raise UnreadableError(
            "looks like binary data, not text (no encoding fits)",
            "Give it the extension of its actual format, save it as UTF-8, or set GRAPHRAG_TEXT_ENCODING.",
        )

    def rank(match: CharsetMatch) -> tuple[float, float]:
        return match.chaos, -match.coherence

    best = min(map(rank, matches))
    likeliest = {name for match in matches if rank(match) == best for name in match.could_be_from_charset}
    return next(name for name in _DETECTED if name in likeliest)


def _sample(data: bytes) -> bytes:
    """The beginning, which may declare an encoding, and the first lines that are not ASCII."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not lines or not line.isascii():
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    return b"".join(lines)
