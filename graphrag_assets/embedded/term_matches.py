"""How far sentences have the terms of a question, themselves or in their surroundings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphrag_assets.embedded.candidate_sentences import Candidate
from graphrag_assets.embedded.questions import Asked

# Weight of a term that occurs only near the sentence.
_FADING = 0.7  # per earlier sentence: "he" and "the ship" refer to names before
_FOLLOWING = 0.3
_HEADING = 0.8
_SURROUNDINGS = 0.15


class TermMatches(NamedTuple):
    """How far candidates have the terms of a question: arrays (candidates, terms) from 0 to 1.

    `has`: the sentence itself; `headings`: its heading; `near`: 1 where the sentence has the term, less where only its
    surroundings do; `passages`: its passage with the headings.
    """

    has: np.ndarray
    headings: np.ndarray
    near: np.ndarray
    passages: np.ndarray


def term_matches(asked: Asked, pool: Sequence[Candidate]) -> TermMatches:
    """The matches of these candidates; weak cues add up as independent ones do: 1 - (1 - a)(1 - b)…"""
    own = [asked.words(candidate.text) for candidate in pool]
    of_headings = [asked.words(candidate.heading) for candidate in pool]
    has, headings = asked.occurrences(own), asked.occurrences(of_headings)
    before, after = np.zeros_like(has), np.zeros_like(has)
    for place, candidate in enumerate(pool):
        if candidate.before is not None:  # a sentence that passages share may have a later one before it
            before[place] = _FADING * np.maximum(has[candidate.before], before[candidate.before])
            after[candidate.before] = np.maximum(after[candidate.before], _FOLLOWING * has[place])
    around = _SURROUNDINGS * asked.occurrences(_passage_words(pool, own))
    missing = [1 - sign for sign in (has, before, after, _HEADING * headings, around)]
    both = [words | heading for words, heading in zip(own, of_headings, strict=True)]
    passages = asked.occurrences(_passage_words(pool, both))
    return TermMatches(has, headings, np.asarray(1 - np.prod(missing, axis=0)), passages)


def _passage_words(pool: Sequence[Candidate], own: Sequence[set[str]]) -> list[set[str]]:
    """For each candidate all words of its passage."""
    passages: dict[int, set[str]] = {}
    for candidate, words in zip(pool, own, strict=True):
        passages.setdefault(candidate.rank, set()).update(words)
    return [passages[candidate.rank] for candidate in pool]
