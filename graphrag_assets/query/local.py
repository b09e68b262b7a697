"""Local search: the entities of a question, their neighborhood in the graph, and the text that names them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

import polars as pl
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from graphrag_assets.errors import QueryError
from graphrag_assets.query import fetch
from graphrag_assets.query import option_types as types
from graphrag_assets.query.ask import Ask, link_question
from graphrag_assets.query.context import Context, Layout, columns, fill, fill_sections
from graphrag_assets.query.entities import called_entities, entities_for
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.option_types import Options
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.paths import paths
from graphrag_assets.query.question import Question
from graphrag_assets.query.question_options import CommonOptions, LinkingOptions
from graphrag_assets.query.respond import respond
from graphrag_assets.query.results import Draft
from graphrag_assets.query.retrieval import CANDIDATES, find_texts, fuse, rarity_of, terms_of
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
        top_k_entities: number of entities, including those of `include_entity_names` (titles or aliases) and
            excluding those of `exclude_entity_names`.
        top_k_relationships: maximum number of relationships that lead out of the selection, per entity.
        max_context_tokens: maximum number of tokens of the context.
        hops: maximum length of the paths along which relationships are selected, the best paths first; the context
            has up to `top_k_entities` more entities, those that the best paths reach.
        use_community_summary: show the reports' summaries, not their full content.
        community_level: the deepest level of communities whose reports are used, 0 being the coarsest; None: all
            (GraphRAG: 2).
        include_covariates: add a section of claims: those that no text unit of the context states.
    """

    read_all_tokens: types.Count = 4_000
    text_unit_prop: types.Share = 0.7
    community_prop: types.Share = 0.1
    top_k_entities: types.Count = 10
    top_k_relationships: types.Count = 10
    max_context_tokens: types.PositiveCount = 6_000
    hops: Annotated[int, Field(ge=1, le=4, description="a whole number from 1 to 4")] = 1
    include_entity_names: types.Texts = ()
    exclude_entity_names: types.Texts = ()
    use_community_summary: types.Flag = False
    community_level: types.OptionalCount = None
    include_covariates: types.Flag = True

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.text_unit_prop + self.community_prop > 1 + 1e-9:  # sums of floats may exceed 1 a little
            raise QueryError(
                f"The search option text_unit_prop is {self.text_unit_prop}, community_prop is "
                f"{self.community_prop}: both are shares of one whole; their sum must be at most 1."
            )
        return self


@dataclass(frozen=True, kw_only=True)
class LocalSearchOptions(CommonOptions, LinkingOptions, LocalOptions):
    """All options of `rag.local`."""

    max_context_tokens: types.PositiveCount = 6_000


async def build_context(ask: Ask[LocalSearchOptions]) -> Context:
    """The context of a local search, within the tokens that the history leaves."""
    ask.question = await link_question(ask, ask.text, ask.question)
    await ask.embed(ask.question)
    return ask.add_context(
        await ask.in_thread(local_context, ask.reader, ask.question, ask.options_within_budget, ask.scope)
    )


async def answer(ask: Ask[LocalSearchOptions]) -> Draft:
    """An answer about particular things: from their part of the graph and the text that names them."""
    return await respond(ask, await build_context(ask))


_DEFAULTS = LocalOptions()
_SIMILAR_REPORTS = 10
"""Reports most similar to the question, which are ranked together with those of the entities' communities."""

REPORTS = Layout(
    "Reports",
    columns("id=human_readable_id title content=full_content"),
    title="title",
    text="full_content",
    short="summary",
    counted="line_tokens",
    short_counted="short_line_tokens",
)
ENTITIES = Layout(
    "Entities",
    columns("id=human_readable_id entity=title type description") | {"number of relationships": "degree"},
    title="title",
    text="description",
    counted="line_tokens",
)
RELATIONSHIPS = Layout(
    "Relationships",
    columns("id=human_readable_id source target type=predicates description weight links"),
    title="title",
    text="description",
    counted="line_tokens",
)
CLAIMS = Layout(
    "Claims",
    columns(
        "id=human_readable_id entity=subject_id object=object_id type status=state start_date end_date description"
    ),
    title="subject_id",
    text="description",
    counted="line_tokens",
)
SOURCES = Layout(
    "Sources",
    columns("id=human_readable_id context text"),
    title="context",
    text="text",
    short="excerpt",
    counted="line_tokens",
    short_counted="excerpt_tokens",
)

# Of the graph's share, the selected entities may use two thirds; relationships get two thirds of what they leave.
_OF_ENTITIES = _OF_RELATIONSHIPS = 2 / 3
_PRECEDENCE = ("Sources", "Entities", "Relationships", "Claims")
_MAX_TEXT_UNITS = 100
_MAX_EXCERPTS = 12  # of the best passages: splitting sentences takes time
_MAX_LINKS_COUNTED = 999  # the token counts of the publication allow for three digits


