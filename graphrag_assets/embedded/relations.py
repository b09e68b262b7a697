"""Relations of two entities of a sentence: a predicate if the words between them state one explicitly."""

import re

from graphrag_assets.embedded.tagging import alternatives, word_list

# Words around the verb that do not change its meaning: "…, who had also directed the play …".
_ADVERBS = rf"(?:(?:{alternatives('adverbs between')}|at last|in \d{{4}})[ ,]+)*"
_BE = r"(?:is|was|were|are|been|being|had been|has been|have been)"
_OPEN = rf"^,? ?{_ADVERBS}"
_CLOSE = rf"(?: {alternatives('articles between')})*(?: {alternatives('titles between')})* ?$"
_PREDICATES: dict[str, str] = {}  # by verb
_OBJECTS: dict[str, list[str]] = {}  # by predicate, the types of what it is done to
for _line in filter(None, word_list("predicates")):
    _name, _verbs, *_types = _line.split(": ")
    _PREDICATES |= dict.fromkeys(_verbs.split(", "), _name)
    if _types:
        _OBJECTS[_name] = _types[0].split()
_ANY_VERB = "|".join(sorted(_PREDICATES, key=len, reverse=True))
_ACTIVE = re.compile(rf"{_OPEN}(?P<verb>{_ANY_VERB}){_CLOSE}", re.IGNORECASE)
_PASSIVE = re.compile(rf"{_OPEN}(?:{_BE} )?{_ADVERBS}(?P<verb>{_ANY_VERB})(?: [a-z]+ly)? by{_CLOSE}", re.IGNORECASE)
_IS = rf"^,? (?:{_BE} )?(?:the |an? )?(?:[a-z]+ )?"  # "…, the younger …", "… was a …"
_OFFICE = rf"(?:{_BE} |became |as )?(?:(?:the|a|an|chief|first|managing|deputy|consulting) )*{alternatives('offices')}"
_SOMEBODY = ("PERSON", "NAME")
_SOMETHING = ("PERSON", "NAME", "ORGANIZATION", "GEO", "EVENT", "CONCEPT")
_PLACE = ("GEO", "NAME")
_BODY = ("ORGANIZATION", "NAME")
_PHRASES: list[tuple[str, re.Pattern[str], tuple[str, ...], tuple[str, ...]]] = [
    (name, re.compile(pattern, re.IGNORECASE), left, right)
    for name, pattern, left, right in (
        ("PART_OF", rf"{_IS}(?:part|branch|division|subsidiary) of{_CLOSE}", _SOMETHING, _SOMETHING),
        ("MEMBER_OF", rf"{_IS}(?:fellow|member) of{_CLOSE}", _SOMEBODY, _BODY),
        ("WORKED_FOR", rf"^,? {_OFFICE} (?:of|to|at|for|in){_CLOSE}", _SOMEBODY, ("ORGANIZATION",)),
        ("WORKED_FOR", rf"{_OPEN}worked (?:for|at){_CLOSE}", _SOMEBODY, _BODY),
        ("BORN_IN", rf"^,? (?:{_BE} )?born (?:in|at) ?$", _SOMEBODY, _PLACE),
        ("DIED_IN", r"^,? (?:who )?died (?:in|at) ?$", _SOMEBODY, _PLACE),
        ("LIVED_IN", rf"{_OPEN}(?:lived|settled|lives) (?:in|at|near) ?$", _SOMEBODY, _PLACE),
        ("LOCATED_IN", rf"^,? (?:{_BE} )?(?:(?:located|situated|based) )?(?:in|at|near|on){_CLOSE}",
         ("GEO", "ORGANIZATION"), ("GEO",)),
        ("LOCATED_IN", r"^, $", ("GEO",), ("GEO",)),
        ("LOCATED_IN", rf"^,? {_BE} (?:an? |the )?(?:[a-z-]+ ){{1,4}}(?:in|of|on){_CLOSE}",
         ("GEO",), ("GEO",)),
        ("SON_OF", rf"{_IS}son of{_CLOSE}", _SOMEBODY, _SOMEBODY),
        ("DAUGHTER_OF", rf"{_IS}daughter of{_CLOSE}", _SOMEBODY, _SOMEBODY),
        ("BROTHER_OF", rf"{_IS}brother of{_CLOSE}|^,? and his (?:[a-z]+ )?brother ?$", _SOMEBODY, _SOMEBODY),
        ("MARRIED", rf"{_IS}(?:wife|husband|widow) of{_CLOSE}", _SOMEBODY, _SOMEBODY),
        ("TRAVELED_TO", rf"{_OPEN}(?:sailed|went|travell?ed|moved|flew|returned) (?:to|for) ?$", _SOMEBODY, ("GEO",)),
        ("LEFT", rf"{_OPEN}left ?$", _SOMEBODY, ("GEO",)),
        ("ARRIVED_AT", rf"{_OPEN}(?:reached|arrived (?:at|in)|entered) ?$", _SOMEBODY, ("GEO",)),
        ("WROTE_TO", rf"{_OPEN}wrote to{_CLOSE}", _SOMEBODY, _SOMEBODY),
    )
]  # fmt: skip
_PEOPLE = frozenset(("PERSON", "NAME", "ORGANIZATION"))


def predicate(between: str, left_type: str, right_type: str) -> tuple[str, bool]:
    """Return the predicate stated by the words between two names, and whether the second one is the agent.

    ("", False) when none is plain.
    """
    if left_type not in ("CONCEPT", "GEO") and (match := _ACTIVE.match(between)):
        name = _PREDICATES[match["verb"].lower()]
        if right_type in _OBJECTS.get(name, (right_type,)):
            return name, False
    if right_type in _PEOPLE and (match := _PASSIVE.match(between)):
        name = _PREDICATES[match["verb"].lower()]
        if left_type in _OBJECTS.get(name, (left_type,)):
            return name, True
    for name, pattern, left, right in _PHRASES:
        if left_type in left and right_type in right and pattern.match(between):
            return name, False
    return "", False
