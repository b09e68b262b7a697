"""Publications of any size, shaped as real ones: power-law degrees, words by Zipf's law, no vectors.

    python benchmarks/synthetic_index.py 100000 graphrag-100000.duckdb

The file has the schema of a publication, and its postings are written by the package's own code. The same number
of entities gives the same index.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from graphrag_assets.store.bm25_index import write_bm25_index
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.passage_graph import write_passage_graph
from graphrag_assets.store.publication_content import create_tables
from graphrag_assets.store.schema import SCHEMA_VERSION, WORKING
from graphrag_assets.store.token_counts import count_new, counted_columns
from graphrag_assets.text.languages import STOP_WORDS
from graphrag_assets.text.words import count_tokens

VOCABULARY = 200_000
_ROWS_PER_PART = 20_000
_LEVELS = (1_000, 100, 10)  # entities in a community, from level 0 on


COUNTED_TEXTS = [table for table in WORKING if table.name in ("token_counts", "indexed_texts", "postings", "words")]
"""What an index keeps of texts by their hash."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entities", type=int)
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    write_index(options.path, options.entities)
    print(f"{options.path}: {options.path.stat().st_size / 1e6:,.0f} MB in {time.perf_counter() - started:.0f} s")


def write_index(path: Path, entities: int) -> None:
    """An index of so many entities, twice as many relationships, a third as many text units."""
    path.unlink(missing_ok=True)
    words = vocabulary()
    with duckdb.connect(config={"memory_limit": "6GB", "temp_directory": f"{path}.spill"}) as connection:
        connection.execute(f"ATTACH '{path}' AS published (STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE 16384)")
        connection.execute("USE published")
        create_tables(connection, 1)
        units = max(entities // 3, 1)
        _insert(connection, "entity_texts", _entity_texts(words, entities), temporary=True)
        _insert(connection, "unit_texts", _texts(words, 2, units, 300, 700), temporary=True)
        connection.execute("SET VARIABLE n = $n", {"n": entities})
        connection.execute("SET VARIABLE units = $units", {"units": units})
        for macro in _MACROS:
            connection.execute(f"CREATE TEMP MACRO {macro}")
        for statement in (*_GRAPH.split(";"), _PUBLICATION):
            connection.execute(statement)
        for table in ("entity_texts", "unit_texts", "pairs", "named", "degrees"):
            connection.execute(f"DROP TABLE temp.{table}")
        _write_reports(connection, words, entities)
        search_tables_of(connection)
        connection.execute("CHECKPOINT published")


def search_tables_of(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the token counts and the search tables of a publication whose other tables are filled, without an index."""
    publication = one_value(connection, "SELECT current_database()")
    connection.execute("ATTACH ':memory:' AS working; USE working")
    for table in COUNTED_TEXTS:
        connection.execute(table.ddl())
    connection.execute(f'USE "{publication}"')
    counted = counted_columns(connection)
    count_new(connection, counted, suffix="")
    for column in counted:
        connection.execute(
            f"UPDATE {column.table} SET {column.column} = tokens FROM "
            f"(SELECT human_readable_id AS number, {column.hash} AS hash FROM {column.table}) "
            "JOIN working.token_counts ON text = hash WHERE human_readable_id = number"
        )
    write_bm25_index(connection)
    write_passage_graph(connection)
    connection.execute("DETACH working")


def vocabulary() -> pl.Series:
    """The words of the synthetic language, the most frequent first; those with grammar instead of content lead."""
    consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
    syllables = [c + v for c in consonants for v in vowels]
    random = np.random.default_rng(1)
    made: dict[str, None] = dict.fromkeys(sorted(STOP_WORDS)[:150])
    while len(made) < VOCABULARY:
        lengths = random.integers(2, 5, VOCABULARY)
        chosen = random.integers(len(syllables), size=(VOCABULARY, 4))
        made.update(
            dict.fromkeys("".join(syllables[i] for i in row[:n]) for row, n in zip(chosen, lengths, strict=True))
        )
    return pl.Series("word", list(made)[:VOCABULARY])


def zipf(random: np.random.Generator, size: int, least: int = 1) -> np.ndarray:
    """Places in the vocabulary from `least` on, each with a chance of 1 / place."""
    return (least * np.exp(random.random(size) * np.log(VOCABULARY / least))).astype(np.int64).clip(0, VOCABULARY) - 1


def _joined(words: pl.Series, places: np.ndarray, lengths: np.ndarray) -> pl.Series:
    """Texts of so many words each."""
    text = pl.Series(np.repeat(np.arange(len(lengths)), lengths))
    frame = pl.DataFrame({"text": text, "word": words.gather(places)})
    return frame.group_by("text", maintain_order=True).agg(pl.col("word").str.join(" "))["word"]


def _texts(words: pl.Series, seed: int, count: int, least: int, most: int) -> Iterator[pl.DataFrame]:
    for start in range(0, count, _ROWS_PER_PART):
        random = np.random.default_rng([seed, start])
        lengths = random.integers(least, most, min(_ROWS_PER_PART, count - start))
        numbers = np.arange(start, start + len(lengths), dtype=np.int32)
        yield pl.DataFrame({"number": numbers, "text": _joined(words, zipf(random, lengths.sum()), lengths)})


def _entity_texts(words: pl.Series, count: int) -> Iterator[pl.DataFrame]:
    for texts in _texts(words, 3, count, 12, 30):
        random = np.random.default_rng([4, texts["number"][0]])
        title = _joined(words, zipf(random, 2 * len(texts), least=2_000), np.full(len(texts), 2)).str.to_titlecase()
        yield texts.with_columns(title=title)


def _write_reports(connection: duckdb.DuckDBPyConnection, words: pl.Series, entities: int) -> None:
    """Communities are runs of entities, so that neighbors by number, who are related most, are together."""
    tokens = np.array(count_tokens(f" {word}" for word in words))
    first = 0
    for level, size in enumerate(_LEVELS):
        connection.execute(
            "INSERT INTO search.entity_communities SELECT range, $level, $first + range // $size FROM range($n)",
            {"level": level, "first": first, "size": size, "n": entities},
        )
        count = -(-entities // size)
        for start in range(0, count, _ROWS_PER_PART):
            random = np.random.default_rng([7, level, start])
            lengths = random.integers(150, 300, min(_ROWS_PER_PART, count - start))
            places = zipf(random, lengths.sum())
            starts = np.cumsum(lengths) - lengths
            numbers = first + np.arange(start, start + len(lengths))
            _insert(
                connection,
                "community_reports",
                [
                    pl.DataFrame(
                        {
                            "id": [f"report-{number}" for number in numbers],
                            "human_readable_id": numbers,
                            "community": numbers,
                            "level": np.full(len(numbers), level),
                            "title": _joined(
                                words, zipf(random, 2 * len(numbers), least=2_000), np.full(len(numbers), 2)
                            ),
                            "summary": _joined(words, zipf(random, 30 * len(numbers)), np.full(len(numbers), 30)),
                            "full_content": _joined(words, places, lengths),
                            "content_tokens": np.add.reduceat(tokens[places], starts),
                            "summary_tokens": np.full(len(numbers), 60),
                            "rank": random.integers(1, 10, len(numbers)).astype(float),
                        }
                    )
                ],
            )
        first += count
    connection.execute(_COMMUNITIES)
    connection.execute("CREATE TEMP TABLE sorted AS FROM search.entity_communities ORDER BY ALL")
    connection.execute("DELETE FROM search.entity_communities")
    connection.execute("INSERT INTO search.entity_communities FROM temp.sorted ORDER BY ALL")
    connection.execute("DROP TABLE temp.sorted")


def _insert(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    frames: Iterator[pl.DataFrame] | list[pl.DataFrame],
    temporary: bool = False,
) -> None:
    for place, frame in enumerate(frames):
        connection.register("rows_to_insert", frame)
        if temporary and place == 0:
            connection.execute(f"CREATE TEMP TABLE {table} AS FROM rows_to_insert")
        else:
            connection.execute(f"INSERT INTO {'temp.' if temporary else ''}{table} BY NAME FROM rows_to_insert")
        connection.unregister("rows_to_insert")


_COMMUNITIES = """
INSERT INTO communities BY NAME
SELECT 'community-' || r.community AS id, r.community AS human_readable_id, r.community, r.level, m.size,
       'Community ' || r.community AS title, m.entity_ids, m.text_unit_ids,
       coalesce((SELECT any_value(p.community) FROM search.entity_communities p
                 WHERE p.level = r.level - 1 AND p.entity = m.entity), -1) AS parent
FROM community_reports r
JOIN (SELECT c.community, count(*) AS size, min(c.entity) AS entity, list('entity-' || c.entity) AS entity_ids,
             list_distinct(flatten(list(u.ids))) AS text_unit_ids
      FROM search.entity_communities c LEFT JOIN (
          SELECT entity, list('text-unit-' || text_unit) AS ids FROM search.entity_text_units GROUP BY entity
      ) u USING (entity) GROUP BY c.community) m ON m.community = r.community
ORDER BY r.community;

INSERT INTO citations BY NAME
SELECT 'report-' || c.community AS report_id, 'entities' AS table_name, c.entity AS human_readable_id,
       'entity-' || c.entity AS cited_id
FROM search.entity_communities c QUALIFY row_number() OVER (PARTITION BY c.community ORDER BY c.entity) <= 5
"""

_MACROS = (
    "uniform(i, salt) AS hash(i, salt) / 18446744073709551616.0",
    # Degrees fall with the root of the number: the largest of a million entities has some thousands.
    "popular(i, salt) AS (getvariable('n') * pow(uniform(i, salt), 2))::INT",
    "near(i, salt) AS ((i + 1 + 200 * pow(uniform(i, salt), 2)) % getvariable('n'))::INT",
    "any_unit(i, salt) AS (getvariable('units') * uniform(i, salt))::INT % getvariable('units')",
)

_GRAPH = """
CREATE TEMP TABLE pairs AS
SELECT row_number() OVER (ORDER BY a, b)::INT - 1 AS number, a, b FROM (
    SELECT DISTINCT least(s, t) AS a, greatest(s, t) AS b
    FROM (
        SELECT popular(range, 1) % getvariable('n') AS s,
               CASE WHEN range % 2 = 0 THEN near(popular(range, 1), range)
                    ELSE popular(range, 2) % getvariable('n') END AS t
        FROM range(getvariable('n') * 205 // 100)
    ) WHERE s <> t
) ORDER BY hash(a, b) LIMIT getvariable('n') * 2;

INSERT INTO search.relationship_text_units
SELECT DISTINCT number, unit FROM (
    SELECT number, any_unit(a // 4, number % 3) AS unit FROM pairs
    UNION ALL SELECT number, any_unit(number, 3) FROM pairs WHERE number % 4 = 0
) ORDER BY ALL;

CREATE TEMP TABLE named AS
SELECT DISTINCT entity, unit FROM (
    SELECT p.a AS entity, r.text_unit AS unit
    FROM pairs p JOIN search.relationship_text_units r ON r.relationship = p.number
    UNION ALL
    SELECT p.b, r.text_unit FROM pairs p JOIN search.relationship_text_units r ON r.relationship = p.number
    UNION ALL
    SELECT range::INT, any_unit(range, 4) FROM range(getvariable('n'))
);

CREATE TEMP TABLE degrees AS
SELECT entity, count(*) AS degree FROM (SELECT a AS entity FROM pairs UNION ALL SELECT b FROM pairs) GROUP BY entity;

INSERT INTO entities BY NAME
SELECT 'entity-' || number AS id, number AS human_readable_id, title, lower(title) AS title_key,
       ['PERSON', 'PLACE', 'THING'][1 + number % 3] AS type, title || ' ' || text AS description,
       coalesce(degree, 0) AS degree, 6 AS frequency
FROM entity_texts LEFT JOIN degrees ON entity = number ORDER BY number;

INSERT INTO relationships BY NAME
SELECT 'relationship-' || p.number AS id, p.number AS human_readable_id, s.title AS source, t.title AS target,
       s.title || ' ' || e.text AS description, 1 + p.number % 9 AS weight, s.degree + t.degree AS combined_degree,
       p.a AS source_number, p.b AS target_number
FROM pairs p JOIN entities s ON s.human_readable_id = p.a JOIN entities t ON t.human_readable_id = p.b
JOIN entity_texts e ON e.number = p.number // 2
ORDER BY p.number;

INSERT INTO search.edges
SELECT source_number, target_number, human_readable_id, weight, combined_degree FROM relationships
UNION ALL SELECT target_number, source_number, human_readable_id, weight, combined_degree FROM relationships
ORDER BY ALL;

INSERT INTO search.entity_text_units
WITH stated AS (
    SELECT e.entity, r.text_unit, count(*) AS n
    FROM search.edges e JOIN search.relationship_text_units r USING (relationship) GROUP BY ALL
)
SELECT b.entity, b.unit, coalesce(s.n, 0)
FROM named b LEFT JOIN stated s ON s.entity = b.entity AND s.text_unit = b.unit ORDER BY ALL;

INSERT INTO text_units BY NAME
SELECT 'unit-' || u.number AS id, u.number AS human_readable_id, 'batch-' || u.number % 20 AS batch,
       'document-' || u.number // 10 AS document_id, u.number % 10 AS ordinal, u.text, 700 AS n_tokens,
       -- Each stands under the name of an entity: every third entity links passages.
       ['Document ' || u.number // 10, e.title] AS headings, array_to_string(headings, ' › ') AS context
FROM unit_texts u JOIN entity_texts e ON e.number = 3 * u.number ORDER BY u.number;

INSERT INTO documents BY NAME
SELECT 'document-' || range AS id, range AS human_readable_id, 'Document ' || range AS title,
       'batch/document-' || range || '.txt' AS source
FROM range(getvariable('units') // 10 + 1) ORDER BY range;

INSERT INTO covariates BY NAME
SELECT 'claim-' || range AS id, range AS human_readable_id, e.title AS subject_id, 'NONE' AS object_id,
       'TRUE' AS status, 'FACT' AS type, e.description, e.human_readable_id AS subject_number,
       any_unit(range, 5) AS text_unit_number, make_date(1830 + range % 60, 1, 1) AS starts_on, starts_on AS valid_from
FROM range(getvariable('units')) JOIN entities e ON e.human_readable_id = popular(range, 6) % getvariable('n')
ORDER BY subject_number, range;

INSERT INTO entity_mentions BY NAME
SELECT e.id || '-' || u.text_unit AS id, t.batch, t.document_id, t.id AS text_unit_id, e.title, e.title_key, e.type,
       e.title || ' in ' || t.id AS description, 1 AS n_sentences, u.text_unit AS text_unit_number,
       e.human_readable_id AS entity_number
FROM search.entity_text_units u JOIN entities e ON e.human_readable_id = u.entity
JOIN text_units t ON t.human_readable_id = u.text_unit ORDER BY entity_number, text_unit_number;

INSERT INTO relationship_mentions BY NAME
SELECT r.id || '-' || u.text_unit AS id, t.batch, t.document_id, t.id AS text_unit_id, r.source, r.target,
       ['KNOWS', 'OWNS', ''][1 + r.human_readable_id % 3] AS type, r.source || ' in ' || t.id AS description,
       u.text_unit AS text_unit_number, r.human_readable_id AS relationship_number, r.source_number, r.target_number
FROM search.relationship_text_units u JOIN relationships r ON r.human_readable_id = u.relationship
JOIN text_units t ON t.human_readable_id = u.text_unit ORDER BY relationship_number, text_unit_number
"""
_PUBLICATION = f"""
INSERT INTO publication BY NAME
SELECT 1 AS number, TIMESTAMP '2026-01-01' AS published_at, '{SCHEMA_VERSION}' AS schema_version
"""


if __name__ == "__main__":
    main()
