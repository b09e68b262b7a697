"""A question as searches take it, and the terms of the inverted index that its words stand for.

The publication has the terms for each word of its texts (`word_forms`), so the language of the question may be unknown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphrag_assets.errors import InvalidOption
from graphrag_assets.query.scope import Scope
from graphrag_assets.runtime.interruption import raise_if_canceled
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import STOP_WORDS, stems
from graphrag_assets.text.words import UNSPACED, fold, name_key, search_words_of, spell_out, title_key

_LONGEST_TITLE = 8
_WORD = re.compile(r"\S+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
MAX_QUESTION_CHARACTERS = 32_000  # about 8,000 tokens; words that are not in the index take longest, 5 s so many


@dataclass(eq=False)
class Question:
    """A question with what searches derive from it, each computed once: its terms, its vector and its names.

    `vector_text`: is embedded instead of the text if given, such as DRIFT's hypothetical answer. `vector`: None until
    it is embedded. `terms`: by published file, each with the place of its word. `names`: those of entities (key, number
    of the entity) by published file and scope.
    """

    text: str
    vector_text: str | None = None
    vector: np.ndarray | None = field(default=None, init=False, repr=False)
    terms: dict[Path, list[tuple[str, int]]] = field(default_factory=dict, init=False, repr=False)
    names: dict[tuple[Path, Scope], Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidOption(f"The question is {self.text!r}; it must be a text.")
        if not self.text.strip():
            raise InvalidOption("The question is empty.")
        if len(self.text) > MAX_QUESTION_CHARACTERS:
            raise InvalidOption(
                f"The question has {len(self.text):,} characters; at most {MAX_QUESTION_CHARACTERS:,} are searched "
                "for. Ask about a part of the text, or index it as a document."
            )
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidOption(
                f"Character {error.start + 1} of the question is half of a character (a lone surrogate). Ask again "
                "without it; in a shell, check that its text is UTF-8."
            ) from None

    @cached_property
    def words(self) -> list[str]:
        """The distinct words, normalized as for searches."""
        return search_words_of(self.text)

    @cached_property
    def title_keys(self) -> dict[str, list[tuple[int, int]]]:
        """Every run of up to eight words as the key of a title, with its spans (start and end characters).

        In scripts without spaces, every run of two to eight characters.
        """
        words = [word.span() for word in _WORD.finditer(self.text)]
        runs = [
            (first, last) for place, (first, _) in enumerate(words) for _, last in words[place : place + _LONGEST_TITLE]
        ]
        for unspaced in _UNSPACED_RUN.finditer(self.text):
            for first in range(unspaced.start(), unspaced.end() - 1):
                last = min(first + _LONGEST_TITLE, unspaced.end())
                runs += [(first, end) for end in range(first + 2, last + 1)]
        spans: dict[str, list[tuple[int, int]]] = {}
        for first, last in runs:
            raise_if_canceled()
            run = self.text[first:last]
            # With and without the punctuation around it: "Glass, Elliot & Co." and "the Niagara?".
            keys = set(map(title_key, {run, run.lstrip("(").rstrip("?!.,;:)")}))
            keys |= {key.removesuffix("'s") for key in keys}
            for key in {*keys, *map(name_key, keys)} - {""}:
                if key not in STOP_WORDS:
                    spans.setdefault(key, []).append((first, last))
        return spans


class QuestionTerm(NamedTuple):
    """A term that stands for a word of a question. Of several with one `concept`, the best counts in a text."""

    concept: str
    term: str


def question_terms(reader: Reader, words: Sequence[str]) -> list[QuestionTerm]:
    """Return the terms of the distinct `words` of a question, without stop words; of all of them if no others are left.

    A word that occurs in the texts stands for its stems in their languages. Another one stands for its stems in all of
    these languages, and for terms that begin with one of them, or that it begins with: "complain" finds "complaint".
    """
    forms = {word: {fold(word), fold(spell_out(word))} for word in without_stop_words(reader, words)}
    terms = _terms_of_texts(reader, forms)
    lacking = {
        word: forms[word] | {fold(stems([word], language)[0]) for language in reader.languages}
        for word in forms
        if not terms[word]
    }
    terms |= _terms_like(reader, lacking)
    return sorted({QuestionTerm(min(terms[word]), term) for word in forms for term in terms[word]})


def without_stop_words(reader: Reader, words: Sequence[str]) -> list[str]:
    """Return the words without stop words, of the language of the index in which most of the words are stop words."""
    if not reader.languages:
        return list(words)
    _, _, stop_words = max(
        ((len(stop_words.intersection(words)), documents), language, stop_words)
        for language, (documents, stop_words) in reader.languages.items()
    )
    return [word for word in words if word not in stop_words] or list(words)


def _terms_of_texts(reader: Reader, forms: dict[str, set[str]]) -> dict[str, set[str]]:
    """By word, the terms that it stands for in the texts; none for a word that they do not have."""
    all_forms = sorted(set().union(*forms.values()))
    rows = reader.rows(
        "SELECT form, term FROM search.word_forms WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[])) "
        "AND form IN (SELECT unnest($forms::VARCHAR[]))",
        {"forms": all_forms, "beginnings": sorted({form[:3] for form in all_forms})},
    ).rows()
    return {word: {term for form, term in rows if form in spelled} for word, spelled in forms.items()}


def _terms_like(reader: Reader, stemmed: dict[str, set[str]]) -> dict[str, set[str]]:
    """By word its stems, and the terms of the texts that are one to three letters longer or shorter than a stem."""
    near = (
        reader.rows(
            "SELECT DISTINCT term FROM search.word_forms WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[]))",
            {"beginnings": sorted({stem[:3] for stems_of_word in stemmed.values() for stem in stems_of_word})},
        )["term"]
        if stemmed
        else ()
    )
    return {
        word: stems_of_word | {term for term in near for stem in stems_of_word if _are_related(stem, term)}
        for word, stems_of_word in stemmed.items()
    }


def _are_related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) > 4 and len(long) - len(short) <= 3 and long.startswith(short) and long.isalpha()
