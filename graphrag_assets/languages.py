"""Languages: which one a text is written in, its stop words, and the stems of its words.

Languages are ISO 639-1 codes. `UNKNOWN` stands for an unidentified language; its words have no stems and no
stop words.
"""

import functools

import Stemmer
import stop_words as stop_word_lists
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from graphrag_assets.embedded.stop_words import STOP_WORDS

UNKNOWN = "und"

_WITH_STEMMER = (
    "ar", "ca", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr", "ga", "hi", "hu", "hy", "id", "it", "lt", "ne",
    "nl", "no", "pl", "pt", "ro", "ru", "sr", "sv", "ta", "tr",
)  # fmt: skip
_WITHOUT_STEMMER = ("bg", "cs", "fa", "he", "ja", "ko", "sk", "th", "uk", "vi", "zh")
LANGUAGES = tuple(sorted((*_WITH_STEMMER, *_WITHOUT_STEMMER)))
"""The languages that are identified. With all 140 of the model, short English passages are taken for dialects."""

_CHARACTERS = 1_000
_CONFIDENCE = 0.5
ENDINGS = {
    "da": "e en er ene et ede ende ers s",
    "de": "e en er es em n s st t te ten ung ungen lich isch",
    "en": "s es ed er ers ing ings ion ions ation ations ated ates ating ment ments ness ly ies ied y",
    "es": "a as o os e es ar ando ado ada ados adas ción ciones mente",
    "fr": "e s es er é ée és ées ant ent ement ation ations eur eurs euse",
    "it": "a e i o are ato ata ati ate ando zione zioni mente",
    "nl": "e en er ers s t de den te ten ing ingen je heid",
    "no": "e en er ene et ede ende ers s a",
    "pt": "a as o os e es ar ando ado ada ados adas ção ções mente",
    "ru": "а ы у е и ой ом ам ами ах ов ость ости ный ная ные ного ать ал ала али",
    "sv": "a ar arna e en er et na n s ade ande ning ningar",
}
"""Common endings of words: with them the rules that a corpus shows too rarely are learned from the stemmer."""


def language_of(text: str) -> str:
    """The language of a text, judged by its first 1,000 characters: an ISO 639-1 code of `LANGUAGES`, or `UNKNOWN`.

    >>> language_of("Die Kunden beschwerten sich über verspätete Lieferungen.")
    'de'
    >>> language_of("Cyrus Field")
    'und'
    """
    language, _ = _identifier().classify(text.strip()[:_CHARACTERS])
    return str(language)


@functools.cache
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_CONFIDENCE)
    identifier.set_languages(LANGUAGES)
    return identifier


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Words that carry grammar instead of content, in lower case; none for a language without a list."""
    if language == "en":
        return STOP_WORDS
    code = {"no": "nb"}.get(language, language)
    if code not in stop_word_lists.LANGUAGE_MAPPING:
        return frozenset()
    return frozenset(word.lower() for word in stop_word_lists.get_stop_words(code))


def stem(word: str, language: str) -> str:
    """The Snowball stem of a lower-case word; the word itself in a language without a stemmer.

    >>> stem("complaints", "en")
    'complaint'
    """
    return stems([word], language)[0]


def stems(words: list[str], language: str) -> list[str]:
    """`stem` of each word."""
    if language not in _WITH_STEMMER:
        return words
    # A stemmer of its own for each call: two threads must not share one. Distinct words need no cache.
    found: list[str] = Stemmer.Stemmer(language, 0).stemWords(words)
    return found
