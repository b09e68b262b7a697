"""Phrases and words of English questions, for rules of grammar over tagged sentences."""

import re
from collections.abc import Sequence

from graphrag_assets.embedded.tagging import TaggedSentence, singular, word_tag
from graphrag_assets.embedded.typing_cues import OCCUPATIONS

AUXILIARY = frozenset(
    ["is", "are", "was", "were", "be", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would"]
)
COPULAS = frozenset(("is", "are", "was", "were"))
_KIN = frozenset(["son", "daughter", "brother", "sister", "wife", "widow", "mother", "father", "husband"])
_KIN |= {"head", "bride", "groom", "twin"}
PEOPLE = frozenset(["man", "woman", "person", "people", "one", "men", "women", "boy", "girl"])
_PHRASE = "nxNAEIHRWmsjJ#c&"  # kinds of words in a noun phrase, after its article


def joined(*parts: str) -> str:
    """The parts that are not empty, with spaces between them, but none before punctuation."""
    return re.sub(r" (?=[?,.])", "", " ".join(part for part in parts if part))


def end_of(tagged: TaggedSentence) -> int:
    """The number of words, without the question mark."""
    end = len(tagged.words)
    while end and not tagged.words[end - 1][-1].isalnum():
        end -= 1
    return end


def span(tagged: TaggedSentence, first: int, last: int) -> str:
    """The text of the words [first, last)."""
    return tagged.wording(first, last) if first < last else ""


def noun_phrase(words: Sequence[str], kinds: str, start: int, end: int) -> int:
    """The end of the noun phrase that begins at `start`, with its article; `start` if there is none."""
    place = start + (kinds[start : start + 1] in ("t", "D"))
    if place > start and kinds[place : place + 1] == "v" and kinds[place + 1 : place + 2] in ("n", "x"):
        place += 1  # "the siphon recorder": a noun that the lexicon has as a verb
    while place < end and kinds[place] in _PHRASE:
        if (
            kinds[place - 1] in "NAE"
            and kinds[place] in "nx"
            and is_office(words[place])
            and words[place + 1 : place + 2] == ["of"]
        ):
            break  # "(was) the Great Eastern captain of"
        place += 1
    return place if place > start + (kinds[start : start + 1] in ("t", "D")) else start


def is_office(word: str) -> bool:
    """Whether a noun names a person by what they do or by whose kin they are: "electrician", "brother", "owner"."""
    word = singular(word.casefold()).rpartition("-")[2]
    if word in OCCUPATIONS or word in _KIN:
        return True
    stem = word[:-2] if word.endswith(("er", "or")) else ""
    return len(stem) > 3 and any(word_tag(stem + end).startswith("VB") for end in ("", "e"))
