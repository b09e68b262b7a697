"""The rows that contexts are made of, fetched by number: text units, entities, relationships, claims, reports."""

from typing import Literal

import polars as pl

from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.retrieval import Question, by_vector, by_words, fuse
from graphrag_assets.store.published import Reader

MOST_CLAIMS = 200


def ranked_text_units(
    reader: Reader, question: Question, entities: list[int], limit: int, scope: Scope = EVERYTHING
) -> list[int]:
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


def sources(reader: Reader, units: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
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


def entity_rows(reader: Reader, entities: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    frame = reader.rows(
        """
        SELECT human_readable_id, id, title, type, description, degree, frequency
        FROM entities WHERE human_readable_id IN (SELECT unnest($entities::INT[]))
        """,
        {"entities": entities},
    )
    return in_order(frame, entities)


def relationships_around(
    reader: Reader,
    entities: list[int],
    limit_outside: int,
    ranking: Literal["weight", "rank"] = "weight",
    scope: Scope = EVERYTHING,
) -> pl.DataFrame:
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


def claims_about(reader: Reader, entities: list[int], units: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
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
        {"entities": entities, "units": units, "limit": MOST_CLAIMS},
    )


def reports_about(reader: Reader, entities: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
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


def level_reports(reader: Reader, level: int, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """The reports that together speak of every entity once: of its community at `level`, or of its deepest.

    Membership is level-complete, so the roll-up is a plain filter. `occurrence_weight` is the number of distinct
    text units that name a member, as a part of the largest such number.

    Returns:
        human_readable_id, id, community, level, title, summary, content, findings, rank, text_units,
        occurrence_weight; by weight, then rank.
    """
    return reader.rows(
        """
        WITH members AS (
            SELECT entity, community FROM entity_communities
            WHERE level = (SELECT least($level, max(level)) FROM entity_communities)
        ), weights AS (
            SELECT m.community, count(DISTINCT t.text_unit) AS text_units
            FROM members m LEFT JOIN entity_text_units t USING (entity) GROUP BY m.community
        )
        SELECT r.human_readable_id, r.id, r.community, r.level, r.title, r.summary, r.full_content AS content,
               r.findings, r.rank, w.text_units,
               round(w.text_units / greatest(max(w.text_units) OVER (), 1), 4) AS occurrence_weight
        FROM community_reports r JOIN weights w USING (community)
        ORDER BY w.text_units DESC, r.rank DESC, r.human_readable_id
        """,
        {"level": level},
    )


def report_rows(reader: Reader, numbers: list[int]) -> pl.DataFrame:
    """The reports of these numbers, in the order given.

    Returns:
        human_readable_id, id, title, summary, full_content, findings, rank, level, community.
    """
    frame = reader.rows(
        """
        SELECT human_readable_id, id, title, summary, full_content, findings, rank, level, community
        FROM community_reports WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))
        """,
        {"numbers": numbers},
    )
    return in_order(frame, numbers)


def report_tree(reader: Reader, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """The hierarchy of communities with their reports, for searches that go down it.

    Returns:
        community, parent, level, children, report (human_readable_id; null without one), rank, text_units (distinct
        ones that name a member); by level, then community.
    """
    return reader.rows(
        """
        WITH weights AS (
            SELECT m.community, count(DISTINCT t.text_unit) AS text_units
            FROM (SELECT DISTINCT entity, community FROM entity_communities) m
            LEFT JOIN entity_text_units t USING (entity) GROUP BY m.community
        )
        SELECT c.community, c.parent, c.level, c.children, r.human_readable_id AS report, r.rank,
               coalesce(w.text_units, 0) AS text_units
        FROM communities c LEFT JOIN community_reports r USING (community) LEFT JOIN weights w USING (community)
        ORDER BY c.level, c.community
        """
    )
