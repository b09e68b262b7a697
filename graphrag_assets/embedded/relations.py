"""Relations of two entities of a sentence: a predicate if the words between them state one explicitly."""

import re

from graphrag_assets.embedded.tagging import alternatives

# Words around the verb that do not change its meaning: "…, who had also directed the play …".
_ADVERBS = rf"(?:(?:{alternatives('adverbs between')}|at last|in \d{{4}})[ ,]+)*"
_BE = r"(?:is|was|were|are|been|being|had been|has been|have been)"
_OPEN = rf"^,? ?{_ADVERBS}"
_CLOSE = rf"(?: {alternatives('articles between')})*(?: {alternatives('titles between')})* ?$"
_VERBS: list[tuple[str, str]] = [
    ("COMMANDED", r"commanded|captained|skippered"),
    ("INVENTED", r"invented|devised|patented"),
    ("DESIGNED", r"designed"),
    ("DISCOVERED", r"discovered"),
    ("FOUNDED", r"founded|established|set up|formed|started|co-founded|created"),
    ("BUILT", r"built|constructed"),
    ("MADE", r"made|manufactured|produced"),
    ("MARRIED", r"married|wed"),
    ("WROTE", r"wrote|authored"),
    ("DIRECTED", r"directed"),
    ("PUBLISHED", r"published"),
    ("ACQUIRED", r"acquired|bought|purchased|took over"),
    ("SUCCEEDED", r"succeeded|replaced"),
    ("DEFEATED", r"defeated|beat"),
    ("FINANCED", r"financed|funded|backed"),
    ("EMPLOYED", r"employed|hired|engaged|appointed"),
    ("DISMISSED", r"dismissed|sacked"),
    ("OWNED", r"owned|owns"),
    ("LED", r"led|headed|chaired"),
    ("PLAYED", r"played|portrayed"),
    ("HELPED", r"helped|assisted"),
    ("OPPOSED", r"opposed"),
    ("JOINED", r"joined"),
    ("VISITED", r"visited"),
    ("MET", r"met"),
    ("PERSUADED", r"persuaded|convinced"),
    ("ACCOMPANIED", r"accompanied|escorted"),
]
_PREDICATES = {verb: name for name, verbs in _VERBS for verb in verbs.split("|")}
_ANY_VERB = "|".join(verbs for _, verbs in _VERBS)
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
_WORKS = ("CONCEPT", "NAME", "EVENT")
_OBJECTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("INVENTED", "DESIGNED", "MADE", "WROTE", "PUBLISHED", "DIRECTED", "PLAYED"), _WORKS),
    **dict.fromkeys(("MARRIED", "EMPLOYED", "DISMISSED", "MET"), _SOMEBODY),
    "BUILT": (*_WORKS, "GEO"),
    "COMMANDED": ("NAME", "ORGANIZATION"),
    "FOUNDED": ("ORGANIZATION", "NAME", "GEO", "EVENT"),
    "DEFEATED": ("PERSON", "NAME", "ORGANIZATION", "GEO"),
    "PERSUADED": ("PERSON", "NAME", "ORGANIZATION"),
}
_PEOPLE = frozenset(("PERSON", "NAME", "ORGANIZATION"))


def predicate(between: str, left_type: str, right_type: str) -> tuple[str, bool]:
    """The predicate stated by the words between two names, and whether the second one is the agent.

    ("", False) when none is plain.
    """
    if not between or len(between) > 90:
        return "", False
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
