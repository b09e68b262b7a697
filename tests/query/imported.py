"""A published index made of GraphRAG's own output tables: real data of a language model, for tests of searches."""

from pathlib import Path

import duckdb
import polars as pl

from graphrag_assets.models.offline import embeddings
from graphrag_assets.store.publishing import create_tables, write_search_tables
from graphrag_assets.store.working import CONNECTION_CONFIG
from graphrag_assets.text import count_tokens, title_key

TABLES = ("documents", "text_units", "entities", "relationships", "communities", "community_reports", "covariates")

_INSERTS = """
INSERT INTO documents BY NAME SELECT *, 'imported' AS batch, title AS source FROM given_documents ORDER BY human_readable_id;
INSERT INTO text_units BY NAME SELECT *, 'imported' AS batch FROM given_text_units ORDER BY human_readable_id;
INSERT INTO entities BY NAME FROM given_entities ORDER BY human_readable_id;

INSERT INTO relationships BY NAME
SELECT r.*, s.id AS source_id, t.id AS target_id,
       s.human_readable_id AS source_number, t.human_readable_id AS target_number
FROM given_relationships r JOIN entities s ON s.title = r.source JOIN entities t ON t.title = r.target
ORDER BY r.human_readable_id;

INSERT INTO relationship_text_units
SELECT DISTINCT r.human_readable_id, t.human_readable_id
FROM (SELECT human_readable_id, unnest(text_unit_ids) AS unit FROM relationships) r JOIN text_units t ON t.id = r.unit
ORDER BY ALL;

INSERT INTO edges
SELECT source_number, target_number, human_readable_id, weight, combined_degree FROM relationships
UNION ALL SELECT target_number, source_number, human_readable_id, weight, combined_degree FROM relationships
ORDER BY ALL;

INSERT INTO entity_text_units
WITH stated AS (
    SELECT e.entity, r.text_unit, count(*) AS n FROM edges e JOIN relationship_text_units r USING (relationship) GROUP BY ALL
)
SELECT DISTINCT e.human_readable_id AS entity, t.human_readable_id AS text_unit, coalesce(s.n, 0)
FROM (SELECT human_readable_id, unnest(text_unit_ids) AS unit FROM entities) e
JOIN text_units t ON t.id = e.unit
LEFT JOIN stated s ON s.entity = e.human_readable_id AND s.text_unit = t.human_readable_id
ORDER BY ALL;

INSERT INTO covariates BY NAME
SELECT c.* EXCLUDE (text_unit_id), c.text_unit_id, e.human_readable_id AS subject_number, o.human_readable_id AS object_number,
       t.human_readable_id AS text_unit_number
FROM given_covariates c JOIN text_units t ON t.id = c.text_unit_id
LEFT JOIN entities e ON e.title = c.subject_id LEFT JOIN entities o ON o.title = c.object_id
ORDER BY subject_number, c.human_readable_id;

INSERT INTO communities BY NAME FROM given_communities ORDER BY community;
INSERT INTO community_reports BY NAME FROM given_community_reports ORDER BY community;

-- Level-complete: a community that is not split stays its members' community at all deeper levels.
INSERT INTO entity_communities
WITH own AS (
    SELECT e.human_readable_id AS entity, c.level, c.community
    FROM (SELECT level, community, unnest(entity_ids) AS id FROM communities) c JOIN entities e USING (id)
)
SELECT o.entity, l.level, arg_max(o.community, o.level)
FROM own o JOIN (SELECT DISTINCT level FROM communities) l ON o.level <= l.level
GROUP BY ALL ORDER BY ALL;

INSERT INTO publication BY NAME SELECT 1 AS number, 'imported' AS content_digest, 'test' AS version;
"""


def write_imported(folder: Path, path: Path) -> Path:
    """A published file at `path` with the index whose parquet files are in `folder`, embedded by the embedded default.

    Relationships with an end that is no entity are left out, and so are claims without a text unit.
    """
    given = {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}
    reports = given["community_reports"]
    given["community_reports"] = reports.with_columns(
        content_tokens=pl.Series(count_tokens(reports["full_content"])),
        summary_tokens=pl.Series(count_tokens(reports["summary"])),
    )
    keys = pl.col("title").map_elements(title_key, return_dtype=pl.String)
    given["entities"] = given["entities"].with_columns(title_key=keys)
    with duckdb.connect(str(path), config=CONNECTION_CONFIG) as connection:
        create_tables(connection, embeddings.DIMENSIONS)
        declared = connection.execute("SELECT table_name, column_name FROM duckdb_columns()").fetchall()
        for name, frame in given.items():
            connection.register(f"given_{name}", frame.select(c for c in frame.columns if (name, c) in declared))
        connection.execute(_INSERTS)
        texts = connection.sql(
            """
            SELECT 'text_unit' AS kind, human_readable_id AS number, id, text FROM text_units
            UNION ALL SELECT 'entity', human_readable_id, id, title || ':' || description FROM entities
            UNION ALL SELECT 'community_report', human_readable_id, id, full_content FROM community_reports
            ORDER BY ALL
            """
        ).pl()
        vectors = texts.select("kind", "number", "id").with_columns(
            model=pl.lit(embeddings.MODEL), vector=pl.Series(embeddings.embed(texts["text"].to_list()).tolist())
        )
        connection.register("vectors", vectors)
        connection.execute("INSERT INTO embeddings BY NAME FROM vectors")
        write_search_tables(connection)
    return path
