"""Maps the words of a question to terms of the inverted index.

The publication has the terms for each word of its texts (`word_forms`), so the language of the question may be unknown.
"""

from collections.abc import Sequence
from typing import NamedTuple

from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import stems
from graphrag_assets.text.words import fold, spell_out


class QuestionTerm(NamedTuple):
    """A term that stands for a word of a question. Of several with one `concept`, the best counts in a text."""

    concept: str
    term: str


def question_terms(reader: Reader, words: Sequence[str]) -> list[QuestionTerm]:
    """The terms of the distinct `words` of a question, without stop words; of all of them if no others are left.

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
    """The words without stop words, of the language of the index in which most of the words are stop words."""
    if not reader.languages:
        return list(words)
    _, _, stop_words = max(
        ((len(stop_words.intersection(words)), documents), language, stop_words)
        for language, (documents, stop_words) in reader.languages.items()
    )
    return [word for word in words if word not in stop_words] or list(words)


def _terms_of_texts(reader: Reader, forms: dict[str, set[str]]) -> dict[str, set[str]]:
    """By word, the terms that it stands for in the texts; none for a word that they do not have."""
    asked = sorted(set().union(*forms.values()))
    found = reader.rows(
        "SELECT form, term FROM search.word_forms WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[])) "
        "AND form IN (SELECT unnest($forms::VARCHAR[]))",
        {"forms": asked, "beginnings": sorted({form[:3] for form in asked})},
    ).rows()
    return {word: {term for form, term in found if form in spelled} for word, spelled in forms.items()}


def _terms_like(reader: Reader, stemmed: dict[str, set[str]]) -> dict[str, set[str]]:
    """By word its stems, and the terms of the texts that are one to three letters longer or shorter than a stem."""
    near = (
        reader.rows(
            "SELECT DISTINCT term FROM search.word_forms WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[]))",
            {"beginnings": sorted({stem[:3] for found in stemmed.values() for stem in found})},
        )["term"]
        if stemmed
        else ()
    )
    return {
        word: found | {term for term in near for stem in found if _are_related(stem, term)}
        for word, found in stemmed.items()
    }


def _are_related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) > 4 and len(long) - len(short) <= 3 and long.startswith(short) and long.isalpha()
