"""The text of a file's bytes: its encoding by byte order mark, as UTF-8, as a setting names it, or detected."""

import codecs
import contextlib
import functools
import re
import unicodedata
from typing import NamedTuple

from charset_normalizer import from_bytes

from graphrag_assets.contracts.records import ENCODING
from graphrag_assets.reading.source_records import Problem
from graphrag_assets.text.languages import language_of

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
    "cp1252", "cp1251", "cp1250", "cp932", "gb18030", "big5", "cp949", "euc_jp", "cp1256", "cp1254", "cp1253", "cp1255",
    "cp1257", "cp1258", "koi8_r", "koi8_u", "iso8859_2", "cp874", "iso8859_9", "mac_roman",
]  # fmt: skip
_RARE = ("cp1258", "iso8859_9", "mac_roman")
"""Encodings that resemble a far more common one."""
_ESCAPED = ((b"\x1b$B", "iso2022_jp"), (b"\x1b$@", "iso2022_jp"), (b"\x1b$)C", "iso2022_kr"), (b"~{", "hz"))
"""Encodings of seven bits, and how they switch to their characters."""
_BESIDE_WORDS = frozenset("°®™©§€£¥…•·¿¡ºª´、。！？，")
_QUOTES_AND_DASHES = ("Pi", "Pf", "Ps", "Pe", "Pd")
_LETTERS = {
    "ca": "àçèéíïòóúü·", "cs": "áčďéěíňóřšťúůýž", "da": "æøåéü", "de": "äöüßé", "en": "àâæçèéêëïñôöœü",
    "es": "áéíñóúü", "et": "äõöüšž", "fi": "äöåé", "fr": "àâæçéèêëîïôœùûüÿ", "ga": "áéíóú", "hu": "áéíóöőúüű",
    "it": "àèéìòùî", "lt": "ąčęėįšųūž", "nl": "éëïóöüè", "no": "æøåéò", "pl": "ąćęłńóśźż", "pt": "áâãàçéêíóôõúü",
    "ro": "ăâîșțşţ", "sk": "áäčďéíĺľňóôŕšťúýž", "sv": "åäöéü", "tr": "çğıöşüâîû",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}  # fmt: skip
"""Letters beyond ASCII of languages in Latin letters."""
_MIN_LETTERS = 5
_SOUND_PER_BAD = 3
"""Valid characters of several bytes for each byte that is not UTF-8, in a text that is UTF-8 but for errors."""


class UnreadableError(Exception):
    """The file as a whole cannot be read."""

    def __init__(self, error: str, hint: str) -> None:
        super().__init__(error)
        self.problem = Problem(error, hint)


class Decoded(NamedTuple):
    """A file's text and Python's name of the encoding; `doubt`: what may be wrong with it."""

    text: str
    encoding: str
    doubt: Problem | None = None


