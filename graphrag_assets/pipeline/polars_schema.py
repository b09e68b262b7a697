"""The tables of `store/schema` as polars schemas."""

import polars as pl

from graphrag_assets.store.schema import Table

_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "VARCHAR": pl.String,
    "JSON": pl.String,
    "BIGINT": pl.Int64,
    "DOUBLE": pl.Float64,
    "BOOLEAN": pl.Boolean,
    "DATE": pl.Date,
    "VARCHAR[]": pl.List(pl.String),
    "BIGINT[]": pl.List(pl.Int64),
    "STRUCT(summary VARCHAR, explanation VARCHAR)[]": pl.List(
        pl.Struct({"summary": pl.String, "explanation": pl.String})
    ),
}


def polars_schema(table: Table, *left_out: str) -> pl.Schema:
    """The columns of a table, but for those that are left out, with their polars types."""
    return pl.Schema({column.name: _TYPES[column.type] for column in table.columns if column.name not in left_out})
