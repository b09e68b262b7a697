"""Local search: the entities of a question, their neighborhood in the graph, and the text that names them."""

import math
from dataclasses import replace
from typing import Annotated, Any, Self

import polars as pl
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import QueryError
from graphrag_assets.query import fetch
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import Context, Layout, columns, fill, fill_sections
from graphrag_assets.query.entities import entities_for
from graphrag_assets.query.options import CommonOptions, Count, OptionalCount, Options, PositiveCount, Share
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.paths import paths
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import respond
from graphrag_assets.query.results import Answer
from graphrag_assets.query.retrieval import CANDIDATES, find_texts, rarity_of, scaled, terms_of
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.languages import UNKNOWN, stems
from graphrag_assets.text.words import fold, search_words, sentences


@dataclass(frozen=True, kw_only=True)
class LocalOptions(Options):
    """Options of a local context; those of GraphRAG have its names and defaults unless something else is said.

    Args:
        read_all_tokens: if all text units that may be read have at most so many tokens, the context is these and
            nothing else, which could only repeat them; 0: never.
        text_unit_prop: share of the tokens for sources. What a section does not use goes to the others but the
            reports, first to the sources, then to the selected entities.
        community_prop: share of the tokens for reports; entities, relationships and claims get the rest.
        top_k_entities: number of entities.
        top_k_relationships: maximum number of relationships that lead out of the selection, per entity.
        max_context_tokens: maximum number of tokens of the context.
        hops: maximum length of the paths along which relationships are selected, the best paths first; the context
            has up to `top_k_entities` more entities, those that the best paths reach.
        use_community_summary: show the reports' summaries, not their full content.
        community_level: the deepest level of communities whose reports are used, 0 being the coarsest; None: all
            (GraphRAG: 2).
        include_covariates: add a section of claims: those that no text unit of the context states.
    """

    read_all_tokens: Count = 4_000
    text_unit_prop: Share = 0.7
    community_prop: Share = 0.1
    top_k_entities: Count = 10
    top_k_relationships: Count = 10
    max_context_tokens: PositiveCount = 6_000
    hops: Annotated[int, Field(ge=1, le=4)] = 1
    use_community_summary: bool = False
    community_level: OptionalCount = None
    include_covariates: bool = True

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.text_unit_prop + self.community_prop > 1 + 1e-9:  # sums of floats may exceed 1 a little
            raise QueryError(
                f"The option text_unit_prop is {self.text_unit_prop}, community_prop is "
                f"{self.community_prop}: both are shares of one whole; their sum must be at most 1."
            )
        return self


@dataclass(frozen=True, kw_only=True)
class LocalSearchOptions(CommonOptions, LocalOptions):
    """All options of `rag.local`."""

    max_context_tokens: PositiveCount = 6_000


async def build_context(ask: Ask[LocalSearchOptions]) -> Context:
    """Return the context of a local search."""
    await ask.embed(ask.question)
    return ask.add_context(await ask.in_thread(local_context, ask.reader, ask.question, ask.options, ask.scope))


async def answer(ask: Ask[LocalSearchOptions]) -> Answer:
    """Return an answer about particular things: from their part of the graph and the text that names them."""
    return await respond(ask, await build_context(ask))


_DEFAULTS = LocalOptions()
_SIMILAR_REPORTS = 10
"""Reports most similar to the question, which are ranked together with those of the entities' communities."""

REPORTS = Layout(
    "Reports", columns("id=human_readable_id title content=full_content"), title="title", text="full_content"
)
ENTITIES = Layout(
    "Entities",
    columns("id=human_readable_id entity=title type description") | {"number of relationships": "degree"},
    title="title",
    text="description",
)
RELATIONSHIPS = Layout(
    "Relationships",
    columns("id=human_readable_id source target type=predicates description weight links"),
    title="title",
    text="description",
)
RELATIONSHIPS_ON_PATHS = replace(RELATIONSHIPS, by_heading={**RELATIONSHIPS.without("links").by_heading, "hop": "hop"})
CLAIMS = Layout(
    "Claims",
    columns(
        "id=human_readable_id entity=subject_id object=object_id type status=state start_date end_date description"
    ),
    title="subject_id",
    text="description",
)
SOURCES = Layout("Sources", columns("id=human_readable_id context text"), title="context", text="text")

