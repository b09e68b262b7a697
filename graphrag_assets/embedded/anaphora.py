"""Self-contained extracts: none begins with a word whose antecedent it does not contain."""

import re
from collections.abc import Iterable

from graphrag_assets.embedded.tagging import alternatives, word_list

_OPENING = "[\"'“‘«„(\\[—–-]*"
_CONNECTIVES = (
    "and|but|so|yet|or|nor|then|thus|hence|therefore|however|moreover|furthermore|nevertheless|nonetheless|meanwhile"
    "|instead|otherwise|besides|still|also|again|later|afterwards|eventually|finally|indeed|similarly|accordingly"
    "|consequently|for example|for instance|in addition|in fact|of course|as a result|at first|at last|yes|no|oh|well"
)
_ANAPHORS = word_list("cue_words:anaphors")
_ANAPHORIC = re.compile(
    rf"{_OPENING}(?:(?:{_CONNECTIVES})\b[,;:!.]* +{_OPENING})*"
    rf"(?:{alternatives('anaphors')}(?!\w)"
    r"|the (?:former|latter|same|other|others|two)\b)",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(rf"{_OPENING}([^\W\d_]+)")
_FIRST_WORDS = {word.split("'")[0].split("-")[0] for word in _ANAPHORS} | {
    phrase.split()[0] for phrase in (*_CONNECTIVES.split("|"), "the")
}
_SHORTEST_LEAD = 100


def begins_with_anaphor(text: str) -> bool:
    """Whether `text` begins with a pronoun or the like, perhaps after a connective.

    >>> [begins_with_anaphor(text) for text in ("However, he left.", "Her father left.", "Herr Vogel left.")]
    [True, True, False]
    """
    first = _FIRST_WORD.match(text)  # rejects most sentences cheaply
    return first is not None and first[1].lower() in _FIRST_WORDS and _ANAPHORIC.match(text) is not None


def self_contained(text: str, before: Iterable[str], limit: int) -> str:
    """The anaphoric sentence `text`, led by the nearest sentence `before` it that can stand alone; or "".

    `before` are the sentences of its paragraph, the nearest first. "…" marks omitted sentences. If both
    together have more than `limit` characters, the lead is cut, then the sentence.
    """
    for distance, lead in enumerate(before):
        if not begins_with_anaphor(lead):
            joint = " … " if distance else " "
            lead = shortened(lead, max(limit - len(joint) - len(text), _SHORTEST_LEAD))
            return shortened(f"{lead}{joint}{text}", limit)
    return ""


def shortened(text: str, limit: int) -> str:
    """`text`, cut at a word and marked with "…" when longer than `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut).rstrip(" ,;:-") + "…"