def decode(data: bytes, otherwise: str = "") -> Decoded:
    """Return the text by the byte order mark, else as UTF-8, else in the encoding `otherwise`, else as detected.

    Single bytes that are not UTF-8 in a text that otherwise is become U+FFFD.

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
            escaped = next((name for mark, name in _ESCAPED if mark in data), None) if data.isascii() else None
            with contextlib.suppress(UnicodeDecodeError):
                return Decoded(data.decode(escaped or encoding), escaped or encoding)
            with contextlib.suppress(UnicodeDecodeError):
                return Decoded(data.decode(), encoding)
        if otherwise:
            encoding = codecs.lookup(otherwise).name
        elif repaired := _utf8_with_errors(data):
            return repaired
        else:
            return _detected(data)
    try:
        return Decoded(data[len(mark) :].decode(encoding), encoding)
    except UnicodeDecodeError as error:
        offset = error.start + len(mark)
        line = data.count(b"\n", 0, offset) + 1
        raise UnreadableError(
            f"not valid {encoding.upper()}: byte {data[offset]:#04x} at offset {offset} (line {line})",
            "Save it as UTF-8, or set GRAPHRAG_TEXT_ENCODING to its encoding.",
        ) from None


def _utf8_with_errors(data: bytes) -> Decoded | None:
    """Return the text as UTF-8 if most of its characters beyond ASCII are valid."""
    text = data.decode(errors="replace")
    bad = text.count("\N{REPLACEMENT CHARACTER}") - data.count("\N{REPLACEMENT CHARACTER}".encode())
    sound = sum(character > "\x7f" for character in text) - bad
    if sound < _SOUND_PER_BAD * bad:
        return None
    place = text.index("\N{REPLACEMENT CHARACTER}")
    line = text.count("\n", 0, place) + 1
    error = f"{bad} byte{'s' if bad > 1 else ''} not valid UTF-8, the first in line {line}: shown as U+FFFD"
    hint = "Save the file as UTF-8, or set GRAPHRAG_TEXT_ENCODING to its encoding."
    return Decoded(text, "utf-8", Problem(error, hint, stage=ENCODING))


def _detected(data: bytes) -> Decoded:
    """Return the text in the likeliest encoding; among equally likely ones in the most common.

    An encoding that puts symbols into words is less likely: those of Central Europe differ in few letters.

    Raises:
        UnreadableError: no encoding fits.
    """
    matches = list(from_bytes(_sample(data), chunk_size=4096, cp_isolation=_DETECTED))
    names = {name for match in matches for name in match.could_be_from_charset} & set(_DETECTED)
    texts = {}
    for name in _DETECTED:
        if name in names:
            with contextlib.suppress(UnicodeDecodeError):
                texts[name] = data.decode(name)
    if not texts:
        raise UnreadableError(
            "looks like binary data, not text (no encoding fits)",
            "Give it the extension of its actual format, or save it as UTF-8.",
        )

    sample = {name: text[:_SAMPLE_BYTES] for name, text in texts.items()}

    @functools.cache
    def rank(name: str) -> tuple[float, ...]:
        likeliest = min((match.chaos, -match.coherence) for match in matches if name in match.could_be_from_charset)
        return (_symbols_in_words(texts[name]), _foreign_letters(sample[name]), *likeliest)

    best, *others = sorted(texts, key=lambda name: (rank(name), _DETECTED.index(name)))
    rivals = [name for name in others if name not in _RARE and rank(name) == rank(best) and texts[name] != texts[best]]
    doubt = None
    if rivals:
        error = f"its encoding is not certain: read as {best}, which {rivals[0]} fits as well"
        hint = "Check the text in the index; if it is wrong, save the file as UTF-8."
        doubt = Problem(error, hint, stage=ENCODING)
    return Decoded(texts[best], best, doubt)


def _foreign_letters(text: str) -> float:
    """Return the share of the letters beyond ASCII that the language of the text does not have.

    Half of them where the language is not known; none where most letters are beyond ASCII, or few are.
    """
    words = re.findall(r"[^\W\d_]+", "\n".join(line for line in text.split("\n") if not line.isascii()))
    letters = [letter for letter in "".join(words).lower() if letter > "\x7f"]
    if len(letters) < _MIN_LETTERS or 2 * len(letters) > len("".join(words)):
        return 0
    alphabet = _LETTERS.get(language_of(" ".join(words)))
    return 0.5 if alphabet is None else sum(letter not in alphabet for letter in letters) / len(letters)


def _symbols_in_words(text: str) -> int:
    """Count the characters beyond ASCII that are no letters and touch one, as in "Wie¶" for "Wieś"."""
    return sum(
        (before.isalpha() or after.isalpha())
        and unicodedata.category(character)[0] in "SPNC"
        and unicodedata.category(character) not in _QUOTES_AND_DASHES
        and character not in _BESIDE_WORDS
        for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False)
        if character > "\x7f"
    )


def _sample(data: bytes) -> bytes:
    """Return the beginning, which may declare an encoding, and the first lines that are not ASCII."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not lines or not line.isascii():
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    return b"".join(lines)
