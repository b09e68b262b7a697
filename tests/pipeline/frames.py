"""Small frames for pipeline tests: mentions written as tuples."""

from collections.abc import Sequence

import duckdb
import polars as pl

from graphrag_assets.assets.knowledge_graph import Graph, merged
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded import summarize as most_central
from graphrag_assets.ids import with_id
from graphrag_assets.store import schema
from graphrag_assets.store.connections import execute_with
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.words import title_key

NO_ALIASES = pl.DataFrame(schema=polars_schema(schema.ENTITY_ALIASES))


def entity_mentions(*rows: tuple[str, str, str, str], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Mentions from (text unit, title, type, description); the unit's document is the part before '#'."""
    frame = _mentions(rows, ("text_unit_id", "title", "type", "description"), {"title": "title_key"}, extractor)
    return with_id(frame.with_columns(n_sentences=pl.lit(1, pl.Int64)), "text_unit_id", "title", "type")


def relationship_mentions(*rows: tuple[str, str, str, float], extractor: str = EXTRACTOR) -> pl.DataFrame:
    """Relationship mentions from (text unit, source, target, strength)."""
    full = [(unit, a, b, strength, f"{a} and {b} in {unit}.") for unit, a, b, strength in rows]
    columns = ("text_unit_id", "source", "target", "strength", "description")
    frame = _mentions(full, columns, {"source": "source_key", "target": "target_key"}, extractor)
    return with_id(frame.with_columns(type=pl.lit("")), "text_unit_id", "source", "target")


def _mentions(rows: Sequence[tuple], columns: Sequence[str], keys: dict[str, str], extractor: str) -> pl.DataFrame:
    types = dict.fromkeys(columns, pl.String) | ({"strength": pl.Float64} if "strength" in columns else {})
    return pl.DataFrame(rows, types, orient="row").with_columns(
        *(pl.col(name).map_elements(title_key, pl.String).alias(key) for name, key in keys.items()),
        batch=pl.lit("b"),
        document_id=pl.col("text_unit_id").str.split("#").list.first(),
        extractor=pl.lit(extractor),
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
