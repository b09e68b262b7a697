"""What kind of value a question asks for, and words with which questions and texts state the same."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.question_grammar import AUXILIARY, PEOPLE, is_office
from graphrag_assets.embedded.questions import Asked, stems
from graphrag_assets.embedded.tagging import singular, tagged_sentences, word_list

_ALIKE = """
founded established formed incorporated registered created; commanded captained skippered; built constructed;
invented devised patented; married wed wedded; bought purchased acquired; employed hired engaged;
dismissed sacked fired; led headed chaired; began started opened; ended closed finished ceased; ship vessel boat;
company firm; film movie; author writer
"""
SYNONYMS: Mapping[str, frozenset[str]] = {
    stem: frozenset(group) for group in map(stems, _ALIKE.split(";")) for stem in group
}
"""Verbs and nouns with which a question and a text state the same relation, by stem."""

TYPES: Mapping[str, Mapping[str, float]] = {
    "person": {cues.PERSON: 1.0, cues.NAME: 0.2},
    "place": {cues.GEO: 1.0, cues.NAME: 0.3, cues.ORGANIZATION: 0.2},
    "body": {cues.ORGANIZATION: 1.0, cues.NAME: 0.5},
    "thing": {cues.NAME: 1.0, cues.CONCEPT: 0.7, cues.ORGANIZATION: 0.2, cues.EVENT: 0.6, cues.GEO: 0.1},
}


_ASKS = re.compile(
    r"\b(?:(?P<person>who(?:m|se)?)\b|(?P<place>where)\b"
    r"|(?P<date>when\b|(?:which|what) (?:\w+ )?(?:year|day|date|month)\b)"
    r"|(?P<number>how (?:many|much|long|far|deep|heavy|fast|large|big|old|wide|high|tall|often|strong|thick))\b"
    r"|(?P<thing>which|what)\b)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question asks for: person, place, date, number, body, thing or "" (nothing that a value could be).

    `noun` is the class of the thing, or what is counted; `verb` the stem of the verb; `key` that, or the stem of the
    office of "Who was the secretary of …?"; `as_subject`: the value is what does it, if the question is in the active
    voice. `description` stands for a thing without a name: "the committee".
    """

    kind: str
    noun: str = ""
    verb: str = ""
    key: str = ""
    as_subject: bool = True
    passive: bool = False
    description: str = ""

    @classmethod
    def of(cls, asked: Asked) -> "Wanted":
        """The value that a question asks for, by its words."""
        match = _ASKS.search(asked.text)
        if match is None:
            return cls("")
        kind = str(match.lastgroup)
        tagged = next(tagged_sentences(asked.text))
        place = next((i for i, at in enumerate(tagged.offsets) if at >= match.end()), len(tagged.words))
        kinds, words = tagged.kinds, [word.casefold() for word in tagged.words]
        after = place
        while after < len(words) and kinds[after] in "nxjJ#NAE":
            after += 1
        noun = singular(words[after - 1]) if after > place and kind in ("thing", "number") else ""
        if kind == "thing":
            kind = _class_of(noun) if noun else ""
        verbs = [i for i in range(after, len(words)) if kinds[i] == "v"]
        all_verbs = verbs + [i for i in range(place) if kinds[i] == "v"]
        main = next((i for i in all_verbs if words[i] not in AUXILIARY), None)
        verb = next(iter(stems(words[main], asked.language)), "") if main is not None else ""
        subject = (
            bool(verbs)
            and kinds[after : verbs[0]].strip("f") == ""
            and not any(kinds[i] in "tDNA" for i in range(verbs[0], main if main is not None else verbs[0]))
        )
        if (match["person"] or "").casefold() == "whom" or re.search(r"\bwas it\b", asked.text):
            subject = False
        passive = main is not None and main > 0 and words[main - 1] in ("was", "were", "is", "are", "been", "be")
        noun = noun or ("year" if match["date"] and "year" in match["date"].casefold() else "")
        offices = [word for word in words[after:] if is_office(word)] if main is None else []
        office = next((a for a, b in pairwise(words) if b == "of" and a in offices), "".join(offices[-1:]))
        key = verb or next(iter(stems(office, asked.language)), "")
        description = f"the {' '.join(words[place:after])}" if noun and kind in TYPES else ""
        return cls(kind, noun, verb, key, subject, passive, description)


def _class_of(noun: str) -> str:
    if noun in PEOPLE or (is_office(noun) and noun not in word_list("cue_words:bodies")):
        return "person"
    if noun in cues.GEO_ENDINGS | word_list("cue_words:heads of places") | {"country", "place", "continent", "region"}:
        return "place"
    if noun in word_list("cue_words:bodies") | cues.ORG_ENDINGS | {"company", "firm"}:
        return "body"
    return "thing"
