"""Evidence for the type of a name: what it ends or begins with, and the words around it.

Evidence is a number from 0 to 9. Below `ENOUGH` it gives no type, however often it occurs: a name without a type is
better than one with a wrong one. A `HINT` decides where there is no evidence (PERSON), or against weak evidence (NAME,
of what acts as no place does). `NAME` with evidence stands for the forms of things ("Node.js").
"""

import re

from graphrag_assets.embedded.tagging import word_list

PERSON, ORGANIZATION, GEO, EVENT, CONCEPT, NAME = "PERSON", "ORGANIZATION", "GEO", "EVENT", "CONCEPT", "NAME"

ORG_ENDINGS = word_list("cue_words:organization endings")
GEO_ENDINGS = word_list("cue_words:place endings")
GEO_BEGINNINGS = word_list("cue_words:place beginnings")
EVENT_ENDINGS = word_list("cue_words:event endings")
# Heads that take "of": "Bank of England", "Battle of Hastings", "Ghost of Christmas Past".
OF_HEADS = {
    **dict.fromkeys(word_list("cue_words:heads of organizations"), ORGANIZATION),
    **dict.fromkeys(word_list("cue_words:heads of places"), GEO),
    **dict.fromkeys(word_list("cue_words:heads of events"), EVENT),
    **dict.fromkeys(word_list("cue_words:heads of persons"), PERSON),
}
PERSONAL_VERBS = word_list("cue_words:personal verbs")
OCCUPATIONS = word_list("generic_roles") - word_list("cue_words:bodies")
PLACE_PREPOSITIONS = word_list("cue_words:place prepositions")
WITHIN = ("in", "into", "within")  # things, too: "in Settings"
TRAVEL_VERBS = word_list("cue_words:travel verbs")
ENOUGH, HINT = 3, 2
_NUMERAL = re.compile(r"(?:[IVXL]+|\d[\d.]*[A-Za-z]?)$")
_INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]?$")
_PERSONS_CAPITALS = re.compile(r"(?:Mc|Mac|De|Di|Du|La|Le|Van|Von|Fitz|O'|D'|L')[A-Z][a-z]+$")


def type_of_title(words: list[str]) -> tuple[str, int]:
    """Type and evidence for a title: usually a work, whose words do not indicate its type."""
    kind, evidence = type_by_form(words, False, False)
    return (kind, evidence) if evidence > 5 else (NAME, 0)


def type_by_form(words: list[str], has_initial: bool, article: bool) -> tuple[str, int]:
    """Type and strength of evidence in the words of the name itself."""
    numbered = len(words) > 1 and words[-1][0].isdigit()
    while len(words) > 1 and _NUMERAL.match(words[-1]):
        words = words[:-1]
    if len(words) > 1 and words[0].isdigit():
        words = words[1:]
    if numbered or _has_capitals_within(words) or any(map(_has_signs, words)):
        kind, evidence = _by_words(words, has_initial, article)
        return (kind, evidence) if kind in (EVENT, ORGANIZATION) and evidence >= ENOUGH else (NAME, 9)
    return _by_words(words, has_initial, article)


def _has_capitals_within(words: list[str]) -> bool:
    """Whether a name is one word with capitals within, as "GitHub" and no person or place ("McDonald") is."""
    word = words[0]
    inner = word[1:]
    return (
        len(words) == 1
        and inner.isalnum()
        and inner.isascii()
        and not inner.islower()
        and not word.isupper()
        and not _PERSONS_CAPITALS.match(word)
    )


def _has_signs(word: str) -> bool:
    """Whether a word has digits or signs, as "Node.js", "A380" and "C++" do and no person or place."""
    inner = word[1:].rstrip(".")
    return not inner.isalpha() and any(c.isdigit() or c in ".+#*" for c in inner) and not _INITIALS.match(word)


def _by_words(words: list[str], has_initial: bool, article: bool) -> tuple[str, int]:
    lowers = [word.lower().rstrip(".") for word in words]
    key = " ".join(lowers)
    if key in word_list("places") or " ".join(words).lower() in word_list("places"):
        return GEO, 6
    if "of" in lowers[1:-1]:
        head = lowers[lowers.index("of") - 1]
        if head in OF_HEADS:
            return OF_HEADS[head], 8
        if head in EVENT_ENDINGS:
            return EVENT, 8
        if head in ORG_ENDINGS:
            return ORGANIZATION, 8
        return NAME, 0
    if len(words) > 1:
        if "&" in words or lowers[-1] in ORG_ENDINGS:
            return ORGANIZATION, 8
        if lowers[-1] in EVENT_ENDINGS:
            return EVENT, 7
        if lowers[-1] in GEO_ENDINGS or lowers[0] in GEO_BEGINNINGS:
            return GEO, 7
        if article:
            return NAME, 0
        if lowers[0] in word_list("given_names") or has_initial or (lowers[-1] in ("jr", "sr")):
            return PERSON, 6
    elif lowers[0].startswith("christmas-") or lowers[0] in ("christmas", "easter"):
        return EVENT, 6
    elif words[0].isupper() and len(words[0]) > 1:
        return ORGANIZATION, 1
    elif lowers[0] in word_list("given_names"):
        return PERSON, 1
    return NAME, 0
