"""What tools and addresses look up in a publication, within the filter of the client."""

from typing import Any

import polars as pl

from graphrag_assets.errors import QueryError
from graphrag_assets.query import fetch
from graphrag_assets.query.citations import place_of
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.filters import Scope
from graphrag_assets.query.retrieval import Question, search_texts
from graphrag_assets.store.publication_reader import Reader

Row = dict[str, Any]
_CANDIDATES = 5


class NotFoundError(QueryError):
    """There is no such row, or the client may not see it."""


def find_entities(reader: Reader, scope: Scope, text: str, limit: int = 10) -> list[Row]:
    """The entities that a text names, then those whose names and descriptions match it best."""
    question = Question(text)
    numbers = [*named_entities(reader, question, scope), *search_texts(reader, "entity", question, limit, scope)]
    return _entities(reader, scope, list(dict.fromkeys(numbers))[:limit])


def entity_number(reader: Reader, scope: Scope, name: str) -> int:
    """The number of the entity that a name or number means.

    Raises:
        NotFoundError: there is none; the message names the nearest ones.
    """
    if name.isdigit() and _entities(reader, scope, [int(name)]):
        return int(name)
    if found := named_entities(reader, Question(name), scope):
        return found[0]
    near = [row["title"] for row in find_entities(reader, scope, name, _CANDIDATES)]
    raise NotFoundError(f"There is no entity {name!r}. The nearest are: {', '.join(near) or 'none'}.")


def entity(reader: Reader, scope: Scope, name: str) -> Row:
    """An entity with its neighbors of the heaviest relationships, and the communities it belongs to."""
    number = entity_number(reader, scope, name)
    (row,) = _entities(reader, scope, [number])
    reports = fetch.reports_about(reader, [number], scope)
    return row | {
        "relationships": _relationships_of(reader, scope, number, 10),
        "communities": reports.select("community", "level", "title", "summary").to_dicts(),
    }


def relationships(reader: Reader, scope: Scope, name: str, limit: int = 30) -> list[Row]:
    """The relationships of an entity, the heaviest first: source, target, type, description, weight."""
    return _relationships_of(reader, scope, entity_number(reader, scope, name), limit)


def path(reader: Reader, scope: Scope, start: str, end: str, max_hops: int = 4) -> list[Row]:
    """The relationships that lead from one entity to another over the fewest steps, of these the heaviest; or none."""
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


def timeline(reader: Reader, scope: Scope, name: str) -> list[Row]:
    """The claims on an entity by date, undated ones last: dates, status, type, description, text unit."""
    number = entity_number(reader, scope, name)
    claims = fetch.claims_about(reader, [number], [], scope)
    columns = ("start_date", "end_date", "until", "status", "type", "description", "document_date")
    return (
        claims.join(_units(reader, claims["text_unit_number"].to_list()), on="text_unit_number", how="left")
        .select(*columns, "text_unit_id", "human_readable_id")
        .sort("start_date", nulls_last=True, maintain_order=True)
        .to_dicts()
    )


def evidence(reader: Reader, scope: Scope, name: str, limit: int = 10) -> list[Row]:
    """The passages that name an entity, those that state most about it first."""
    number = entity_number(reader, scope, name)
    return passages(fetch.sources(reader, fetch.text_units_of(reader, [number], limit, scope), scope))


def communities(reader: Reader, scope: Scope, level: int | None = None, limit: int = 30) -> list[Row]:
    """The communities with a report, the most important first: community, level, size, title, summary."""
    tree = fetch.report_tree(reader, scope).drop_nulls("report")
    if level is not None:
        tree = tree.filter(pl.col("level") == level)
    chosen = tree.sort("rank", "community", descending=[True, False], nulls_last=True).head(limit)
    reports = fetch.report_rows(reader, chosen["report"].to_list())
    sized = reports.join(chosen.select("community", "size"), on="community", how="left", maintain_order="left")
    return sized.select("human_readable_id", "community", "level", "size", "rank", "title", "summary").to_dicts()


def report(reader: Reader, scope: Scope, number: int) -> Row:
    """The report of a number (`human_readable_id`), with its full text.

    Raises:
        NotFoundError: there is none.
    """
    allowed = reader.numbers(
        "SELECT human_readable_id FROM community_reports "
        f"WHERE human_readable_id = $number AND {scope.allows('community_report', 'human_readable_id')}",
        {"number": number, **scope.parameters("community_report")},
    )
    if not allowed:
        raise NotFoundError(f"There is no report {number}.")
    rows = fetch.report_rows(reader, allowed)
    return rows.select("human_readable_id", "id", "community", "level", "rank", "title", "summary", "full_content").row(
        0, named=True
    )


def passage(reader: Reader, scope: Scope, text_unit: str) -> Row:
    """A text unit with its document, by its id or number.

    Raises:
        NotFoundError: there is none.
    """
    number = int(text_unit) if text_unit.isdigit() and len(text_unit) < 10 else -1
    numbers = reader.numbers(
        "SELECT human_readable_id FROM text_units WHERE id = $id OR human_readable_id = $number",
        {"id": text_unit, "number": number},
    )
    found = fetch.sources(reader, numbers, scope)
    if found.is_empty():
        raise NotFoundError(f"There is no text unit {text_unit!r}.")
    (row,) = passages(found)
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


def status(reader: Reader) -> Row:
    """Number of the publication and of its rows."""
    tables = ("documents", "text_units", "entities", "relationships", "covariates", "communities", "community_reports")
    counts = reader.rows("SELECT " + ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in tables))
    return {"publication": reader.publication, "rows": counts.row(0, named=True)}


def _entities(reader: Reader, scope: Scope, numbers: list[int]) -> list[Row]:
    rows = fetch.entity_rows(reader, numbers, scope)
    return rows.select("human_readable_id", "id", "title", "type", "description", "degree").to_dicts()


def _relationships_of(reader: Reader, scope: Scope, number: int, limit: int) -> list[Row]:
    return _relationships(fetch.relationships_around(reader, [number], limit, scope=scope))


def _relationships(rows: pl.DataFrame) -> list[Row]:
    return rows.select(
        "human_readable_id", "source", "target", pl.col("predicates").alias("type"), "description", "weight"
    ).to_dicts()


def _units(reader: Reader, numbers: list[int]) -> pl.DataFrame:
    return reader.rows(
        "SELECT human_readable_id AS text_unit_number, id AS text_unit_id FROM text_units "
        "WHERE human_readable_id IN (SELECT unnest($numbers::INT[]))",
        {"numbers": numbers},
    )
