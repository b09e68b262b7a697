"""The schema, declared once: `sql/schema.sql` and `sql/search_schema.sql` have every column with its type and meaning.

`WORKING` is what assets write; `PUBLISHED` is what people and the query module read: most tables of the index, with
columns that only a publication has, such as numbers that link rows, and tables for searching. A publication has three
schemas: `main` has what a person queries; `search` what queries of this package read; `operations` records of runs
and settings. Integer keys beside the string ids and sorted bridge tables make a search a few milliseconds of SQL.

Column names follow GraphRAG 3's output tables, as a superset. There are no primary or foreign keys: batch
replacement is 24 times slower with them, so asset checks guard keys instead.
"""

import functools
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import stable_id

STATED, DENIED = "facts", "facts:not"
"""What extracted a mention that a person states in a file of facts, or takes back there."""
SAME_AS = "SAME_AS"
"""The type of the relationship mention by which a person states that a name stands for another."""
IMPORTED = "imported"
"""What extracted a mention or wrote a report that came with an imported index: whatever made that index."""

_INCOMPRESSIBLE = ("id", "fingerprint", "source", "target", "form", "term", "vector")
_TABLE = re.compile(
    r"-- (.+)\nCREATE TABLE (?:(\w+)\.)?(\w+) \(  -- (\w+); key: ([\w, ]+)(?:; order: (.+))?\n((?:    .+\n)+)\);"
)
_COLUMN = re.compile(r"^    (\w+) (.+?),?  -- (?:\((\w+)\) )?(.+)$", re.MULTILINE)


class Column(NamedTuple):
    """A column: its name, its DuckDB type, and what it means."""

    name: str
    type: str
    comment: str

    def ddl(self) -> str:
        """Return the column in `CREATE TABLE`.

        Ids, keys, names and vectors hardly compress. As they are, they are searched three times as fast, and one vector
        is read ten times as fast.
        """
        hardly = self.name in _INCOMPRESSIBLE or self.name.endswith(("_id", "_ids", "_key"))
        can_be = "VARCHAR" in self.type or self.type == "FLOAT[]"  # not FLOAT[n]
        compression = " USING COMPRESSION uncompressed" if hardly and can_be else ""
        return f"{identifier(self.name)} {self.type}{compression}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, what one row is, its key columns, its columns, its schema, and its order in a publication."""

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    schema: str = "main"
    order: str = ""

    @property
    def sql_name(self) -> str:
        """The table's name in SQL, with its schema where that is not `main`."""
        return identifier(self.name) if self.schema == "main" else f"{self.schema}.{identifier(self.name)}"

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def ddl(self) -> str:
        """`CREATE TABLE IF NOT EXISTS`, and its schema, with comments on the table and each column."""
        name, columns = self.sql_name, ", ".join(c.ddl() for c in self.columns)
        comments = "".join(f'COMMENT ON COLUMN {name}."{c.name}" IS {literal(c.comment)};' for c in self.columns)
        create_schema = "" if self.schema == "main" else f"CREATE SCHEMA IF NOT EXISTS {self.schema};"
        return (
            f"{create_schema}CREATE TABLE IF NOT EXISTS {name} ({columns});"
            f"COMMENT ON TABLE {name} IS {literal(self.comment)};{comments}"
        )


def literal(value: object) -> str:
    """`value` as an SQL text, for statements that take no parameters.

    A path is made absolute: DuckDB takes `ab:` at the start of a relative one for a protocol, and `~` for a home.
    """
    text = str(value.absolute() if isinstance(value, Path) else value)
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@functools.cache
def sql(name: str) -> str:
    """Return a file of SQL of this package."""
    return files("graphrag_assets.store").joinpath(f"sql/{name}.sql").read_text("utf-8")


def _declared() -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """Return the tables of the index, and those of a publication."""
    index, publication = list[Table](), list[Table]()
    declared = (sql("schema") + sql("search_schema")).replace("\n        ", " ")
    for comment, schema, name, place, key, order, body in _TABLE.findall(declared):
        columns = [(Column(column, kind, meaning), only) for column, kind, only, meaning in _COLUMN.findall(body)]
        if len(columns) != body.count("\n"):
            raise ValueError(f"Table {name}: a column is without its comment, two spaces and -- after its type")
        stored, published = (tuple(c for c, only in columns if only in ("", of)) for of in ("index", "publication"))
        keys = tuple(key.split(", "))
        if place != "publication":
            index.append(Table(name, comment, keys, stored))
        if place != "index":
            publication.append(Table(name, comment, keys, published, schema or "main", order))
    return tuple(index), tuple(publication)


WORKING, PUBLISHED = _declared()


def _named(*names: str) -> tuple[Table, ...]:
    return tuple({table.name: table for table in WORKING}[name] for name in names)


BATCH_TABLES = _named("documents", "text_units", "entity_mentions", "relationship_mentions", "covariates")
DOCUMENTS, TEXT_UNITS, *_ = BATCH_TABLES
FACTS = ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, COVARIATES = BATCH_TABLES[2:]
GLOBAL_TABLES = (
    ENTITY_ALIASES,
    ENTITIES,
    RELATIONSHIPS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    CITATIONS,
    EMBEDDINGS,
    ENTITY_CANDIDATES,
) = _named(
    *("entity_aliases", "entities", "relationships", "communities", "community_members", "community_reports"),
    *("citations", "embeddings", "entity_candidates"),
)
BATCH_STATE, INDEX_ERRORS, INDEX_RUNS, INDEX_SETTINGS = _named(
    "batch_state", "index_errors", "index_runs", "index_settings"
)
PROMPT_PROFILE, PUBLICATION, NUMBERS, SUMMARIZED, CLUSTERED_EDGES, REFRESH_STATE = _named(
    "prompt_profile", "publication", "numbers", "summarized", "clustered_edges", "refresh_state"
)

_COLUMNS = ((t.sql_name, c.name, c.type) for t in (*WORKING, *PUBLISHED) for c in t.columns)
SCHEMA_VERSION = stable_id(sql("resolved_claims"), sql("claims_taken_back"), *_COLUMNS)[:8]
"""The version of all tables and views, in the working database and in each publication.

There are no migrations: an index of another version is derived again from its input, and paid answers come from the
ledger."""


POLARS_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "VARCHAR": pl.String,
    "JSON": pl.String,
    "INTEGER": pl.Int32,
    "BIGINT": pl.Int64,
    "UBIGINT": pl.UInt64,
    "FLOAT": pl.Float32,
    "DOUBLE": pl.Float64,
    "BOOLEAN": pl.Boolean,
    "DATE": pl.Date,
    "VARCHAR[]": pl.List(pl.String),
    "BIGINT[]": pl.List(pl.Int64),
    "FLOAT[]": pl.List(pl.Float32),
    "STRUCT(start_char BIGINT, kind VARCHAR, value VARCHAR)[]": pl.List(
        pl.Struct({"start_char": pl.Int64, "kind": pl.String, "value": pl.String})
    ),
    "STRUCT(summary VARCHAR, explanation VARCHAR)[]": pl.List(
        pl.Struct({"summary": pl.String, "explanation": pl.String})
    ),
}


def polars_schema(table: Table, *left_out: str) -> pl.Schema:
    """Return the columns of a table, but for those that are left out, with their polars types."""
    return pl.Schema(
        {column.name: POLARS_TYPES[column.type] for column in table.columns if column.name not in left_out}
    )
