"""Small frames for pipeline tests: mentions written as tuples."""

import duckdb
import polars as pl

from graphrag_assets.assets.knowledge_graph import Graph, merged
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded import summarize as most_central
from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema
from graphrag_assets.store.connections import execute_with
from graphrag_assets.text.words import title_key

NO_ALIASES = pl.DataFrame(
    schema={
        "document_id": pl.String,
        "alias_key": pl.String,
        "title_key": pl.String,
        "rule": pl.String,
    }
)


def entity_mentions(*rows: tuple[str, str, str, str], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Mentions from (text unit, title, type, description); the unit's document is the part before '#'."""
    return pl.DataFrame(
        [
            {
                "id": stable_id(unit, title, kind),
                "batch": "b",
                "document_id": unit.split("#")[0],
                "text_unit_id": unit,
                "title": title,
                "title_key": title_key(title),
                "type": kind,
                "description": description,
                "n_sentences": 1,
                "extractor": extractor,
            }
            for unit, title, kind, description in rows
        ],
        schema={
            **dict.fromkeys(
                ("id", "batch", "document_id", "text_unit_id", "title", "title_key", "type", "description"),
                pl.String,
            ),
            "n_sentences": pl.Int64,
            "extractor": pl.String,
        },
    )


def relationship_mentions(*rows: tuple[str, str, str, float], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Relationship mentions from (text unit, source, target, strength)."""
    return pl.DataFrame(
        [
            {
                "id": stable_id(unit, source, target),
                "batch": "b",
                "document_id": unit.split("#")[0],
                "text_unit_id": unit,
                "source": source,
                "target": target,
                "source_key": title_key(source),
                "target_key": title_key(target),
                "type": "",
                "description": f"{source} and {target} in {unit}.",
                "strength": strength,
                "extractor": extractor,
            }
            for unit, source, target, strength in rows
        ],
        schema={
            **dict.fromkeys(
                (
                    "id",
                    "batch",
                    "document_id",
                    "text_unit_id",
                    "source",
                    "target",
                    "source_key",
                    "target_key",
                    "type",
                    "description",
                ),
                pl.String,
            ),
            "strength": pl.Float64,
            "extractor": pl.String,
        },
    )


def merge(mentions, pairs, aliases=NO_ALIASES, dates=None, summarize=most_central) -> Graph:
    """The graph of these mentions; `dates`: document_id, document_date, of some documents."""
    documents = pl.concat([mentions["document_id"], pairs["document_id"]]).unique().to_frame()
    if dates is not None:
        documents = documents.join(dates, on="document_id", how="left")
    rows = {
        schema.DOCUMENTS: documents.rename({"document_id": "id"}),
        schema.ENTITY_MENTIONS: mentions,
        schema.RELATIONSHIP_MENTIONS: pairs,
        schema.ENTITIES: None,
        schema.RELATIONSHIPS: None,
        schema.SUMMARIZED: None,
    }
    with duckdb.connect() as connection:
        for table, frame in rows.items():
            connection.execute(table.ddl())
            if frame is not None:
                known = frame.select(name for name in table.column_names if name in frame.columns)
                execute_with(connection, f"INSERT INTO {table.sql_name} BY NAME FROM given", given=known)
        return merged(connection, aliases, "").described(summarize)
