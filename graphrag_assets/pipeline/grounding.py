"""Whether the names of an extraction by a model stand in the text that it read."""

import re
from dataclasses import replace

from graphrag_assets.contracts.records import UnitExtraction
from graphrag_assets.text.words import has_unspaced_script

_WORD = re.compile(r"[^\W_]+")
_SAME_LETTERS = 4  # forms of a word differ after them, in most languages that inflect names


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands literally in a text; white space is equal to other white space."""
    return " ".join(name.split()) in " ".join(text.split())


def grounded(found: UnitExtraction, text: str) -> UnitExtraction:
    """`found` with the names of entities that `text` does not have among its losses.

    A text has a name in other forms too: most of its words are there with the same first letters.
    """
    absent = [entity.title for entity in found.entities if not stands_in(entity.title, text)]
    beginnings = _beginnings(text) if absent else frozenset()
    ungrounded = [name for name in absent if not _mostly_in(_beginnings(name), beginnings, text)]
    if not ungrounded:
        return found
    return replace(found, losses=replace(found.losses, ungrounded=tuple(ungrounded)))


def _mostly_in(words: frozenset[str], beginnings: frozenset[str], text: str) -> bool:
    """Whether more than half of the words of a name are in a text; in scripts without spaces, of its characters."""
    if any(has_unspaced_script(word) for word in words):
        characters = "".join(words)
        return 2 * sum(character in text for character in characters) > len(characters)
    return 2 * len(words & beginnings) > len(words)


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(word[:_SAME_LETTERS] for word in _WORD.findall(text.casefold()))
