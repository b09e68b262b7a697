"""Maps the words of a question to terms of the inverted index.

The publication has the term for each word (`word_forms`): no stemmer runs, and the language of the question may be
unknown. The macro `word_terms` does the same in SQL, which takes 20 ms to plan; change both together.
"""

from collections.abc import Sequence
from typing import NamedTuple

from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import fold, spell_out

RARE = 2
"""A word in at most so many text units is searched by related terms as well."""
RELATED_WEIGHT = 0.5
"""The weight of a related term: "complaint" if the question has "complain"."""
_RELATED = 4
_BEGINNING = 3  # characters of the column `beginning`


class QuestionTerm(NamedTuple):
    """A term that stands for a word of a question. Of several with one `concept`, the best counts in a text."""

    concept: str
    term: str
    weight: float


def question_terms(reader: Reader, words: Sequence[str]) -> list[QuestionTerm]:
    """The terms of the distinct `words` of a question, without stop words; of all of them if no others are left.

    A word that occurs in the texts stands for its stems in their languages. Other words get a stem by the rules of the
    table `word_endings`. If the stem is rare, related terms are added: terms that begin with it, or that it begins
    with, one to three letters longer or shorter, with at least five letters, and at least as common.
    """
    forms = {word: {fold(word), fold(spell_out(word))} for word in without_stop_words(reader, words)}
    stems = _own_terms(reader, forms)
    rare = [word for word in forms if max(stems[word].values(), default=0) <= RARE]
    related = _look_around(reader, {word: forms[word] for word in rare}, stems) if rare else {}
    concepts = {word: min(stems[word] or forms[word]) for word in forms}
    weights = {(concepts[word], term): 1.0 for word in forms for term in stems[word] or forms[word]}
    for word, terms in related.items():
        for term in terms:
            weights.setdefault((concepts[word], term), RELATED_WEIGHT)
    return [QuestionTerm(concept, term, weight) for (concept, term), weight in sorted(weights.items())]


def without_stop_words(reader: Reader, words: Sequence[str]) -> list[str]:
    """The words without stop words, of the language of the index in which most of the words are stop words."""
    if not reader.languages:
        return list(words)
    _, _, stop_words = max(
        ((len(stop_words.intersection(words)), documents), language, stop_words)
        for language, (documents, stop_words) in reader.languages.items()
    )
    return [word for word in words if word not in stop_words] or list(words)


def _own_terms(reader: Reader, forms: dict[str, set[str]]) -> dict[str, dict[str, int]]:
    """By word, the terms that it stands for, with the number of their text units."""
    asked = sorted(set().union(*forms.values()))
    found = reader.rows(
        "SELECT form, term, texts FROM search.word_forms WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[])) "
        "AND form IN (SELECT unnest($forms::VARCHAR[]))",
        {"forms": asked, "beginnings": sorted({form[:_BEGINNING] for form in asked})},
    ).rows()
    return {word: {term: texts for form, term, texts in found if form in spelled} for word, spelled in forms.items()}


def _look_around(reader: Reader, rare: dict[str, set[str]], stems: dict[str, dict[str, int]]) -> dict[str, list[str]]:
    """Find stems for words that do not occur in the texts, added to `stems`, and terms related to rare words.

    Args:
        rare: forms by word.
        stems: by word, its terms with the number of their text units.
    """
    lacking = {word: _stripped(reader, forms) for word, forms in rare.items() if not stems[word]}
    bases = {word: {*stems[word], *lacking.get(word, ()), *(rare[word] if word in lacking else ())} for word in rare}
    beginnings = {word: {form[:_BEGINNING] for form in forms} for word, forms in rare.items()}
    found = reader.rows(
        """
        SELECT beginning, term, max(texts) FROM search.word_forms
        WHERE beginning IN (SELECT unnest($beginnings::VARCHAR[])) AND list_bool_or(list_transform(
            $bases::VARCHAR[], lambda base: abs(length(term) - length(base)) <= 3
            AND (starts_with(term, base) OR starts_with(base, term))))
        GROUP BY ALL
        """,
        {"bases": sorted(set().union(*bases.values())), "beginnings": sorted(set().union(*beginnings.values()))},
    ).rows()
    near = {word: {term: n for beginning, term, n in found if beginning in beginnings[word]} for word in rare}
    for word, rules in lacking.items():
        if known := rules.keys() & near[word].keys():
            _, term = max((rules[term], term) for term in known)
            stems[word] = {term: near[word][term]}
            bases[word] = {term}
    return {word: _related(bases[word], stems[word], near[word]) for word in rare}


def _stripped(reader: Reader, forms: set[str]) -> dict[str, int]:
    """The stems that the rules of `word_endings` derive from the forms, with the number of words behind each rule."""
    found: dict[str, int] = {}
    for form in forms:
        for start in range(len(form) + 1):
            for replacement, shown in reader.word_endings.get(form[start:], {}).items():
                term = form[:start] + replacement
                if len(term) > 2:
                    found[term] = max(found.get(term, 0), shown)
    return found


def _related(bases: set[str], stems: dict[str, int], near: dict[str, int]) -> list[str]:
    """The most common of the terms in `near` (with their number of text units) that are related to one of `bases`."""
    if max(stems.values(), default=0) > RARE:
        return []
    found = {
        (-texts, term)
        for base in bases
        for term, texts in near.items()
        if texts >= max(stems.get(base, 0), 1) and _are_related(base, term)
    }
    return [term for _, term in sorted(found)[:_RELATED]]


def _are_related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) > 4 and 1 <= len(long) - len(short) <= 3 and long.startswith(short) and long.isalpha()
