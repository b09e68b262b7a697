"""Fetches the rows of contexts by number: text units, entities, relationships, claims, reports.

With a scope, rows outside it are left out, and the others are as it describes them.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import fuse, search_texts
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.store.token_counts import without_citations

MAX_CLAIMS = 200
_ALL = 1_000_000_000


def text_units_of(reader: Reader, entities: list[int], limit: int, scope: Scope = EVERYTHING) -> list[int]:
    """Return text units that name the entities, by the entities' order, then by how many relationships they state."""
    return reader.numbers(
        f"""
        SELECT t.text_unit
        FROM search.entity_text_units t JOIN (
            SELECT unnest($entities::INT[]) AS entity, generate_subscripts($entities::INT[], 1) AS place
        ) e USING (entity)
        WHERE {scope.allows("text_unit", "t.text_unit")}
        GROUP BY t.text_unit
        ORDER BY min(e.place), arg_min(t.n_relationships, e.place) DESC, t.text_unit
        LIMIT $limit
        """,
        {"entities": entities, "limit": limit},
    )


def all_text_units(reader: Reader, max_tokens: int, scope: Scope = EVERYTHING) -> list[int]:
    """Return the text units of the scope in the order of their documents; none if they have more than `max_tokens`."""
    if scope.is_everything and reader.source_tokens > max_tokens:
        return []
    return reader.numbers(
        f"""
        SELECT human_readable_id FROM text_units WHERE {scope.allows("text_unit", "human_readable_id")}
        QUALIFY sum(line_tokens) OVER () <= $max_tokens ORDER BY document_id, start_char
        """,
        {"max_tokens": max_tokens},
    )


