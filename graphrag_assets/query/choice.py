"""Selects the search method for a question by its kind: the model names it, or rules find it by the wording."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from graphrag_assets.embedded import EmbeddedAnswerer, QuestionAnalysis
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.methods import SEARCH_METHODS, SearchMethod
from graphrag_assets.query.options import CommonOptions
from graphrag_assets.query.question import Question
from graphrag_assets.query.results import Answer, MethodChoice


async def answer_by_kind(ask: Ask[Any]) -> Answer:
    """Return an answer by the method that suits the kind of the question."""
    choice = await _choose(ask)
    if choice.method == "global" and await ask.in_thread(_has_extracts_only, ask):
        choice = replace(choice, method="lazy", reason=f"{choice.reason}; no model wrote the index's reports")
    method = SEARCH_METHODS[choice.method]
    ask.options, ask.method = _options_of(ask, method, choice.options), choice.method
    ask.trace.notes.append(f"{choice.method} search chosen")
    return replace(await method.answer(ask), choice=choice)


def _has_extracts_only(ask: Ask[Any]) -> bool:
    """Whether a model answers, and the embedded default wrote all reports, which quote and do not sum up."""
    if isinstance(ask.models.answerer, EmbeddedAnswerer):
        return False
    return ask.reader.numbers("SELECT bool_and(model LIKE 'embedded/%') FROM community_reports", {}) == [True]


def _options_of(ask: Ask[Any], method: SearchMethod, chosen: Mapping[str, Any]) -> CommonOptions:
    """Return the options of a method: those given to `ask`, then those of the choice."""
    default = CommonOptions()
    values = {f.name: getattr(ask.options, f.name) for f in fields(CommonOptions)}
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return method.options(**{**chosen, **changed})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question: its description, and the search that answers it."""

    description: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    "fact": Kind(
        "a fact about particular named persons, things, places or events, or what one of them did, was or had", "local"
    ),
    "overview": Kind("who or what one named person, thing, place or event is, or an overview of it", "local"),
    "relation": Kind(
        "how two or more named things are connected, perhaps over others that lie between them", "local", {"hops": 2}
    ),
    "comparison": Kind(
        "a comparison of several things, or an inquiry with several sides that have to be looked up one by one",
        "drift",
    ),
    "chain": Kind(
        "a fact that is reached in steps, because the question describes a thing instead of naming it, as 'the ship "
        "that laid the cable' does, or a count or comparison of facts that are looked up one by one",
        "planned",
    ),
    "list": Kind(
        "a complete list: all things, persons or events of some kind that the collection mentions",
        "lazy",
    ),
    "theme": Kind(
        "what the collection as a whole says: themes, trends, summaries, what is most important",
        "global",
    ),
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


def kind_by_rules(question: str, named: int, has_history: bool = False) -> tuple[str, str]:
    """Return the kind of a question, and why: a theme, or what local search answers.

    Args:
        named: number of entities of the index that the question names by title or alias.
        has_history: it may mean what the questions before it name.

    >>> kind_by_rules("What are the main themes?", 0)
    ('theme', "it asks about the whole ('main themes') and names no entity of the index")
    """
    if not named and (match := _THEME.search(question)):
        return "theme", f"it asks about the whole ({match[0].casefold()!r}) and names no entity of the index"
    if named:
        return "fact", f"it names {named} {'entity' if named == 1 else 'entities'} of the index"
    if QuestionAnalysis.of(question).about_everything and not has_history:
        return "theme", "it names nothing in particular"
    return "open", "it names no entity of the index: passages and reports are read together"


async def _choose(ask: Ask[CommonOptions]) -> MethodChoice:
    """Return the kind of the question as the answerer names it; by the rules, if it names none."""
    question = ask.text
    call = ask.models.answerer.achoose(question, {name: kind.description for name, kind in KINDS.items()})
    by_model = await ask.optional("choice", "the model's choice of the method", call)
    if by_model and by_model.kind in KINDS:
        reason = by_model.reason or KINDS[by_model.kind].description
        return _method_choice(by_model.kind, reason, ask.models.answerer.model)
    said = "" if by_model else "the call to the model failed; "
    if by_model and by_model.usage.calls:
        said = "the model named none of the kinds; "
    kind, reason = await ask.in_thread(_kind_in_index, ask)
    return _method_choice(kind, said + reason, "rules")


def _kind_in_index(ask: Ask[CommonOptions]) -> tuple[str, str]:
    named = named_entities(ask.reader, Question(ask.text), ask.scope)
    return kind_by_rules(ask.text, len(named), has_history=ask.question.text != ask.text)


def _method_choice(kind: str, reason: str, by: str) -> MethodChoice:
    return MethodChoice(kind, KINDS[kind].method, KINDS[kind].options, reason, by)
