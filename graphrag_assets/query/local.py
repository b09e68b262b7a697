"""Local search: the neighbourhood of the entities a question is about, and the text they stand in."""

import time
from dataclasses import dataclass

from graphrag_assets.query.context import Context, Layout, Section, fill
from graphrag_assets.query.options import check_shares, check_whole
from graphrag_assets.query.retrieval import Question, entities_for
from graphrag_assets.query.rows import (
    claims_about,
    entity_rows,
    ranked_text_units,
    relationships_around,
    reports_about,
    sources,
)
from graphrag_assets.store.published import Reader


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How a local context is put together; names and defaults are GraphRAG's.

    Reports get `community_prop` of the tokens, sources `text_unit_prop`, entities, relationships and claims the
    rest. What a section leaves unused goes to the next one.
    """

    top_k_entities: int = 10
    top_k_relationships: int = 10
    max_context_tokens: int = 12_000
    text_unit_prop: float = 0.5
    community_prop: float = 0.15

    def __post_init__(self) -> None:
        check_whole(self, "top_k_entities", "top_k_relationships")
        check_whole(self, "max_context_tokens", least=1)
        check_shares(self, "text_unit_prop", "community_prop")


_DEFAULTS = LocalOptions()

REPORTS = Layout(
    "Reports",
    {"id": "human_readable_id", "title": "title", "content": "full_content"},
    title="title",
    text="full_content",
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
)
SOURCES = Layout("Sources", {"id": "human_readable_id", "text": "text"}, title="document_title", text="text")

# Of the tokens of the graph: what is said of the entities, of their relationships, and the claims.
_GRAPH_SHARES = (0.4, 0.4, 0.2)
_MOST_TEXT_UNITS = 100


def local_context(reader: Reader, question: Question, options: LocalOptions = _DEFAULTS) -> Context:
    """The context of a local search: Reports, Entities, Relationships, Claims, Sources, within the token limit."""
    started = time.perf_counter()
    entities = entities_for(reader, question, options.top_k_entities)
    units = ranked_text_units(reader, question, entities, _MOST_TEXT_UNITS)
    outside = options.top_k_relationships * len(entities)
    graph = max(1 - options.text_unit_prop - options.community_prop, 0)  # never below, however floats round
    of_entities, of_relationships, of_claims = (graph * share for share in _GRAPH_SHARES)
    planned = [
        (REPORTS, reports_about(reader, entities), options.community_prop),
        (ENTITIES, entity_rows(reader, entities), of_entities),
        (RELATIONSHIPS, relationships_around(reader, entities, outside), of_relationships),
        (CLAIMS, claims_about(reader, entities, units), of_claims),
        (SOURCES, sources(reader, units), options.text_unit_prop),
    ]
    sections: list[Section] = []
    allowed, used = 0.0, 0
    for layout, candidates, share in planned:
        allowed += share * options.max_context_tokens
        sections.append(fill(layout, candidates, int(allowed) - used))
        used += sections[-1].tokens
    return Context("local", question.text, tuple(sections), time.perf_counter() - started)
