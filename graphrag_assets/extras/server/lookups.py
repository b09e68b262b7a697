"""What tools and addresses look up in a publication, within the filter of the client."""

from typing import Any

import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.query import fetch
from graphrag_assets.query.citations import place_of
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import word_scores
from graphrag_assets.query.scope import Scope
from graphrag_assets.store.publication_reader import Reader

Row = dict[str, Any]
_CANDIDATES = 5
_MAX_DIGITS = 9
"""Of a number that DuckDB takes as one of a row."""


class NotFoundError(QueryError):
    """There is no such row, or the client may not see it."""


def entity_number(reader: Reader, scope: Scope, name: str) -> int:
    """Return the number of the entity that a name or number means.

    Raises:
        NotFoundError: there is none; the message names the nearest ones.
    """
    if name.isdecimal() and len(name) <= _MAX_DIGITS and _entities(reader, scope, [int(name)]):
        return int(name)
    question = Question(name)
    if numbers := named_entities(reader, question, scope):
        return numbers[0]
    similar = list(word_scores(reader, "entity", question, _CANDIDATES, scope))
    near = [row["title"] for row in _entities(reader, scope, similar)]
    raise NotFoundError(f"There is no entity {name!r}. The nearest are: {', '.join(near) or 'none'}.")


def entity(reader: Reader, scope: Scope, name: str, limit: int = 20) -> Row:
    """Return an entity with its communities, its heaviest relationships and, by date, its claims: up to `limit` of
    each.
    """
    number = entity_number(reader, scope, name)
    (row,) = _entities(reader, scope, [number])
    related = fetch.relationships_around(reader, [number], limit, scope=scope)
    claims = fetch.claims_about(reader, [number], [], scope)
    columns = ("start_date", "end_date", "until", "status", "type", "description", "document", "document_date")
    dated = claims.sort("start_date", nulls_last=True, maintain_order=True).head(limit)
    communities = fetch.reports_about(reader, [number], scope)
    return row | {
        "relationships": _relationships(related),
        "claims": dated.select("human_readable_id", *columns).to_dicts(),
        "communities": communities.select("community", "level", "title", "summary").to_dicts(),
    }


def path(reader: Reader, scope: Scope, start: str, end: str, max_hops: int = 4) -> list[Row]:
    """Return the relationships that lead from one entity to another over the fewest steps, of these the heaviest; or
    none.
    """
    first, last = entity_number(reader, scope, start), entity_number(reader, scope, end)
    came: dict[int, tuple[int, int]] = {}  # by entity: the entity before it, and the relationship between them
    reached, leaving = {first}, [first]
    for _ in range(max_hops):
        if last in reached or not leaving:
            break
        steps = fetch.edges_of(reader, leaving, scope).filter(~pl.col("neighbor").is_in(list(reached)))
        best = steps.sort("weight", descending=True, maintain_order=True).unique(
            "neighbor", keep="first", maintain_order=True
        )
        for before, neighbor, relationship in best.select("entity", "neighbor", "human_readable_id").iter_rows():
            came[neighbor] = before, relationship
        leaving = best["neighbor"].to_list()
        reached.update(leaving)
    if last not in came:
        return []
    way = []
    while last != first:
        last, relationship = came[last]
        way.append(relationship)
    chosen = pl.DataFrame({"human_readable_id": way[::-1]}, schema={"human_readable_id": pl.Int64})
    return _relationships(fetch.relationship_rows(reader, chosen, scope))


def evidence(reader: Reader, scope: Scope, name: str, limit: int = 10) -> list[Row]:
    """Return the passages that name an entity, those that state most about it first."""
    number = entity_number(reader, scope, name)
    return passages(fetch.sources(reader, fetch.text_units_of(reader, [number], limit, scope), scope))


def communities(reader: Reader, scope: Scope, level: int | None = None, limit: int = 20) -> list[Row]:
    """Return the communities with a report, the most important first: community, level, size, title, summary."""
    tree = fetch.report_tree(reader, scope).drop_nulls("report")
    if level is not None:
        tree = tree.filter(pl.col("level") == level)
    chosen = tree.sort("rank", "community", descending=[True, False], nulls_last=True).head(limit)
    reports = fetch.report_rows(reader, chosen["report"].to_list())
    return reports.select("human_readable_id", "community", "level", "size", "rank", "title", "summary").to_dicts()


def passage(reader: Reader, scope: Scope, text_unit: str) -> Row | None:
    """Return a text unit with its document, by its id; None if there is none."""
    numbers = reader.numbers("SELECT human_readable_id FROM text_units WHERE id = $id", {"id": text_unit})
    rows = passages(fetch.sources(reader, numbers, scope))
    if not rows:
        return None
    (row,) = rows
    places, row_number = reader.rows(
        "SELECT places, row_number FROM documents WHERE id = $id", {"id": row["document_id"]}
    ).row(0)
    return row | {"place": place_of(places, row_number, row["start_char"])}


def passages(frame: pl.DataFrame) -> list[Row]:
    """Text units as `fetch.sources` has them, with names as citations have them."""
    return frame.select(
        "document",
        "document_id",
        "source",
        "document_date",
        pl.col("id").alias("text_unit_id"),
        "human_readable_id",
        "start_char",
        "end_char",
        "context",
        "text",
    ).to_dicts()


def _entities(reader: Reader, scope: Scope, numbers: list[int]) -> list[Row]:
    rows = fetch.entity_rows(reader, numbers, scope)
    return rows.select("human_readable_id", "id", "title", "type", "description", "degree").to_dicts()


def _relationships(rows: pl.DataFrame) -> list[Row]:
    return rows.select(
        "human_readable_id", "source", "target", pl.col("predicates").alias("type"), "description", "weight"
    ).to_dicts()
