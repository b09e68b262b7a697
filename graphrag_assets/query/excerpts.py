"""Excerpts of passages that do not fit a context: the sentences that cover most of the question."""

from collections.abc import Sequence

import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.query.retrieval import KnownTerms, Question, known_terms
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import UNKNOWN, stems
from graphrag_assets.text.words import fold, search_words, sentences

MAX_SENTENCES = 3
GAP = " … "


def excerpts(reader: Reader, question: Question, passages: Sequence[tuple[str, str]]) -> list[str]:
    """Excerpts of passages (text, language); the whole text of one without a word of the question.

    A sentence scores the rarity of its words of the question that no chosen sentence has yet. Sentences keep their
    order; an ellipsis marks a gap between them.
    """
    known = known_terms(reader, question).get("text_unit")
    if known is None:
        return [text for text, _ in passages]
    parts = [[text[s.start : s.end].strip() for s in sentences(text, language)] for text, language in passages]
    words = search_words(pl.Series([part for of_text in parts for part in of_text], dtype=pl.String)).to_list()
    found, start = [], 0
    for (text, language), of_text in zip(passages, parts, strict=True):
        of_sentences = words[start : start + len(of_text)]
        start += len(of_text)
        # The same rule as for the terms of the text: the main language if its own is unknown.
        stemmed = language if language in reader.languages else next(iter(reader.languages), UNKNOWN)
        asked = _asked_words(of_sentences, stemmed, known)
        found.append(_joined(of_text, _chosen([asked.keys() & set(words) for words in of_sentences], asked)) or text)
    return found


def _asked_words(sentences: list[list[str]], language: str, known: KnownTerms) -> dict[str, tuple[int, float]]:
    """The words of the sentences that match a word of the question: its index, and its rarity."""
    asked = {term: (word, rarity) for term, word, rarity in zip(known.terms, known.words, known.rarity, strict=True)}
    words = list({word for of_sentence in sentences for word in of_sentence})
    hashed = [number_of(f"text_unit {fold(stem)}") for stem in stems(words, language)]
    return {word: asked[number] for word, number in zip(words, hashed, strict=True) if number in asked}


def _chosen(sentences: list[set[str]], asked: dict[str, tuple[int, float]]) -> list[int]:
    """The indices of the sentences (each given by its matching words) that together cover most of the question."""
    rarity = [dict(sorted(asked[word] for word in words)) for words in sentences]  # of a word, its rarest term
    chosen: list[int] = []
    covered: set[int] = set()
    while len(chosen) < MAX_SENTENCES:
        gains = [sum(r for word, r in found.items() if word not in covered) for found in rarity]
        place = max(range(len(gains)), key=lambda place: (gains[place], -place), default=None)
        if place is None or gains[place] <= 0:
            break
        chosen.append(place)
        covered.update(rarity[place])
    return sorted(chosen)


def _joined(parts: list[str], places: list[int]) -> str:
    shown = ""
    for place in places:
        joint = "" if not shown else " " if place - 1 in places else GAP
        shown += joint + parts[place]
    return shown
