"""Languages without capital letters, in which the embedded default finds no names."""

from collections import Counter
from collections.abc import Iterable

CASELESS = {
    "ar": "Arabic", "fa": "Persian", "he": "Hebrew", "hi": "Hindi", "ja": "Japanese", "ko": "Korean", "ne": "Nepali",
    "ta": "Tamil", "th": "Thai", "zh": "Chinese",
}  # fmt: skip


def without_names(languages: Iterable[str | None]) -> str:
    """A warning about documents in languages without capitals; empty if there are none.

    `languages` are ISO 639-1 codes, one per document.

    >>> without_names(["zh", "en", "zh", None])
    '2 documents in Chinese: the embedded default finds no names there; set GRAPHRAG_CHAT_MODEL, see docs/models.md'
    """
    counts = Counter(language for language in languages if language in CASELESS)
    if not counts:
        return ""
    found = ((n, CASELESS[str(language)]) for language, n in sorted(counts.items()))
    listed = ", ".join(f"{n} document{'s' if n > 1 else ''} in {language}" for n, language in found)
    return f"{listed}: the embedded default finds no names there; set GRAPHRAG_CHAT_MODEL, see docs/models.md"
