"""Selects the search method for a question by its kind: the model names it, or rules find it by the wording."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic.dataclasses import dataclass as options_dataclass

from graphrag_assets.answering import Choice
from graphrag_assets.embedded import Asked
from graphrag_assets.query import basic, drift, global_search, lazy, local
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.results import Answer, Chosen, Failure
from graphrag_assets.query.search import CommonOptions, Search, SearchMethod

METHODS: Mapping[str, SearchMethod[...]] = {
    method.name: method for method in (local.METHOD, global_search.METHOD, drift.METHOD, basic.METHOD, lazy.METHOD)
}


@options_dataclass(frozen=True, kw_only=True)
class AskOptions(CommonOptions):
    """All options of `rag.ask`. They apply to the selected method, whose own defaults stand for those left out."""


async def answer(search: Search[Any]) -> Answer:
    """An answer by the method that suits the kind of the question; `Answer.choice` says which one, and why."""
    search.choice = chosen = await _choose(search)
    method, default = METHODS[chosen.method], AskOptions()
    values = {f.name: getattr(search.options, f.name) for f in fields(CommonOptions)}
    given = {name: value for name, value in values.items() if value != getattr(default, name)}
    own = search.rag.defaults.get(method.name, {})
    search.method, search.options = method.name, method.options(**{**own, **chosen.options, **given})
    await asyncio.to_thread(search.prepare)  # the method's defaults may have a filter
    search.progress_notes.append(f"{chosen.method} search chosen")
    return await method.answer(search)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question: its description, and the search that answers it."""

    description: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    "fact": Kind(
        "a fact about particular named persons, things, places or events, or what one of them did, was or had",
        "local",
    ),
    "overview": Kind("who or what one named person, thing, place or event is, or an overview of it", "local"),
    "relation": Kind(
        "how two or more named things are connected, perhaps over others that lie between them", "local", {"hops": 2}
    ),
    "comparison": Kind(
        "a comparison of several things, or an inquiry with several sides that have to be looked up one by one", "drift"
    ),
    "theme": Kind("what the collection as a whole says: themes, trends, summaries, what is most important", "global"),
    "open": Kind("what happened, how or why, without naming a person, thing, place or event", "local"),
    "passage": Kind("where an exact wording or number occurs", "basic"),
}

_THEME = re.compile(
    r"\b(?:(?:main|major|overall|central|key|chief|recurring|common|top|biggest|greatest|largest|worst|most \w+)"
    r" (?:\w+ )?(?:themes?|topics?|ideas?|points?|subjects?|threads?|lessons?|patterns?|findings?|conclusions?|trends?"
    r"|stories|problems?|issues?|challenges?|difficulties|troubles?|obstacles?|risks?|complaints?|concerns?|reasons?"
    r"|events?|people|places)"
    r"|summar(?:y|i[sz]e)|overview|in general|as a whole|on the whole|altogether"
    r"|(?:whole|entire) (?:collection|corpus|data ?set|book|archive|story)"
    r"|(?:across|over|in) all (?:the )?(?:documents|texts|reports|files)"
    r"|(?:wichtigsten?|größten?|zentralen?) (?:\w+ )?(?:themen|probleme|ereignisse|gründe)|hauptthemen|zusammenfassung"
    r"|überblick|insgesamt|(?:principaux|grands) (?:thèmes|sujets|problèmes|événements)|thèmes principaux"
    r"|résum(?:é|e[rz]?)|aperçu|(?:principales|grandes) (?:temas|problemas|acontecimientos)|temas principales|resumen"
    r"|(?:главные|основные) (?:темы|проблемы|события)|обзор|в целом)\b",
    re.IGNORECASE,
)
_WORDING = re.compile(r"[\"“„«][^\"“”„«»]{3,}[\"”“»]")
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
    """The kind of a question that names `named` entities of the index, by title or alias, and why.

    The rules cover English wording; in other languages, only questions for themes, summaries and "who was …".

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
    entities = f"{named} {'entity' if named == 1 else 'entities'} of the index"
    if named and asked.subject:
        return "overview", f"it asks who or what something is, and names {entities}"
    if match := _WORDING.search(question):
        return "passage", f"it quotes a wording ({match[0]})"
    if named:
        return "fact", f"it names {entities}"
    return "open", "it names no entity of the index: passages and reports are read together"


async def _choose(search: Search[AskOptions]) -> Chosen:
    """The kind of the question as the answerer names it; by the rules, if it names none."""
    question = search.text
    by_model = Choice("", "")
    said = ""
    try:
        by_model = await search.answerer.achoose(question, {name: kind.description for name, kind in KINDS.items()})
    except Exception as error:  # the rules decide instead
        search.errors.append(Failure("choice", "the model's choice of the method", str(error)))
        said = "the call to the model failed; "
    else:
        if by_model.usage.calls:
            search.add_usage("choice", by_model.usage)
        if by_model.kind not in KINDS and by_model.usage.calls:
            said = "the model named none of the kinds; "
    if by_model.kind in KINDS:
        reason = by_model.reason or KINDS[by_model.kind].description
        return _chosen(by_model.kind, reason, search.answerer.model)
    named = await search.in_thread(named_entities, search.reader, search.question, search.scope)
    kind, reason = await asyncio.to_thread(kind_by_rules, question, len(named))
    return _chosen(kind, said + reason, "rules")


def _chosen(kind: str, reason: str, by: str) -> Chosen:
    return Chosen(kind, KINDS[kind].method, KINDS[kind].options, reason, by)
