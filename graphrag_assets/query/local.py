"""Local search: the neighbourhood of the entities a question is about, and the text they stand in."""

import time
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from graphrag_assets.query.at_once import later
from graphrag_assets.query.context import Context, Layout, fill_sections
from graphrag_assets.query.entities import called_entities, entities_for
from graphrag_assets.query.excerpts import excerpts
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.options import (
    check_choice,
    check_flags,
    check_names,
    check_number,
    check_shares,
    check_text,
    check_whole,
)
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.paths import paths
from graphrag_assets.query.retrieval import Question, fuse
from graphrag_assets.query.rows import (
    claims_about,
    entity_rows,
    relationships_around,
    reports_about,
    sources,
    text_units_of,
)
from graphrag_assets.store.publication_reader import Reader

MOST_HOPS = 4


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How a local context is put together; names and defaults are GraphRAG's.

    Reports get `community_prop` of the tokens, sources `text_unit_prop`, entities, relationships and claims the
    rest; what a section leaves unused goes to the others.

    Args:
        top_k_entities: exactly so many entities, those of `include_entity_names` (titles or aliases) among them and
            none of `exclude_entity_names`.
        top_k_relationships: most relationships that lead out of the selection, per entity.
        hops: relationships of paths of up to so many steps from the selected entities, the best paths first; as many
            entities again, the best that the paths reach, follow the selected ones.
        include_entity_rank: show each entity's degree, under the heading `rank_description`.
        include_relationship_weight: show each relationship's weight.
        relationship_ranking_attribute: weight, or rank (combined degree).
        include_community_rank: show each report's rank; those below `min_community_rank` are not used.
        include_covariates: a section of claims.
        return_candidate_context: the frames hold the rows that found no room too.
    """

    text_unit_prop: float = 0.5
    community_prop: float = 0.15
    top_k_entities: int = 10
    top_k_relationships: int = 10
    max_context_tokens: int = 12_000
    hops: int = 1
    include_entity_names: tuple[str, ...] = ()
    exclude_entity_names: tuple[str, ...] = ()
    include_entity_rank: bool = True
    rank_description: str = "number of relationships"
    include_relationship_weight: bool = True
    relationship_ranking_attribute: Literal["weight", "rank"] = "weight"
    include_community_rank: bool = False
    min_community_rank: float = 0.0
    include_covariates: bool = True
    return_candidate_context: bool = True

    def __post_init__(self) -> None:
        check_whole(self, "top_k_entities", "top_k_relationships")
        check_whole(self, "max_context_tokens", least=1)
        check_whole(self, "hops", least=1, most=MOST_HOPS)
        check_shares(self, "text_unit_prop", "community_prop")
        check_names(self, "include_entity_names", "exclude_entity_names")
        check_number(self, "min_community_rank")
        check_choice(self, "relationship_ranking_attribute", "weight", "rank")
        check_text(self, "rank_description")
        check_flags(
            self,
            "include_entity_rank",
            "include_relationship_weight",
            "include_community_rank",
            "include_covariates",
            "return_candidate_context",
        )


_DEFAULTS = LocalOptions()

REPORTS = Layout(
    "Reports",
    {"id": "human_readable_id", "title": "title", "content": "full_content"},
    title="title",
    text="full_content",
    short="summary",
    counted="line_tokens",
    short_counted="short_line_tokens",
)
RANKED_REPORTS = REPORTS.showing(
    {"id": "human_readable_id", "title": "title", "rank": "rank", "content": "full_content"}
)
ENTITIES = Layout(
    "Entities",
    {
        "id": "human_readable_id",
        "entity": "title",
        "description": "description",
        "number of relationships": "degree",
    },
    title="title",
    text="description",
    counted="line_tokens",
)
RELATIONSHIPS = Layout(
    "Relationships",
    {
        "id": "human_readable_id",
        "source": "source",
        "target": "target",
        "description": "description",
        "weight": "weight",
        "links": "links",
    },
    title="title",
    text="description",
    counted="line_tokens",
)
CLAIMS = Layout(
    "Claims",
    {
        "id": "human_readable_id",
        "entity": "subject_id",
        "object_id": "object_id",
        "status": "status",
        "start_date": "start_date",
        "end_date": "end_date",
        "description": "description",
    },
    title="subject_id",
    text="description",
    counted="line_tokens",
)
SOURCES = Layout(
    "Sources",
    {"id": "human_readable_id", "context": "context", "text": "text"},
    title="context",
    text="text",
    short="excerpt",
    counted="line_tokens",
    short_counted="excerpt_tokens",
)

# Of the tokens of the graph: what is said of the entities, of their relationships, and the claims.
_GRAPH_SHARES = (0.4, 0.4, 0.2)
_MOST_TEXT_UNITS = 100
_EXCERPTS = 12  # of the best passages so many at most: splitting sentences takes time
_MOST_LINKS_COUNTED = 999  # what is counted at publication allows for three digits


def local_context(
    reader: Reader, question: Question, options: LocalOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """The context of a local search: Reports, Entities, Relationships, Claims, Sources, within the token limit.

    Raises:
        QueryError: there is no entity of a name that is to be included or excluded.
    """
    started = time.perf_counter()
    passages = rank_passages(reader, question, _MOST_TEXT_UNITS, scope)
    entities = entities_for(
        reader,
        question,
        options.top_k_entities,
        scope,
        include=options.include_entity_names,
        exclude=options.exclude_entity_names,
        passages=passages.scores,
    )
    reports = later(lambda: reports_about(reader, entities, scope))
    relationships = later(lambda: _relationships(reader, question, entities, options, scope))
    known = [*entities, *(relationships.result()[1] if options.hops > 1 else [])]
    units = _text_units(reader, passages.numbers, options, scope)
    texts = later(lambda: _sources(reader, question, units, options, scope))
    claims = later(lambda: claims_about(reader, known, units, scope)) if options.include_covariates else None
    graph = max(1 - options.text_unit_prop - options.community_prop, 0)  # never below, however floats round
    of_entities, of_relationships, of_claims = (graph * share for share in _GRAPH_SHARES)
    planned = [
        (_reports_layout(options), _important(reports.result(), options), options.community_prop),
        (_entities_layout(options), entity_rows(reader, known, scope), of_entities),
        (_relationships_layout(options), relationships.result()[0], of_relationships),
        *([(CLAIMS, claims.result(), of_claims)] if claims else []),
        (SOURCES, texts.result(), options.text_unit_prop),
    ]
    sections = fill_sections(planned, options.max_context_tokens)
    if not options.return_candidate_context:
        sections = tuple(replace(section, frame=section.frame.filter("in_context")) for section in sections)
    return Context("local", question.text, sections, time.perf_counter() - started)


def _text_units(reader: Reader, passages: list[int], options: LocalOptions, scope: Scope) -> list[int]:
    """The passages found for the question; with entities to include, fused with the text units that name these."""
    included = called_entities(reader, options.include_entity_names, scope)
    if not included:
        return passages
    return fuse(passages, text_units_of(reader, included, _MOST_TEXT_UNITS, scope))[:_MOST_TEXT_UNITS]


def _sources(reader: Reader, question: Question, units: list[int], options: LocalOptions, scope: Scope) -> pl.DataFrame:
    """The passages; the best of those that do not fit their share of the tokens have excerpts."""
    found = sources(reader, units, scope)
    share = options.text_unit_prop * options.max_context_tokens
    fitting = int((found["line_tokens"].fill_null(0).cum_sum() <= share).sum())
    if fitting >= _EXCERPTS or fitting == found.height:
        return found
    shortened = found[fitting:_EXCERPTS]
    made = excerpts(reader, question, shortened.select("text", "language").rows())
    texts = [*found["text"][:fitting], *made, *found["text"][_EXCERPTS:]]
    return found.with_columns(
        pl.Series("excerpt", texts, dtype=pl.String),
        # Counted where it is the text; excerpts are counted when they are needed.
        excerpt_tokens=pl.when(pl.int_range(pl.len()).is_between(fitting, _EXCERPTS - 1))
        .then(0)
        .otherwise("line_tokens"),
    )


def _relationships(
    reader: Reader, question: Question, entities: list[int], options: LocalOptions, scope: Scope
) -> tuple[pl.DataFrame, list[int]]:
    """Those around the selected entities, or of paths from them; and the best entities that these paths reach."""
    outside = options.top_k_relationships * len(entities)
    if options.hops > 1:
        found, reached = paths(reader, question, entities, options.hops, scope, outside)
        return found, reached[: options.top_k_entities]
    return relationships_around(reader, entities, outside, options.relationship_ranking_attribute, scope), []


def _important(reports: pl.DataFrame, options: LocalOptions) -> pl.DataFrame:
    if options.min_community_rank <= 0:
        return reports
    return reports.filter(pl.col("rank").fill_null(0) >= options.min_community_rank)


def _reports_layout(options: LocalOptions) -> Layout:
    return RANKED_REPORTS if options.include_community_rank else REPORTS


def _entities_layout(options: LocalOptions) -> Layout:
    if not options.include_entity_rank:
        return ENTITIES.without("number of relationships")
    shown = {options.rank_description if c == "degree" else name: c for name, c in ENTITIES.shown.items()}
    return replace(ENTITIES, shown=shown)


def _relationships_layout(options: LocalOptions) -> Layout:
    layout = RELATIONSHIPS if options.include_relationship_weight else RELATIONSHIPS.without("weight")
    if options.top_k_entities > _MOST_LINKS_COUNTED:
        layout = layout.showing(layout.shown)
    if options.hops == 1:
        return layout
    layout = layout.without("links")  # how many selected entities the other end is linked with: of one hop only
    return layout.showing({**layout.shown, "hop": "hop"})
