"""DuckDB's types as those of polars, and the tables of `schema` as polars schemas."""

import polars as pl

from graphrag_assets.store.schema import Table

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
    """The columns of a table, but for those that are left out, with their polars types."""
    return pl.Schema(
        {column.name: POLARS_TYPES[column.type] for column in table.columns if column.name not in left_out}
    )
