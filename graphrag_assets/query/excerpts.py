"""Excerpts of passages that do not fit a context: the sentences that together have most of a question's rare words."""

from collections.abc import Mapping, Sequence

import polars as pl

from graphrag_assets.query.retrieval import Question, rarity_of, terms_of
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import UNKNOWN, stems
from graphrag_assets.text.words import fold, search_words, sentences

MAX_SENTENCES = 3
GAP = " … "


def excerpts(reader: Reader, question: Question, passages: Sequence[tuple[str, str]]) -> list[str]:
    """Excerpts of passages (text, language); the whole text of one without a word of the question."""
    rarity = rarity_of(reader, [term for term, _ in terms_of(reader, question)])
    # The same rule as for the terms of a text: the main language if its own is unknown.
    main = next(iter(reader.languages), UNKNOWN)
    parts = [[text[span.start : span.end].strip() for span in sentences(text)] for text, _ in passages]
    of_parts = search_words(pl.Series([part for of_text in parts for part in of_text], dtype=pl.String))
    words = iter(of_parts.to_list())
    found = []
    for (text, language), of_text in zip(passages, parts, strict=True):
        known = language if language in reader.languages else main
        terms = [[fold(stem) for stem in stems(list(dict.fromkeys(next(words))), known)] for _ in of_text]
        asked = [[term for term in of_part if term in rarity] for of_part in terms]
        found.append(_excerpt(of_text, asked, rarity) or text)
    return found


def _excerpt(parts: Sequence[str], terms: Sequence[Sequence[str]], rarity: Mapping[str, float]) -> str:
    left, chosen = dict(rarity), list[int]()
    for _ in range(min(MAX_SENTENCES, len(parts))):
        gains = [sum(left.get(term, 0.0) for term in of_part) for of_part in terms]
        best = max(range(len(gains)), key=gains.__getitem__)
        if gains[best] <= 0:
            break
        chosen.append(best)
        for term in terms[best]:
            left.pop(term, None)
    return GAP.join(parts[place] for place in sorted(chosen))