def local_context(
    reader: Reader,
    question: Question,
    options: LocalOptions = _DEFAULTS,
    scope: Scope = EVERYTHING,
) -> Context:
    """The context of a local search: Entities, Relationships, Claims, Sources, Reports, within the token limit.

    Raises:
        QueryError: an entity to include or to exclude does not exist.
    """
    if whole := whole_context(reader, question, options, scope):
        return whole
    candidates = CANDIDATES + options.top_k_entities + len(options.exclude_entity_names)
    found = find_texts(reader, question, ["text_unit", "entity", "community_report"], candidates, scope)
    passages = rank_passages(reader, question, _MAX_TEXT_UNITS, scope, found=found["text_unit"])
    layout = SOURCES.with_dates(reader)
    entities = entities_for(
        reader,
        question,
        options.top_k_entities,
        scope,
        include=options.include_entity_names,
        exclude=options.exclude_entity_names,
        passages=passages.scores,
        described=list(found["entity"].scores),
    )
    relationships, reached = _relationships(reader, question, entities, options, scope)
    known = [*entities, *reached]
    units = _text_units(reader, passages.numbers, entities, options, scope)
    texts = _sources(reader, question, units, options, scope)
    claims = fetch.claims_about(reader, known, units, scope) if options.include_covariates else None
    graph = max(1 - options.text_unit_prop - options.community_prop, 0)  # rounding must not make it negative
    of_graph = [
        (ENTITIES, fetch.entity_rows(reader, known, scope), _OF_ENTITIES),
        (_relationships_layout(options), relationships, 1.0 if claims is None else _OF_RELATIONSHIPS),
        *([] if claims is None else [(CLAIMS.with_dates(reader), _unstated(claims, texts, layout, options), 1.0)]),
    ]
    similar = list(found["community_report"].scores)[: 4 * _SIMILAR_REPORTS]
    reports = _reports(reader, entities, similar, options, scope)
    groups = [
        (graph, of_graph),
        (options.text_unit_prop, [(layout, texts, 1.0)]),
        (options.community_prop, [(reports_layout(options), reports, 1.0)]),
    ]
    return Context("local", question.text, fill_sections(groups, options.max_context_tokens, _PRECEDENCE))


def whole_context(reader: Reader, question: Question, options: LocalOptions, scope: Scope) -> Context | None:
    """All text units of the scope, those of the question first, if they fit `read_all_tokens` and the context.

    Claims that have ended are beside them: the text of a claim does not say that a later one ended it.
    """
    layout = SOURCES.with_dates(reader)
    limit = min(options.read_all_tokens, options.max_context_tokens - layout.heading_tokens)
    everything = fetch.all_text_units(reader, limit, scope) if options.read_all_tokens else []
    if not everything:
        return None
    best = rank_passages(reader, question, _MAX_TEXT_UNITS, scope).numbers
    texts = fetch.sources(reader, list(dict.fromkeys([*best, *everything])), scope)
    sources = fill(layout, texts, options.max_context_tokens)
    ended = fetch.claims_in(reader, everything, scope).filter("ended") if options.include_covariates else None
    if ended is None or ended.is_empty():
        return Context("local", question.text, (sources,))
    claims = fill(CLAIMS.with_dates(reader), ended, options.max_context_tokens - sources.tokens)
    return Context("local", question.text, (claims, sources))


async def read_all(ask: Ask[Any], options: LocalOptions) -> Context | None:
    """`whole_context` as the context of the search in progress."""
    found = await ask.in_thread(whole_context, ask.reader, ask.question, options, ask.scope)
    return ask.add_context(replace(found, method=ask.method)) if found else None


def _unstated(claims: pl.DataFrame, texts: pl.DataFrame, layout: Layout, options: LocalOptions) -> pl.DataFrame:
    """The claims that the context's text units do not state, and those that have ended."""
    room = options.text_unit_prop * options.max_context_tokens - layout.heading_tokens
    shown = texts.filter(pl.col("line_tokens").fill_null(room + 1).cum_sum() <= room)["human_readable_id"]
    return claims.filter(pl.col("ended") | ~pl.col("text_unit_number").is_in(shown.to_list()))


