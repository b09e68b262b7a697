"""LaTeX, prepared for kreuzberg: without comments, with the macros and accents that it leaves out."""

import re
import unicodedata

_COMMENT = re.compile(r"(?<!\\)%[^\n]*(?:\n|\Z)")
_MACRO = re.compile(
    r"\\(?:(?:re|provide)?newcommand\*?|def)\s*\{?\\([A-Za-z]+)\}?\s*\{((?:[^{}]|\{[^{}]*\})*)\}", re.MULTILINE
)
_ACCENT = re.compile(r"\\([\"'`^~=.]|[Hcuvrkd](?![A-Za-z]))\s*(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))")
_MARKS = {
    **{'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304", ".": "\u0307"},
    **{"H": "\u030b", "c": "\u0327", "u": "\u0306", "v": "\u030c", "r": "\u030a", "k": "\u0328", "d": "\u0323"},
}
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "oe": "œ"}
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])(?:\{{\}}|\s)?")
_ASIDE = re.compile(r"\\(?:label|thanks|index|vspace|hspace|pagestyle|thispagestyle)\*?\{(?:[^{}]|\{[^{}]*\})*\}")
_MAX_ROUNDS = 3


def prepared(text: str) -> str:
    """Return LaTeX with its macros without arguments expanded, and as a document if it is a part of one."""
    text = _COMMENT.sub(
        lambda comment: "\n" if text[comment.end() : comment.end() + 1] in ("\\", "\n", "") else " ", text
    )
    macros = {name: words for name, words in _MACRO.findall(text) if "#" not in words}
    text = _ASIDE.sub("", _MACRO.sub("", text))
    for _ in range(_MAX_ROUNDS if macros else 0):  # macros may name others
        text = re.sub(
            rf"\\({'|'.join(map(re.escape, macros))})(?![A-Za-z])(?:\{{\}})?", lambda macro: macros[macro[1]], text
        )
        if len(text) > 10_000_000:
            break
    text = _LETTER.sub(lambda letter: _LETTERS[letter[1]], _ACCENT.sub(_accented, text))
    text = re.sub(r"(?<!\\)~", " ", text).replace(r"\and", ", ")
    return (
        text
        if r"\begin{document}" in text
        else f"\\documentclass{{article}}\n\\begin{{document}}\n{text}\n\\end{{document}}"
    )


def _accented(accent: re.Match[str]) -> str:
    letter = (accent[2] or accent[3]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _MARKS[accent[1]])