# Of the graph's share, the selected entities may use two thirds; relationships get two thirds of what they leave.
_OF_ENTITIES = _OF_RELATIONSHIPS = 2 / 3
_PRECEDENCE = ("Sources", "Entities", "Relationships", "Claims")
_MAX_TEXT_UNITS = 100
_MAX_EXCERPTS = 12  # of the best passages: splitting sentences takes time
_MAX_LINKS_COUNTED = 999  # the token counts of the publication allow for three digits
_MAX_SENTENCES = 3  # of an excerpt
_GAP = " … "


def local_context(
    reader: Reader, question: Question, options: LocalOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """Return the context of a local search: Entities, Relationships, Claims, Sources, Reports."""
    if whole := whole_context(reader, question, options, scope):
        return whole
    # Rank passages, entities and reports by the question.
    candidates = CANDIDATES + options.top_k_entities
    matches = find_texts(reader, question, ["text_unit", "entity", "community_report"], candidates, scope)
    passages = rank_passages(reader, question, _MAX_TEXT_UNITS, scope, matches=matches["text_unit"])
    described = list(matches["entity"].scores)
    entities = entities_for(reader, question, options.top_k_entities, scope, passages.scores, described)
    # Select what is around the entities, and the text that names them.
    limit, reached = options.top_k_relationships * len(entities), list[int]()
    if options.hops > 1 and entities:
        similarities = scaled(matches["entity"].scores)
        relationships, reached = paths(reader, similarities, entities, options.hops, scope, limit)
        layout, relationships = RELATIONSHIPS_ON_PATHS, relationships.drop("line_tokens", strict=False)
    else:
        layout, relationships = RELATIONSHIPS, fetch.relationships_around(reader, entities, limit, scope)
        if options.top_k_entities > _MAX_LINKS_COUNTED:
            relationships = relationships.drop("line_tokens", strict=False)
    shown_entities = [*entities, *reached[: options.top_k_entities]]
    units = _text_units(reader, passages.numbers, entities, scope)
    texts = _sources(reader, question, units, options, scope)
    reports = _reports(reader, entities, list(matches["community_report"].scores), options, scope)
    # Fill the context.
    graph = [
        (ENTITIES, fetch.entity_rows(reader, shown_entities, scope), _OF_ENTITIES),
        (layout, relationships, _OF_RELATIONSHIPS if options.include_covariates else 1.0),
    ]
    if options.include_covariates:
        claims = fetch.claims_about(reader, shown_entities, units, scope)
        graph.append((CLAIMS.with_dates(reader), _unstated(claims, texts, options), 1.0))
    groups = [
        (max(1 - options.text_unit_prop - options.community_prop, 0), graph),  # rounding must not make it negative
        (options.text_unit_prop, [(SOURCES.with_dates(reader), texts, 1.0)]),
        (options.community_prop, [(REPORTS, reports, 1.0)]),
    ]
    return Context("local", question.text, fill_sections(groups, options.max_context_tokens, _PRECEDENCE))


def whole_context(reader: Reader, question: Question, options: LocalOptions, scope: Scope) -> Context | None:
    """Return all text units of the scope, the best first, if they fit `read_all_tokens` and the context.

    Claims that have ended are beside them: the text of a claim does not say that a later one ended it.
    """
    layout = SOURCES.with_dates(reader)
    limit = min(options.read_all_tokens, options.max_context_tokens - layout.heading_tokens)
    everything = fetch.all_text_units(reader, limit, scope) if options.read_all_tokens else []
    if not everything:
        return None
    best = rank_passages(reader, question, _MAX_TEXT_UNITS, scope).numbers
    texts = fetch.sources(reader, list(dict.fromkeys([*best, *everything])), scope)
    sections = [fill(layout, texts, options.max_context_tokens)]
    if options.include_covariates:
        ended = fetch.claims_in(reader, everything, scope).filter("ended")
        if not ended.is_empty():
            left = options.max_context_tokens - sections[0].tokens
            sections.insert(0, fill(CLAIMS.with_dates(reader), ended, left))
    return Context("local", question.text, tuple(sections))


async def read_all(ask: Ask[Any], options: LocalOptions) -> Context | None:
    """`whole_context` as the context of the search in progress."""
    context = await ask.in_thread(whole_context, ask.reader, ask.question, options, ask.scope)
    return ask.add_context(replace(context, method=ask.method)) if context else None


def _unstated(claims: pl.DataFrame, texts: pl.DataFrame, options: LocalOptions) -> pl.DataFrame:
    """Return the claims that the context's text units do not state, and those that have ended."""
    room = max(options.text_unit_prop * options.max_context_tokens - SOURCES.heading_tokens, 0)
    stated = texts.filter(pl.col("line_tokens").fill_null(room + 1).cum_sum() <= room)["human_readable_id"]
    return claims.filter(pl.col("ended") | ~pl.col("text_unit_number").is_in(stated.to_list()))


def _text_units(reader: Reader, ranked: list[int], entities: list[int], scope: Scope) -> list[int]:
    """Return the ranked passages; where they are few, the text units that name the selected entities follow."""
    if len(ranked) < _MAX_TEXT_UNITS:
        ranked = [*ranked, *fetch.text_units_of(reader, entities, _MAX_TEXT_UNITS, scope)]
    return list(dict.fromkeys(ranked))[:_MAX_TEXT_UNITS]


def _sources(reader: Reader, question: Question, units: list[int], options: LocalOptions, scope: Scope) -> pl.DataFrame:
    """Return the passages; of the best of those that exceed their share of the tokens, excerpts."""
    texts = fetch.sources(reader, units, scope)
    share = options.text_unit_prop * options.max_context_tokens
    first = int((texts["line_tokens"].fill_null(0).cum_sum() <= share).sum())
    shortened = texts[first:_MAX_EXCERPTS]
    if shortened.is_empty():
        return texts
    excerpts = pl.Series(_excerpts(reader, question, shortened), dtype=pl.String)
    # The tokens of excerpts are counted when they are needed.
    shortened = shortened.with_columns(text=excerpts, line_tokens=pl.lit(None, texts.schema["line_tokens"]))
    return pl.concat([texts[:first], shortened, texts[_MAX_EXCERPTS:]])


def _excerpts(reader: Reader, question: Question, passages: pl.DataFrame) -> list[str]:
    """Return of each text the sentences that together have most of the question's rare words; else the whole text."""
    rarity = rarity_of(reader, [term for term, _ in terms_of(reader, question)])
    # The same rule as for the terms of a text: the main language if its own is unknown.
    main = next(iter(reader.languages), UNKNOWN)
    excerpts = []
    for text, language in passages.select("text", "language").iter_rows():
        parts = [text[span.start : span.end].strip() for span in sentences(text)]
        language = language if language in reader.languages else main
        words = search_words(pl.Series(parts, dtype=pl.String)).to_list()
        terms = [{fold(stem) for stem in stems(list(dict.fromkeys(each)), language)} & rarity.keys() for each in words]
        left, chosen = dict(rarity), list[int]()
        for _ in range(min(_MAX_SENTENCES, len(parts))):
            gains = [math.fsum(left.get(term, 0.0) for term in of_part) for of_part in terms]
            best = max(range(len(gains)), key=gains.__getitem__)
            if gains[best] <= 0:
                break
            chosen.append(best)
            left = {term: gain for term, gain in left.items() if term not in terms[best]}
        excerpts.append(_GAP.join(parts[place] for place in sorted(chosen)) or text)
    return excerpts


def _reports(
    reader: Reader, entities: list[int], similar: list[int], options: LocalOptions, scope: Scope
) -> pl.DataFrame:
    """Return reports on the entities' communities and those similar to the question, none below another."""
    level, best = options.community_level, similar[: 4 * _SIMILAR_REPORTS]
    reports = fetch.reports_about(reader, entities, scope, best, _SIMILAR_REPORTS, level)
    reports = fetch.without_relatives(reader, reports if level is None else reports.filter(pl.col("level") <= level))
    return summarized(reports, options.use_community_summary, options.community_prop * options.max_context_tokens)


def summarized(reports: pl.DataFrame, always: bool, limit: float) -> pl.DataFrame:
    """Return the reports, those with more than `limit` tokens with their summaries as `full_content`."""
    short = pl.lit(always) | (pl.col("line_tokens") > limit).fill_null(False)
    return reports.with_columns(
        full_content=pl.when(short).then("summary").otherwise("full_content"),
        line_tokens=pl.when(short).then("short_line_tokens").otherwise("line_tokens"),
    )