def _text_units(
    reader: Reader, passages: list[int], entities: list[int], options: LocalOptions, scope: Scope
) -> list[int]:
    """The passages of the question, fused with the text units that name the entities to include, if there are any.

    Where they are few, the text units that name the selected entities follow.
    """
    if included := called_entities(reader, options.include_entity_names, scope):
        passages = fuse(passages, fetch.text_units_of(reader, included, _MAX_TEXT_UNITS, scope))
    if len(passages) < _MAX_TEXT_UNITS:
        passages = [*passages, *fetch.text_units_of(reader, entities, _MAX_TEXT_UNITS, scope)]
    return list(dict.fromkeys(passages))[:_MAX_TEXT_UNITS]


def _sources(reader: Reader, question: Question, units: list[int], options: LocalOptions, scope: Scope) -> pl.DataFrame:
    """The passages; the best of those that exceed their share of the tokens have excerpts."""
    found = fetch.sources(reader, units, scope)
    share = options.text_unit_prop * options.max_context_tokens
    fitting = int((found["line_tokens"].fill_null(0).cum_sum() <= share).sum())
    if fitting >= _MAX_EXCERPTS or fitting == found.height:
        return found
    shortened = found[fitting:_MAX_EXCERPTS]
    made = excerpts(reader, question, shortened.select("text", "language").rows())
    texts = [*found["text"][:fitting], *made, *found["text"][_MAX_EXCERPTS:]]
    return found.with_columns(
        pl.Series("excerpt", texts, dtype=pl.String),
        # Of excerpts, tokens are counted when they are needed.
        excerpt_tokens=pl.when(pl.int_range(pl.len()).is_between(fitting, _MAX_EXCERPTS - 1))
        .then(0)
        .otherwise("line_tokens"),
    )


def _relationships(
    reader: Reader, question: Question, entities: list[int], options: LocalOptions, scope: Scope
) -> tuple[pl.DataFrame, list[int]]:
    """The relationships of the selected entities, or on paths from them; and the best entities that paths reach."""
    outside = options.top_k_relationships * len(entities)
    if options.hops > 1:
        found, reached = paths(reader, question, entities, options.hops, scope, outside)
        return found, reached[: options.top_k_entities]
    return fetch.relationships_around(reader, entities, outside, scope), []


def _reports(
    reader: Reader, entities: list[int], similar: list[int], options: LocalOptions, scope: Scope
) -> pl.DataFrame:
    """Reports on the entities' communities and those similar to the question, best first, none below another."""
    level = options.community_level
    reports = fetch.reports_about(reader, entities, scope, similar, _SIMILAR_REPORTS, level)
    return fetch.without_relatives(reader, reports if level is None else reports.filter(pl.col("level") <= level))


def reports_layout(options: LocalOptions) -> Layout:
    """The columns of reports."""
    return REPORTS.shortened() or REPORTS if options.use_community_summary else REPORTS


def _relationships_layout(options: LocalOptions) -> Layout:
    layout = RELATIONSHIPS
    if options.top_k_entities > _MAX_LINKS_COUNTED:
        layout = layout.showing(layout.shown)
    if options.hops == 1:
        return layout
    layout = layout.without("links")  # defined for one hop only
    return layout.showing({**layout.shown, "hop": "hop"})


MAX_SENTENCES = 3
GAP = " … "


def excerpts(reader: Reader, question: Question, passages: Sequence[tuple[str, str]]) -> list[str]:
    """Excerpts of passages (text, language); the whole text of one without a word of the question."""
    rarity = rarity_of(reader, [term for term, _ in terms_of(reader, question)])
    # The same rule as for the terms of a text: the main language if its own is unknown.
    main = next(iter(reader.languages), UNKNOWN)
    parts = [[text[span.start : span.end].strip() for span in sentences(text)] for text, _ in passages]
    of_parts = search_words(pl.Series([part for of_text in parts for part in of_text], dtype=pl.String))
    words = iter(of_parts.to_list())
    found = []
    for (text, language), of_text in zip(passages, parts, strict=True):
        known = language if language in reader.languages else main
        terms = [[fold(stem) for stem in stems(list(dict.fromkeys(next(words))), known)] for _ in of_text]
        asked = [[term for term in of_part if term in rarity] for of_part in terms]
        found.append(_excerpt(of_text, asked, rarity) or text)
    return found


def _excerpt(parts: Sequence[str], terms: Sequence[Sequence[str]], rarity: Mapping[str, float]) -> str:
    left, chosen = dict(rarity), list[int]()
    for _ in range(min(MAX_SENTENCES, len(parts))):
        gains = [sum(left.get(term, 0.0) for term in of_part) for of_part in terms]
        best = max(range(len(gains)), key=gains.__getitem__)
        if gains[best] <= 0:
            break
        chosen.append(best)
        for term in terms[best]:
            left.pop(term, None)
    return GAP.join(parts[place] for place in sorted(chosen))
