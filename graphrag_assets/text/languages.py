"""Languages: which one a text is written in, its stop words, and the stems of its words.

Languages are ISO 639-1 codes. `UNKNOWN` stands for an unidentified language; its words have no stems and no
stop words.
"""

import functools
from collections import Counter
from collections.abc import Iterable

import Stemmer
import stop_words as stop_word_lists
from py3langid.langid import MODEL_FILE, LanguageIdentifier

UNKNOWN = "und"

_WITH_STEMMER = (
    "ar", "ca", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr", "ga", "hi", "hu", "hy", "id", "it", "lt", "ne",
    "nl", "no", "pl", "pt", "ro", "ru", "sr", "sv", "ta", "tr",
)  # fmt: skip
NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "ne": "Nepali",
    "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Their names in English."""
LANGUAGES = tuple(NAMES)
"""The languages that are identified. With all 140 of the model, short English passages are taken for dialects."""

_CHARACTERS = 1_000
_CONFIDENCE = 0.5
CASELESS = frozenset({"ar", "fa", "he", "hi", "ja", "ko", "ne", "ta", "th", "zh"})
"""Languages without capital letters, in which the embedded default finds no names."""
_ENGLISH = """
a about above across after again against all almost along already also although always am among an and another any
anybody anyone anything are around as at away back be because been before behind being below beside between both
but by can cannot could d did do does doing done down during each either else ever every everybody everyone
everything few for from further get gets give given go goes had has have having he hence her here hers herself him
himself his how however i if in indeed instead into is it its itself just ll m many me might mine more most much
must my myself near neither never nevertheless no nobody none nor not nothing now of off often on once one only
onto or other others otherwise our ours ourselves out over own per perhaps quite rather re s same she should since
so some somebody someone something sometimes still such t than that the their theirs them themselves then there
therefore these they this those though through throughout thus to together too toward towards under until up upon
us ve very via was we well were what whatever when whence whenever where whereas whereby wherein wherever whether
which while whither who whoever whole whom whose why will with within without would yet you your yours yourself
yourselves
"""
STOP_WORDS = frozenset(_ENGLISH.split())
"""English function words, which have little weight in embeddings, search and answers."""


def language_of(text: str) -> str:
    """Return the language of a text, judged by its first 1,000 characters: an ISO 639-1 code of `LANGUAGES`, or
    `UNKNOWN`.

    >>> language_of("Die Kunden beschwerten sich über verspätete Lieferungen.")
    'de'
    >>> language_of("Cyrus Field")
    'und'
    """
    language, _ = _identifier().classify(opening(text))
    return str(language)


def opening(text: str) -> str:
    """Return the part of a text that its language is judged by."""
    return text.strip()[:_CHARACTERS]


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
    """Return the Snowball stem of a lower-case word; the word itself in a language without a stemmer.

    >>> stem("complaints", "en")
    'complaint'
    """
    return stems([word], language)[0]


def stems(words: list[str], language: str) -> list[str]:
    """`stem` of each word."""
    if language not in _WITH_STEMMER:
        return words
    # A stemmer of its own for each call: two threads must not share one. Distinct words need no cache.
    stems: list[str] = Stemmer.Stemmer(language, 0).stemWords(words)
    return stems


def without_names(languages: Iterable[str | None]) -> str:
    """Return a warning about documents in languages without capitals; empty if there are none.

    `languages` are ISO 639-1 codes, one per document.

    >>> without_names(["zh", "en", "zh", None])
    '2 documents in Chinese: the embedded default finds no names there; set GRAPHRAG_CHAT_MODEL, see docs/models.md'
    """
    counts = Counter(language for language in languages if language in CASELESS)
    if not counts:
        return ""
    counted = ((n, NAMES[str(language)]) for language, n in sorted(counts.items()))
    names = ", ".join(f"{n} document{'s' if n > 1 else ''} in {language}" for n, language in counted)
    return f"{names}: the embedded default finds no names there; set GRAPHRAG_CHAT_MODEL, see docs/models.md"
