"""Excerpts of passages that do not fit a context: the sentences that hold most of the question."""

from collections.abc import Sequence

import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.languages import UNKNOWN, stems
from graphrag_assets.query.retrieval import KnownTerms, Question, known_terms
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text import fold, search_words, sentences

MAX_SENTENCES = 3
GAP = " … "


def excerpts(reader: Reader, question: Question, passages: Sequence[tuple[str, str]]) -> list[str]:
    """Excerpts of passages (text, language); the whole text of one without a word of the question.

    A sentence counts by the rarity of the question's words in it that no sentence chosen before has. Sentences keep
    their order; a gap between them shows as an ellipsis.
    """
    known = known_terms(reader, question).get("text_unit")
    if known is None:
        return [text for text, _ in passages]
    parts = [_sentences(text, language) for text, language in passages]
    words = search_words(pl.Series([part for of_text in parts for part in of_text], dtype=pl.String)).to_list()
    found, start = [], 0
    for (text, language), of_text in zip(passages, parts, strict=True):
        of_sentences = words[start : start + len(of_text)]
        start += len(of_text)
        # As terms are made of the text: in the main language where its own is not known.
        stemmed = language if language in reader.languages else next(iter(reader.languages), UNKNOWN)
        asked = _asked_words(of_sentences, stemmed, known)
        found.append(_joined(of_text, _chosen([asked.keys() & set(words) for words in of_sentences], asked)) or text)
    return found


def _sentences(text: str, language: str) -> list[str]:
    return [text[span.start : span.end].strip() for span in sentences(text, language)]


def _asked_words(sentences: list[list[str]], language: str, known: KnownTerms) -> dict[str, tuple[int, float]]:
    """The words of the sentences that stand for a word of the question: which one, and how rare it is."""
    asked = {term: (word, rarity) for term, word, rarity in zip(known.terms, known.words, known.rarity, strict=True)}
    words = list({word for of_sentence in sentences for word in of_sentence})
    hashed = [number_of(f"text_unit {fold(stem)}") for stem in stems(words, language)]
    return {word: asked[number] for word, number in zip(words, hashed, strict=True) if number in asked}


def _chosen(sentences: list[set[str]], asked: dict[str, tuple[int, float]]) -> list[int]:
    """The places of the sentences (of each its words that are asked for) that together hold most of the question."""
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
