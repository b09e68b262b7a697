"""Local search: the neighbourhood of the entities a question is about, and the text they stand in."""

import time
from dataclasses import dataclass

import polars as pl

from graphrag_assets.query.context import Context, Layout, Section, fill
from graphrag_assets.query.options import check_shares, check_whole
from graphrag_assets.query.retrieval import Question, by_vector, by_words, entities_for, fuse
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
_MOST_CLAIMS = 200
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


def ranked_text_units(reader: Reader, question: Question, entities: list[int], limit: int) -> list[int]:
    """Text units for the question, best first.

    Three rankings are fused: the entities' text units (by the entities' order, then by how many of the entity's
    relationships they state), BM25, and vectors. So a fact is found even when none of its entities is.
    """
    by_entity = reader.numbers(
        """
        SELECT t.text_unit
        FROM entity_text_units t JOIN (
            SELECT unnest($entities::INT[]) AS entity, generate_subscripts($entities::INT[], 1) AS place
        ) e USING (entity)
        GROUP BY t.text_unit
        ORDER BY min(e.place), arg_min(t.n_relationships, e.place) DESC, t.text_unit
        LIMIT $limit
        """,
        {"entities": entities, "limit": limit},
    )
    words = by_words(reader, "text_unit", question, limit)
    vectors = by_vector(reader, "text_unit", question, limit)
    return fuse(by_entity, words, vectors)[:limit]


def sources(reader: Reader, units: list[int]) -> pl.DataFrame:
    """The text units in the order given, with the title and the file of their documents."""
    frame = reader.rows(
        """
        SELECT t.human_readable_id, t.id, t.text, t.n_tokens, t.document_id, t.start_char, t.end_char,
               d.title AS document_title, d.source
        FROM text_units t LEFT JOIN documents d ON d.id = t.document_id
        WHERE t.human_readable_id IN (SELECT unnest($units::INT[]))
        """,
        {"units": units},
    )
    return in_order(frame, units)


def entity_rows(reader: Reader, entities: list[int]) -> pl.DataFrame:
    frame = reader.rows(
        """
        SELECT human_readable_id, id, title, type, description, degree, frequency
        FROM entities WHERE human_readable_id IN (SELECT unnest($entities::INT[]))
        """,
        {"entities": entities},
    )
    return in_order(frame, entities)


def relationships_around(reader: Reader, entities: list[int], limit_outside: int) -> pl.DataFrame:
    """Relationships inside the selection by weight, then at most `limit_outside` that lead out of it: first those
    whose other end is linked with most of the selected entities, then by weight."""
    touching = reader.rows(
        """
        SELECT relationship AS human_readable_id, in_network, CASE WHEN in_network THEN 0 ELSE linked END AS links,
               combined_degree
        FROM (
            SELECT relationship, neighbour IN (SELECT unnest($entities::INT[])) AS in_network,
                   count(*) OVER (PARTITION BY neighbour) AS linked, weight, combined_degree
            FROM edges WHERE entity IN (SELECT unnest($entities::INT[]))
        )
        ORDER BY in_network DESC, links DESC, weight DESC, combined_degree DESC, relationship LIMIT $limit
        """,
        {"entities": entities, "limit": limit_outside + len(entities) ** 2},
    )
    inside = touching.filter("in_network").unique("human_readable_id", maintain_order=True)  # found from both ends
    outside = touching.filter(~pl.col("in_network")).head(limit_outside)
    chosen = pl.concat([inside, outside])
    details = reader.rows(
        """
        SELECT human_readable_id, id, source, target, source || ' – ' || target AS title, description,
               round(weight, 2) AS weight
        FROM relationships WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))
        """,
        {"numbers": chosen["human_readable_id"].to_list()},
    )
    return details.join(chosen, on="human_readable_id", maintain_order="right")


def claims_about(reader: Reader, entities: list[int], units: list[int]) -> pl.DataFrame:
    """Claims on the entities: first those made in the best text units, then by the entities' order."""
    return reader.rows(
        """
        WITH selected AS (
            SELECT unnest($entities::INT[]) AS entity, generate_subscripts($entities::INT[], 1) AS place
        ), units AS (
            SELECT unnest($units::INT[]) AS unit, generate_subscripts($units::INT[], 1) AS place
        ), touching AS (
            SELECT c.* , least(s.place, o.place) AS entity_place
            FROM covariates c
            LEFT JOIN selected s ON s.entity = c.subject_number LEFT JOIN selected o ON o.entity = c.object_number
            WHERE s.place IS NOT NULL OR o.place IS NOT NULL
        )
        SELECT t.human_readable_id, t.id, t.subject_id, t.object_id, t.type, t.status, t.start_date, t.end_date,
               t.description, t.text_unit_number
        FROM touching t LEFT JOIN units u ON u.unit = t.text_unit_number
        ORDER BY u.place NULLS LAST, t.entity_place, t.human_readable_id LIMIT $limit
        """,
        {"entities": entities, "units": units, "limit": _MOST_CLAIMS},
    )


def reports_about(reader: Reader, entities: list[int]) -> pl.DataFrame:
    """Reports of the entities' communities at all levels, first those with most of the entities, then by rank."""
    return reader.rows(
        """
        WITH matched AS (
            SELECT community, count(DISTINCT entity) AS matches FROM entity_communities
            WHERE entity IN (SELECT unnest($entities::INT[])) GROUP BY community
        )
        SELECT r.human_readable_id, r.id, r.title, r.summary, r.full_content, r.findings, r.rank, r.level, r.community,
               m.matches
        FROM community_reports r JOIN matched m USING (community)
        ORDER BY m.matches DESC, r.rank DESC, r.level, r.human_readable_id
        """,
        {"entities": entities},
    )


def in_order(frame: pl.DataFrame, numbers: list[int]) -> pl.DataFrame:
    """`frame` with its rows in the order of `numbers`."""
    place = frame["human_readable_id"].replace_strict(numbers, list(range(len(numbers))), return_dtype=pl.Int64)
    return frame.with_columns(place.alias("place")).sort("place").drop("place")
