"""Dated and quantified statements as claims: dates, amounts of money, measures, and a sentence's status."""

import re
from collections.abc import Sequence

from graphrag_assets.contracts.records import ClaimRecord
from graphrag_assets.embedded.dates import periods
from graphrag_assets.embedded.names import Mention
from graphrag_assets.embedded.tagging import TaggedSentence, alternatives

_WORD = alternatives("numbers")
_SCALE = "(?:hundred|thousand|million|billion|trillion)"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_FIGURE = rf"(?:{_DIGITS}(?: {_SCALE})?|(?:an? )?{_WORD}(?:[ -](?:and )?{_WORD})*)"
_UNIT = (
    rf"(?:(?:{alternatives('unit adjectives')} )?{alternatives('units')}\b(?: (?:a|per) minute)?|per cent\b|%|°|km/h)"
)
_MONEY = re.compile(
    rf"(?:[£$€¥]|US\$|USD |EUR |GBP )\s?{_DIGITS}(?:\s?(?:{_SCALE}|[mb]n?)\b)?"
    rf"|\b{_FIGURE} (?:pounds sterling|{alternatives('currencies')})\b"
)
_MEASURE = re.compile(rf"(?<![\w.,£$€¥-]){_FIGURE}[ -]?{_UNIT}", re.IGNORECASE)
_DURATION = re.compile(rf"{alternatives('durations')}$")
_HEDGED = re.compile(
    r"\b(?:(?:is|was|are|were) (?:said|believed|thought|supposed|reported|rumou?red|alleged|estimated"
    r"|expected|feared) to|it (?:is|was) (?:said|believed|thought|rumou?red|claimed|estimated)|it seems"
    r"|reportedly|allege[ds]?|allegedly|supposedly|apparently|perhaps|probably|possibly"
    r"|(?:may|might) have)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:never|cannot|can't|failed to|no longer"
    r"|(?:did|do|does|was|were|is|are|had|has|have|could|would|should)(?: not|n't))\b",
    re.IGNORECASE,
)
_FOREIGN_NEGATED = re.compile(
    r"\b(?:nicht|nie|niemals|kein(?:e[mnrs]?)?|ne|n['’]\w+|jamais|no|nunca|jamás|non|mai|não|geen|не)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^,;:]{0,60}")


def status_of(text: str, after_subject: int = 0) -> str:
    """Return TRUE, or SUSPECTED for a hedged statement, or FALSE where the subject's own verb is negated."""
    if _HEDGED.search(text):
        return "SUSPECTED"
    clause = _CLAUSE.match(text, after_subject)
    return "FALSE" if clause and _NEGATED.search(clause.group()) else "TRUE"


def claims_in(
    sentence: TaggedSentence,
    source_text: str,
    mentions: Sequence[Mention],
    description: str,
    english: bool = True,
) -> list[ClaimRecord]:
    """Claims of a sentence: its dates about its main entity, and in English its first amount and measure.

    `mentions` are the entities of the sentence in order; without any there is no claim. `source_text` is the
    exact wording in the text unit.
    """
    text = sentence.text
    if not mentions or sentence.heading or len(text) > 2000 or (not english and _FOREIGN_NEGATED.search(text)):
        return []
    stated = periods(text)
    names = [m for m in mentions if m.type != "CONCEPT"] or mentions
    main, subject = names[0], names[0].title
    others = [m.title for m in names if m.title != subject]
    status = status_of(text, sentence.offsets[main.last - 1])
    start = min((period.start for period in stated if period.start), default=None)
    end = max((period.end for period in stated), default=None)
    if start and stated[0].start is None and start > stated[0].end:
        start, end = None, stated[0].end  # "until 1866, and since 1868 …": the first is about the first name
    claims: list[tuple[str, str]] = []
    if stated:
        claims.append(("DATED EVENT", others[0] if others else "NONE"))
    money = _MONEY.search(text) if english else None
    if money:
        claims.append(("AMOUNT", money.group()))
    measured = _MEASURE.finditer(text) if english else ()
    measures = [m.group() for m in measured if not money or m.start() != money.start()]
    # "two minutes" is an idiom more often than a fact, "67 minutes" was measured
    measures = [m for m in measures if m[0].isdigit() or not _DURATION.search(m)]
    if measures:
        claims.append(("MEASUREMENT", measures[0]))
    return [
        ClaimRecord(subject, object_, kind, description, source_text, status, start, end) for kind, object_ in claims
    ]
