"""Concepts of tagged sentences: common-noun phrases that are specific enough to be entities."""

import re
from collections import Counter
from collections.abc import Iterable

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.names import Mention
from graphrag_assets.embedded.tagging import TaggedSentence, is_generic_noun, known_word, singular, word_list

_CONCEPT = re.compile(r"[JnE]*n")
_HYPHEN_STOPS = word_list("cue_words:hyphen stops")


def phrase_counts(sentences: Iterable[TaggedSentence]) -> Counter[str | tuple[str, str]]:
    """Count of the unit's words and pairs of adjacent words."""
    counts: Counter[str | tuple[str, str]] = Counter()
    for sentence in sentences:
        counts.update(sentence.words)
        counts.update(zip(sentence.words, sentence.words[1:], strict=False))
    return counts


def concepts_in(
    sentence: TaggedSentence, kinds: str, names: list[Mention], frequent: Counter[str | tuple[str, str]]
) -> list[Mention]:
    """Common-noun phrases of a sentence that are specific enough to be an entity, in order.

    `frequent` counts the unit's lower-case words and pairs of words (see `phrase_counts`).
    """
    if sentence.heading:
        return []
    masked = list(kinds)
    for name in names:
        masked[name.first : name.last] = "Z" * (name.last - name.first)
    concepts = []
    for match in _CONCEPT.finditer("".join(masked)):
        first, last = match.span()
        while first < last - 1 and kinds[first] == "E":
            first += 1
        if first and masked[first - 1] == "j" and frequent[sentence.words[first - 1], sentence.words[first]] > 1:
            first -= sentence.words[first - 1] not in word_list("generic_words:adjectives")
        last_word = sentence.words[last - 1]
        if singular(last_word.rsplit("-", 1)[-1]) in word_list("generic_roles") or last - first > 4:
            continue
        if last - first == 1 and not _specific(last_word, frequent):
            continue
        title = sentence.wording(first, last)
        if title.isascii() or title[0].islower():
            concepts.append(Mention(title, first, last, cues.CONCEPT, 0))
    return concepts


def _specific(word: str, frequent: Counter[str | tuple[str, str]]) -> bool:
    """Return a single noun is a concept when hyphenated ("gutta-percha"), or rare and recurring ("galvanometer")."""
    if not word.isascii() or not word.islower():
        return False
    if "-" in word:
        parts = word.split("-")
        return all(len(part) > 2 and not is_generic_noun(part) and part not in _HYPHEN_STOPS for part in parts)
    return len(word) > 6 and frequent[word] > 1 and not known_word(word)
