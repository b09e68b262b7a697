"""The names, numbers and dates of an answer that stand in what it cites."""

import re
from collections.abc import Iterable

from graphrag_assets.text.words import sentences

_WORD = re.compile(r"[^\W_]+(?:[.,’'-][^\W_]+)*")
_MARK = re.compile(r"^\s*(?:[-*•…#]+|\d+\.)\s+")
_MONTHS = {
    *("january", "february", "march", "april", "june", "july", "august", "september", "october", "november"),
    "december",
}
"""May is left out: it begins sentences as a verb."""
_YEAR = re.compile(r"(?:1\d|20)\d\d(?:[’']s)?$")


def facts_in(text: str) -> dict[str, set[str]]:
    """The names, numbers and dates of a text, in small letters.

    Names are words in capitals other than the first of a sentence, dates are years and months, numbers all other words
    with a digit.
    """
    found: dict[str, set[str]] = {"names": set(), "numbers": set(), "dates": set()}
    for line in text.splitlines():
        line = _MARK.sub("", line)
        for span in sentences(line):
            for place, word in enumerate(_WORD.findall(line[span.start : span.end])):
                plain = _plain(word)
                if any(character.isdigit() for character in word):
                    found["dates" if _YEAR.match(word) else "numbers"].add(plain)
                elif word[0].isupper() and place:
                    found["dates" if plain in _MONTHS else "names"].add(plain)
    return found


def _plain(word: str) -> str:
    return re.sub(r"['’]s$", "", word).replace(",", "").casefold()


def words_of(texts: Iterable[str]) -> set[str]:
    """The words of texts as facts are compared, also those within compounds."""
    words = {_plain(word) for text in texts for word in _WORD.findall(text)}
    return words | {part for word in words for part in re.split(r"[-’']", word)}


def supported_facts(statement: str, cited: Iterable[str]) -> dict[str, tuple[int, int]]:
    """For names, numbers and dates: how many of a statement stand in the cited texts, and how many it has."""
    known = words_of(cited)
    return {
        kind: (sum(_stands(word, known) for word in words), len(words)) for kind, words in facts_in(statement).items()
    }


def _stands(word: str, known: set[str]) -> bool:
    return word in known or all(part in known for part in re.split(r"[-’']", word) if part)
