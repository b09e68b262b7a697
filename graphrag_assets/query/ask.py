"""Which search suits a question: by its kind, which the model tells, or rules of its wording and what it names."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphrag_assets.models.answering import Choice
from graphrag_assets.models.offline.questions import Asked
from graphrag_assets.query.results import Chosen, Failure
from graphrag_assets.query.retrieval import named_entities

if TYPE_CHECKING:
    from graphrag_assets.query.search import Search


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question: what it is, and the search that answers it."""

    description: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    "fact": Kind(
        "a fact about particular named persons, things, places or events, or what one of them did, was or had",
        "local",
    ),
    "relation": Kind(
        "how two or more named things are connected, perhaps over others that lie between them", "local", {"hops": 2}
    ),
    "comparison": Kind(
        "a comparison of several things, or an inquiry with several sides that have to be looked up one by one", "drift"
    ),
    "theme": Kind("what the collection as a whole says: themes, trends, summaries, what is most important", "global"),
    "passage": Kind("a detail, number or wording that no named person, thing, place or event stands for", "basic"),
}

_THEME = re.compile(
    r"\b(?:(?:main|major|overall|central|key|recurring|common|top|most important) (?:\w+ )?"
    r"(?:themes?|topics?|ideas?|points?|subjects?|threads?|lessons?|patterns?|findings?|conclusions?|trends?|stories)"
    r"|summar(?:y|i[sz]e)|overview|in general|as a whole|on the whole|altogether"
    r"|(?:whole|entire) (?:collection|corpus|data ?set|book|archive|story)"
    r"|(?:across|over|in) all (?:the )?(?:documents|texts|reports|files))\b",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"\b(?:compar(?:e|ed|ison|ing)|contrast(?:ed)?|differ(?:s|ed|ence|ences|ent|ently)?|versus|vs\b\.?|similarit(?:y|ies)"
    r"|in common|unlike|disagree(?:d|ment)?|rival(?:s|ry)?|advantages?|pros and cons"
    r"|(?:better|worse|larger|smaller|faster|longer|more|less) \w* ?than)\b",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"\b(?:connect(?:s|ed|ion|ions)?|relat(?:e|es|ed|ion|ions|ionship|ionships)|link(?:s|ed)?|between|ties?|tied"
    r"|have to do with|had to do with|by way of|through whom|via|influenced?|know each other|knew)\b",
    re.IGNORECASE,
)


def kind_by_rules(question: str, named: int) -> tuple[str, str]:
    """The kind of a question that names `named` entities of the index, and why. The rules know English wording.

    >>> kind_by_rules("How are Cyrus Field and William Thomson connected?", 2)
    ('relation', 'it asks how 2 entities that it names are connected')
    """
    asked = Asked.of(question)
    if match := _THEME.search(question):
        if not named:
            return "theme", f"it asks about the whole ({match[0].casefold()!r}) and names no entity of the index"
    elif asked.about_everything and not named:
        return "theme", "it names nothing in particular"
    if match := _COMPARISON.search(question):
        return "comparison", f"it compares ({match[0].casefold()!r})"
    if named >= 2 and _RELATION.search(question):
        return "relation", f"it asks how {named} entities that it names are connected"
    if named:
        return "fact", f"it names {named} {'entity' if named == 1 else 'entities'} of the index"
    return "passage", "it names no entity of the index"


async def choose(search: "Search") -> Chosen:
    """The kind of the question by the answerer; by the rules, where it does not tell or tells something else."""
    question = search.request.question
    by_model = Choice("", "")
    said = ""
    try:
        by_model = await search.answerer.achoose(question, {name: kind.description for name, kind in KINDS.items()})
    except Exception as error:  # the rules do without it
        search.errors.append(Failure("choice", "the model's choice of the method", str(error)))
        said = "the model could not be asked; "
    else:
        if by_model.usage.calls:
            search.used("choice", by_model.usage)
        if by_model.kind not in KINDS and by_model.usage.calls:
            said = "the model named none of the kinds; "
    if by_model.kind in KINDS:
        reason = by_model.reason or KINDS[by_model.kind].description
        return _chosen(by_model.kind, reason, search.answerer.model)
    named = await search.retrieve(named_entities, search.reader, search.request.retrieval, search.scope)
    kind, reason = await asyncio.to_thread(kind_by_rules, question, len(named))
    return _chosen(kind, said + reason, "rules")


def _chosen(kind: str, reason: str, by: str) -> Chosen:
    return Chosen(kind, KINDS[kind].method, KINDS[kind].options, reason, by)
