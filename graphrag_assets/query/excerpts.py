"""Excerpts of passages: the sentences that hold most of the question, for contexts with no room for all of it."""

import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.languages import UNKNOWN, stems
from graphrag_assets.query.retrieval import KnownTerms, Question, known_terms
from graphrag_assets.store.published import Reader
from graphrag_assets.text import fold, search_words, sentences

MAX_SENTENCES = 3
GAP = " … "


def excerpts(reader: Reader, question: Question, sources: pl.DataFrame, first: int, last: int) -> pl.Series:
    """Excerpts of the rows of `sources` (text, language) from place `first` on and before `last`; the others whole.

    A sentence counts by the rarity of the question's words in it that no sentence chosen before has. Sentences keep
    their order; a gap between them shows as an ellipsis.
    """
    known = known_terms(reader, question).get("text_unit")
    texts = sources["text"].to_list()
    if known is not None:
        for place, language in enumerate(sources["language"][first:last].to_list(), first):
            # As terms are made of the text: in the main language where its own is not known.
            stemmed = language if language in reader.languages else next(iter(reader.languages), UNKNOWN)
            texts[place] = _excerpt(texts[place], stemmed, known)
    return pl.Series("excerpt", texts, dtype=pl.String)


def _excerpt(text: str, language: str, known: KnownTerms) -> str:
    spans = sentences(text, language)
    parts = [text[span.start : span.end].strip() for span in spans]
    if not parts:
        return text
    asked = {term: (word, rarity) for term, word, rarity in zip(known.terms, known.words, known.rarity, strict=True)}
    words = [_asked_words(words, language, asked) for words in search_words(pl.Series(parts, dtype=pl.String))]
    chosen: set[int] = set()
    covered: set[int] = set()
    while len(chosen) < MAX_SENTENCES:
        gain, place = max(
            (sum(rarity for word, rarity in found.items() if word not in covered), -place)
            for place, found in enumerate(words)
        )
        if gain <= 0:
            break
        chosen.add(-place)
        covered.update(words[-place])
    if not chosen:
        return text
    shown = ""
    for place in sorted(chosen):
        joint = "" if not shown else " " if place - 1 in chosen else GAP
        shown += joint + parts[place]
    return shown


def _asked_words(words: list[str], language: str, asked: dict[int, tuple[int, float]]) -> dict[int, float]:
    """The question's words that stand in a sentence, with how rare they are."""
    found: dict[int, float] = {}
    for stem in stems(list(words), language):
        word, rarity = asked.get(number_of(f"text_unit {fold(stem)}"), (None, 0.0))
        if word is not None:
            found[word] = max(found.get(word, 0.0), rarity)
    return found
