"""Abbreviations: which short name stands for which longer one, and where a text says so."""

import re
from collections.abc import Iterable

_PARENTHESIS = re.compile(r"\(([A-Z0-9][A-Za-z0-9&.-]{1,9})\)")
_WORD = re.compile(r"[^\W_]+")
_QUALIFIED = re.compile(r"(.+) \(([^() ]{2,10})\)$")
SMALL = (
    "a", "an", "and", "&", "de", "der", "des", "di", "du", "e", "et", "for", "für", "in", "of", "on", "the", "und", "y",
)  # fmt: skip
_DIGITS = {"two": "2", "three": "3", "four": "4", "five": "5"}
MIN_LENGTH = 3
"""Of an abbreviation that no text explains: two letters fit too many names."""


def initials_fit(short: str, name: str) -> bool:
    """Whether `short` is made of the first letters of the name's words; small words and parts of compounds may lack.

    >>> initials_fit("TOTP", "Time-based One-Time Password"), initials_fit("2FA", "Two-Factor Authentication")
    (True, True)
    >>> initials_fit("USA", "United States of America"), initials_fit("UNO", "United Nations")
    (True, False)
    """
    letters, words = _letters(short), name.casefold().split()
    if len(letters) < 2 or len(words) < 2:
        return False
    ends = {0}  # numbers of letters that the words so far can stand for
    for place, word in enumerate(words):
        without = ends if place and word in SMALL else set()
        for number, part in enumerate(_WORD.findall(word)):
            taken = {end + 1 for end in ends if letters[end : end + 1] in (part[0], _DIGITS.get(part))}
            ends = ends | taken if number else taken
        ends = ends | without
    return len(letters) in ends


def count_initials(name: str) -> range:
    """How many letters an abbreviation of the name may have by `initials_fit`."""
    words = name.casefold().split()
    needed = sum(word not in SMALL for word in words)
    return range(needed, sum(len(_WORD.findall(word)) for word in words) + 1)


def may_abbreviate(short: str, name: str) -> bool:
    """Whether a text that has `short` in parentheses after the name may mean it as its abbreviation.

    Its letters stand in the name in order, the first one at the beginning, and as many begin words as not.

    >>> may_abbreviate("IBM", "International Business Machines Corporation"), may_abbreviate("film", "Ed Wood")
    (True, False)
    >>> may_abbreviate("INE", "International Business")
    False
    """
    letters, name = _letters(short), name.casefold()
    if initials_fit(short, name):
        return True
    if len(name.split()) < 2 or not letters or letters[0] != name[0] or len(letters) < 2:
        return False
    place, initials = 0, 0
    for letter in letters:
        begins = re.compile(rf"\b{re.escape(letter)}").search(name, place)
        position = begins.start() if begins else name.find(letter, place)
        if position < 0:
            return False
        initials += begins is not None
        place = position + 1
    return initials * 2 > len(letters)


def _letters(short: str) -> str:
    return "".join(_WORD.findall(short.casefold()))


def split_abbreviation(name: str) -> tuple[str, str] | None:
    """Return a name and the abbreviation in parentheses at its end, if it is one.

    >>> split_abbreviation("Python Software Foundation (PSF)"), split_abbreviation("Mercury (planet)")
    (('Python Software Foundation', 'PSF'), None)
    """
    match = _QUALIFIED.match(name)
    return (match[1], match[2]) if match and may_abbreviate(match[2], match[1]) else None


def stated_abbreviations(text: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names that the text has with an abbreviation in parentheses, each with it.

    >>> stated_abbreviations("The Python Software Foundation (PSF) paid.", ["Python Software Foundation"])
    [('Python Software Foundation', 'PSF')]
    """
    stated = [
        (match[1], text[: match.start()].rstrip()) for match in _PARENTHESIS.finditer(text) if _is_short(match[1])
    ]
    abbreviations = {
        (name, short): None
        for short, before in stated
        for name in names
        if " " in name and before.endswith(name) and may_abbreviate(short, name)
    }
    return list(abbreviations)


def _is_short(word: str) -> bool:
    return sum(c.isupper() or c.isdigit() for c in word) > 1 and not word.isdigit()