def sources(reader: Reader, units: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the text units in the order given, with their contexts and the title, file and date of their documents."""
    frame = reader.rows(
        f"""
        SELECT t.human_readable_id, t.id, t.context, t.text, t.n_tokens, t.document_id, t.start_char, t.end_char,
               t.line_tokens, d.title AS document, d.source, coalesce(d.language, 'und') AS language,
               d.document_date
        FROM text_units t LEFT JOIN documents d ON d.id = t.document_id
        WHERE t.human_readable_id IN (SELECT unnest($units::INT[]))
          AND {scope.allows("text_unit", "t.human_readable_id")}
        """,
        {"units": units},
    )
    return in_order(frame, units)


def entity_rows(reader: Reader, entities: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the entities in the order given: human_readable_id, id, title, type, description, degree, frequency."""
    frame = reader.rows(
        f"""
        SELECT human_readable_id, id, title, type, description, degree, frequency, line_tokens
        FROM {scope.entities} WHERE human_readable_id IN (SELECT unnest($entities::INT[]))
        """,
        {"entities": entities},
    )
    return in_order(frame, entities)


def relationships_around(
    reader: Reader, entities: list[int], limit_outside: int, scope: Scope = EVERYTHING
) -> pl.DataFrame:
    """Return relationships inside the selection, best first, then at most `limit_outside` that lead out of it.

    The latter are sorted by the number of selected entities that their other end is linked with (`links`), then by
    weight. Of both, those that are over come last.

    Returns:
        the columns of `relationship_rows`, and in_network, links, combined_degree.
    """
    rows = _relationships(
        reader,
        f"""
        WITH selected AS (SELECT unnest($entities::INT[]) AS entity),
        touching AS (
            SELECT relationship AS number, weight AS edge_weight, combined_degree,
                   neighbor IN (FROM selected) AS in_network, count(*) OVER (PARTITION BY neighbor) AS n
            FROM {scope.edges} WHERE entity IN (FROM selected)
        ), chosen AS (
            SELECT DISTINCT number, in_network, CASE WHEN in_network THEN 0 ELSE n END AS links, combined_degree,
                   edge_weight
            FROM touching
        )
        SELECT * EXCLUDE (edge_weight), row_number() OVER (
            ORDER BY in_network DESC, links DESC, edge_weight DESC, combined_degree DESC, number
        ) AS place
        FROM chosen QUALIFY in_network OR place <= $limit + count(*) FILTER (in_network) OVER ()
        """,
        {"entities": entities, "limit": limit_outside},
        scope,
    )
    return rows.sort(~pl.col("in_network"), "over", maintain_order=True)


def relationship_rows(reader: Reader, chosen: pl.DataFrame, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the relationships of `chosen` (human_readable_id and other columns), in its order.

    Returns:
        human_readable_id, id, source, target, type, description, weight, predicates, over, title, and the other
        columns; see `Scope.relationships`.
    """
    numbers = chosen["human_readable_id"].to_list()
    query = "SELECT unnest($numbers::INT[]) AS number, generate_subscripts($numbers::INT[], 1) AS place"
    rows = _relationships(reader, query, {"numbers": numbers}, scope)
    return rows.join(chosen, on="human_readable_id", maintain_order="left") if chosen.width > 1 else rows


def _relationships(reader: Reader, chosen: str, parameters: Mapping[str, object], scope: Scope) -> pl.DataFrame:
    """Return the relationships that the query `chosen` gives: number, place and other columns."""
    return reader.rows(
        f"""
        SELECT human_readable_id, id, source, target, type, description, round(weight, 2) AS weight, line_tokens,
               predicates, over, c.* EXCLUDE (number, place), source || ' – ' || target AS title
        FROM ({chosen}) c JOIN {scope.relationships} ON human_readable_id = c.number ORDER BY c.place
        """,
        parameters,
    )


def edges_of(reader: Reader, entities: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the relationships of the entities, as edges that start at them.

    Returns:
        entity, neighbor, human_readable_id, weight, combined_degree; by entity, then neighbor.
    """
    return reader.rows(
        f"""
        SELECT entity, neighbor, relationship AS human_readable_id, weight, combined_degree FROM {scope.edges}
        WHERE entity IN (SELECT unnest($entities::INT[])) ORDER BY ALL
        """,
        {"entities": entities},
    )


def claims_about(reader: Reader, entities: list[int], units: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Claims on the entities, and the claims of the text units whose subject is no entity.

    First those made in the best text units, then by the entities' order; superseded ones last. With the dates of their
    documents.
    """
    of_units = "subject_number IS NULL AND text_unit_number IN (SELECT unnest($units::INT[]))"
    of_entities = " OR ".join(f"{end}_number IN (SELECT unnest($entities::INT[]))" for end in ("subject", "object"))
    return _claims(reader, f"{of_entities} OR ({of_units})", entities, units, scope)


def claims_in(reader: Reader, units: list[int], scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the claims made in the text units, in the order of these, superseded ones last. With their documents'
    dates.
    """
    return _claims(reader, "text_unit_number IN (SELECT unnest($units::INT[]))", [], units, scope)


def _claims(reader: Reader, condition: str, entities: list[int], units: list[int], scope: Scope) -> pl.DataFrame:
    """Return the claims that meet a condition, with the titles and dates of their documents.

    `subject_id`, `object_id`: the titles of these entities; if the scope limits the text, the names as written.
    `until`: the day from which another statement of the scope holds; `state`: the status with this day. The description
    of what has ended says when; `ended`: its text does not.
    """
    claims = reader.rows(
        f"""
        WITH chosen AS (
            SELECT human_readable_id AS number, list_position($units::INT[], text_unit_number) AS unit_place, least(
                list_position($entities::INT[], subject_number), list_position($entities::INT[], object_number)
            ) AS entity_place
            FROM covariates WHERE ({condition}) AND {scope.allows("text_unit", "text_unit_number")}
            ORDER BY unit_place NULLS LAST, entity_place, number LIMIT {MAX_CLAIMS}
        )
        SELECT c.human_readable_id, c.id, c.type, c.status, c.start_date, c.end_date, c.description,
               coalesce(s.title, c.subject_id) AS subject_id, coalesce(o.title, c.object_id) AS object_id,
               CASE WHEN coalesce(s.title = c.subject_id, true) AND coalesce(o.title = c.object_id, true)
                    THEN c.line_tokens END AS line_tokens,  -- null: counted when it is needed
               c.text_unit_number, c.document_id, d.title AS document,
               c.until, d.document_date
        FROM chosen JOIN {scope.claims} c ON c.human_readable_id = number LEFT JOIN documents d ON d.id = c.document_id
        LEFT JOIN entities s ON $titles AND s.human_readable_id = c.subject_number
        LEFT JOIN entities o ON $titles AND o.human_readable_id = c.object_number
        ORDER BY unit_place NULLS LAST, entity_place, number
        """,
        {"entities": entities, "units": units, "titles": not scope.limits_text},
    )
    interval = pl.when(pl.col("end_date").ne_missing(pl.col("start_date"))).then("end_date")
    end = pl.coalesce(pl.col("until").cast(pl.String), interval)
    unsaid = end.is_not_null() & ~pl.col("description").str.contains(end.str.head(4), literal=True)
    return claims.with_columns(
        state=pl.concat_str("status", pl.format(" until {}", "until"), ignore_nulls=True),
        description=pl.when(unsaid).then(pl.format("{} (until {})", "description", end)).otherwise("description"),
        line_tokens=pl.when(~unsaid).then("line_tokens"),  # null: counted when it is needed
        ended=unsaid | pl.col("until").is_not_null(),
    ).sort(pl.col("until").is_not_null(), maintain_order=True)


_REPORT = f"""
r.human_readable_id, r.id, r.title, r.summary, {without_citations("r.full_content")} AS full_content, r.findings,
r.rank, r.level, r.community, r.content_tokens, r.summary_tokens, r.line_tokens, r.short_line_tokens, r.parent, r.size
"""


MIN_ENTITIES_OF_SIMILAR = 3
"""The report on a smaller community repeats what a context says of its entities."""


def reports_about(
    reader: Reader,
    entities: list[int],
    scope: Scope = EVERYTHING,
    similar: Sequence[int] = (),
    n_similar: int = 0,
    level: int | None = None,
) -> pl.DataFrame:
    """Return reports of the entities' communities at all levels, by the number of the entities in them, then by rank.

    Of the reports `similar` to the question, best first, the first `n_similar` on communities of at least three
    entities, down to `level` if it is given, are added; their ranking and that of the others are fused.
    """
    reports = reader.rows(
        f"""
        WITH matched AS (
            SELECT community, count(DISTINCT entity) AS matches FROM search.entity_communities
            WHERE entity IN (SELECT unnest($entities::INT[])) GROUP BY community
        ), nearest AS (
            SELECT community, list_position($similar::INT[], r.human_readable_id) AS place
            FROM community_reports r JOIN communities c USING (community)
            WHERE r.human_readable_id IN (SELECT unnest($similar::INT[]))
              AND c.size >= $least AND r.level <= coalesce($level::INT, r.level)
            ORDER BY place LIMIT $n_similar
        )
        SELECT {_REPORT}, coalesce(m.matches, 0) AS matches, m.place
        FROM community_reports r JOIN (FROM matched FULL JOIN nearest USING (community)) m USING (community)
        WHERE {scope.allows("community_report", "r.human_readable_id")}
        ORDER BY m.matches DESC NULLS LAST, r.rank DESC, r.level, r.human_readable_id
        """,
        {
            "entities": entities,
            "similar": list(similar),
            "n_similar": n_similar,
            "least": MIN_ENTITIES_OF_SIMILAR,
            "level": level,
        },
    )
    reports = reports.with_columns(pl.col("parent", "size").fill_null(-1))
    by_entities = reports.filter(pl.col("matches") > 0)["human_readable_id"].to_list()
    by_similarity = reports.drop_nulls("place").sort("place")["human_readable_id"].to_list()
    return in_order(reports.drop("place"), fuse(by_entities, by_similarity) if by_similarity else by_entities)


def without_relatives(reader: Reader, reports: pl.DataFrame) -> pl.DataFrame:
    """Return the reports, best first, without those on communities below or above that of a better one."""
    chosen, above_chosen = set[int](), set[int]()
    for community in reports["community"]:
        above, parent = list[int](), reader.parents.get(community, -1)
        while parent >= 0:
            above.append(parent)
            parent = reader.parents.get(parent, -1)
        if community not in above_chosen and chosen.isdisjoint(above):
            chosen.add(community)
            above_chosen.update(above)
    return reports.filter(pl.col("community").is_in(list(chosen)))


def level_reports(reader: Reader, level: int, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the reports that cover every entity once: those of the communities at `level`, or the deepest above it.

    Entities that are alone in their community have none. Membership is level-complete, so the roll-up is a plain
    filter. If a filter excludes a community's report, those of its largest allowed sub-communities replace it.
    `occurrence_weight` is the number of distinct text units that name a member, as a share of the maximum.

    Returns:
        human_readable_id, id, community, level, title, summary, content, findings, rank, content_tokens,
        summary_tokens, text_units, occurrence_weight; by weight, then rank.
    """
    return reader.query(
        f"""
        WITH members AS (
            SELECT entity, arg_min(community, level) AS community FROM search.entity_communities
            WHERE level >= (SELECT least($level, max(level)) FROM search.entity_communities) AND community IN (
                SELECT community FROM community_reports WHERE {scope.allows("community_report", "human_readable_id")}
            )
            GROUP BY entity
        ), weights AS (
            SELECT community, coalesce(len(text_unit_ids), 0) AS text_units FROM communities
            WHERE community IN (SELECT community FROM members)
        )
        SELECT r.human_readable_id, r.id, r.community, r.level, r.title, r.summary,
               {without_citations("r.full_content")} AS content,
               r.findings, r.rank, r.content_tokens, r.summary_tokens, w.text_units,
               round(w.text_units / greatest(max(w.text_units) OVER (), 1), 4) AS occurrence_weight
        FROM community_reports r JOIN weights w USING (community)
        ORDER BY w.text_units DESC, r.rank DESC, r.human_readable_id
        """,
        {"level": level},
    )


def nearest_reports(
    reader: Reader, question: Question, limit: int, scope: Scope = EVERYTHING, level: int | None = None
) -> list[int]:
    """Return the reports that match the question best, best first; with a `level`, of that level and above it.

    Where fewer match, as by words alone, those of the highest rank follow.
    """
    upper = reader.numbers(
        f"""
        SELECT human_readable_id FROM community_reports
        WHERE level <= coalesce($level::INT, level) AND {scope.allows("community_report", "human_readable_id")}
        ORDER BY rank DESC NULLS LAST, level, human_readable_id
        """,
        {"level": level},
    )
    allowed = set(upper)
    nearest = [n for n in search_texts(reader, "community_report", question, _ALL, scope) if n in allowed]
    return list(dict.fromkeys([*nearest, *upper]))[:limit]


def report_rows(reader: Reader, numbers: list[int]) -> pl.DataFrame:
    """Return the reports of these numbers, in the order given.

    Returns:
        human_readable_id, id, title, summary, full_content, findings, rank, level, community, content_tokens,
        summary_tokens.
    """
    frame = reader.rows(
        f"SELECT {_REPORT} FROM community_reports r WHERE r.human_readable_id IN (SELECT unnest($numbers::INT[]))",
        {"numbers": numbers},
    )
    return in_order(frame, numbers)


def report_tree(reader: Reader, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return the hierarchy of communities with their reports, for searches that go down it.

    Returns:
        community, parent, level, children, size, report (human_readable_id; null without one in the scope), rank,
        text_units (distinct ones in the scope that name a member); by level, then community.
    """
    return reader.query(
        f"""
        WITH weights AS (
            SELECT m.community, count(DISTINCT t.text_unit) AS text_units
            FROM (SELECT DISTINCT entity, community FROM search.entity_communities) m
            JOIN search.entity_text_units t USING (entity)
            WHERE {scope.allows("text_unit", "t.text_unit")} GROUP BY m.community
        ), reports AS (
            SELECT community, human_readable_id, rank FROM community_reports
            WHERE {scope.allows("community_report", "human_readable_id")}
        )
        SELECT c.community, c.parent, c.level, c.children, c.size, r.human_readable_id AS report, r.rank,
               coalesce(w.text_units, 0) AS text_units
        FROM communities c LEFT JOIN reports r USING (community) LEFT JOIN weights w USING (community)
        ORDER BY c.level, c.community
        """,
    )


def in_order(frame: pl.DataFrame, numbers: list[int]) -> pl.DataFrame:
    """`frame` with its rows in the order of `numbers`."""
    place = {number: i for i, number in enumerate(frame["human_readable_id"])}
    return frame[[place[number] for number in numbers if number in place]]
