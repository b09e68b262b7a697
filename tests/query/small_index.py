"""Publishes a small index of what its text units say, as a run does."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from graphrag_assets.store import schema
from graphrag_assets.store.index_database import IndexDatabase, assign_numbers, replace_table
from graphrag_assets.store.publication_writer import publish
from graphrag_assets.text.words import title_key
from tests.pipeline.frames import merge
from tests.word_vectors import embed

Row = dict[str, Any]


def frame_of(table: schema.Table, rows: Sequence[Row]) -> pl.DataFrame:
    """The rows with all columns of the table, null where they lack one."""
    columns = {name: [row.get(name) for row in rows] for name in table.column_names}
    types = {
        column.name: schema.POLARS_TYPES[column.type] for column in table.columns if column.type in schema.POLARS_TYPES
    }
    return pl.DataFrame(columns, schema_overrides=types, infer_schema_length=None)


def write_publication(
    folder: Path,
    documents: Sequence[Row],
    units: Sequence[Row],
    entities: Iterable[tuple[str, str, str, str]],
    relationships: Iterable[tuple[str, str, str, str, float, str]] = (),
    claims: Sequence[Row] = (),
    communities: Mapping[int, tuple[int, int, Sequence[str]]] = MappingProxyType({}),
    reports: Sequence[Row] = (),
    aliases: Iterable[tuple[str | None, str, str]] = (),
    model: str = "",
) -> Path:
    """Publish an index; its entities and relationships are numbered in the order of their first mentions.

    Args:
        documents, units, claims, reports: some of the columns of their tables.
        entities: mentions: text unit, title, type, description.
        relationships: mentions: text unit, source, target, description, strength, type.
        communities: level, parent and titles of members by number; those that are not split are in deeper levels, too.
        aliases: document, alias and title in lower case.
        model: the name of the model of vectors, if there are any.
    """
    document_of = {unit["id"]: unit["document_id"] for unit in units}

    def mention(id: str, unit: str, **columns: Any) -> Row:
        document = document_of[unit]
        return {"id": id, "text_unit_id": unit, "document_id": document, "batch": "b", "extractor": "model"} | columns

    named = [
        mention(f"e{n}", unit, title=title, title_key=title_key(title), type=kind, description=text, n_sentences=1)
        for n, (unit, title, kind, text) in enumerate(entities)
    ]
    related = [
        mention(f"r{n}", unit, source=source, target=target, description=text, strength=strength, type=kind)
        | {"source_key": title_key(source), "target_key": title_key(target)}
        for n, (unit, source, target, text, strength, kind) in enumerate(relationships)
    ]
    claimed = [
        mention(f"c{n}", claim["text_unit_id"], subject_key=title_key(claim["subject_id"]), status="TRUE", **claim)
        | {"object_id": "NONE", "object_key": "none"}
        for n, claim in enumerate(claims)
    ]
    renamed = [dict(zip(("document_id", "alias_key", "title_key"), row, strict=True), rule="test") for row in aliases]
    rows = {
        schema.DOCUMENTS: documents,
        schema.TEXT_UNITS: units,
        schema.ENTITY_MENTIONS: named,
        schema.RELATIONSHIP_MENTIONS: related,
        schema.COVARIATES: claimed,
        schema.ENTITY_ALIASES: renamed,
    }
    frames = {table: frame_of(table, of_table) for table, of_table in rows.items()}
    graph = merge(frames[schema.ENTITY_MENTIONS], frames[schema.RELATIONSHIP_MENTIONS], frames[schema.ENTITY_ALIASES])
    places = {row["title_key"]: place for place, row in reversed([*enumerate(named)])}
    key_of = dict(graph.entities.select("id", "title_key").iter_rows())
    pairs = {frozenset((row["source_key"], row["target_key"])): n for n, row in reversed([*enumerate(related)])}
    ends = [
        frozenset(map(key_of.get, pair)) for pair in graph.relationships.select("source_id", "target_id").iter_rows()
    ]
    orders = {
        schema.ENTITIES: (graph.entities, [places.get(key, len(named)) for key in graph.entities["title_key"]]),
        schema.RELATIONSHIPS: (graph.relationships, [pairs.get(pair, len(related)) for pair in ends]),
    }
    for table, (frame, order) in orders.items():
        numbered = frame.with_columns(pl.Series("place", order)).sort("place").with_row_index("human_readable_id")
        frames[table] = frame_of(table, numbered.to_dicts())
    id_of = {key: id for id, key in key_of.items()}
    naming = dict(graph.entities.select("title_key", "text_unit_ids").iter_rows())
    split = {parent for _, parent, _ in communities.values()}
    levels = range(max((level for level, _, _ in communities.values()), default=0) + 1)
    keys_of = {c: [key for key in map(title_key, of) if key in id_of] for c, (_, _, of) in communities.items()}
    frames[schema.COMMUNITIES] = frame_of(
        schema.COMMUNITIES,
        [
            {
                "id": f"m{c}",
                "human_readable_id": c,
                "community": c,
                "level": level,
                "parent": parent,
                "children": [other for other, (_, above, _) in communities.items() if above == c],
                "text_unit_ids": sorted({unit for key in keys_of[c] for unit in naming[key]}),
                "size": len(keys_of[c]),
            }
            for c, (level, parent, _) in communities.items()
        ],
    )
    frames[schema.COMMUNITY_MEMBERS] = frame_of(
        schema.COMMUNITY_MEMBERS,
        [
            {"community": c, "level": deeper, "entity_id": id_of[key]}
            for c, (level, _, _) in communities.items()
            for deeper in levels
            if deeper == level or (deeper > level and c not in split)
            for key in keys_of[c]
        ],
    )
    frames[schema.COMMUNITY_REPORTS] = frame_of(schema.COMMUNITY_REPORTS, reports)
    if model:
        entity_texts = pl.concat_str("title", pl.lit(":"), "description")
        texts = {
            "text_unit": {unit["id"]: "\n".join(filter(None, (unit.get("context"), unit["text"]))) for unit in units},
            "entity": dict(graph.entities.select("id", entity_texts).iter_rows()),
            "community_report": {report["id"]: report["full_content"] for report in reports},
        }
        rows_of_texts = [
            {"kind": kind, "id": id, "model": model, "vector": embed([text])[0].tolist()}
            for kind, of_kind in texts.items()
            for id, text in of_kind.items()
        ]
        frames[schema.EMBEDDINGS] = frame_of(schema.EMBEDDINGS, rows_of_texts)
    working = IndexDatabase(folder / "working.duckdb")
    with working.transaction() as connection:
        for table, frame in frames.items():
            replace_table(connection, table, frame)
        for table in (schema.DOCUMENTS, schema.TEXT_UNITS, schema.COVARIATES):
            assign_numbers(connection, table.name, frames[table].select("id"))
    return publish(working, folder).path
