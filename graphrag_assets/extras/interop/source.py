"""Reads the tables of an index of Microsoft GraphRAG 3, whatever a table lacks.

GraphRAG's own notebooks migrate the tables of versions 0 to 2.
"""

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets.errors import InputError
from graphrag_assets.pipeline.community_reports import REPORT_TYPES

log = logging.getLogger(__name__)

Counts = Counter[tuple[str, str]]
"""Number of rows that were left out or changed, by table and reason."""
Tables = dict[str, pl.DataFrame]

LIST = pl.List(pl.String)
_NUMBERED = {"id": pl.String, "human_readable_id": pl.Int64}
_COLUMNS: dict[str, dict[str, Any]] = {
    "documents": _NUMBERED | dict.fromkeys(("title", "text", "creation_date", "raw_data"), pl.String),
    "text_units": _NUMBERED | {"text": pl.String, "n_tokens": pl.Int64, "document_id": pl.String},
    "entities": _NUMBERED | dict.fromkeys(("title", "type", "description"), pl.String) | {"text_unit_ids": LIST},
    "relationships": {
        **_NUMBERED,
        **dict.fromkeys(("source", "target", "description"), pl.String),
        "weight": pl.Float64,
        "text_unit_ids": LIST,
    },
    "covariates": _NUMBERED
    | dict.fromkeys(
        ("type", "description", "subject_id", "object_id", "status", "start_date", "end_date", "source_text"),
        pl.String,
    )
    | {"text_unit_id": pl.String},
    "communities": {"id": pl.String, "community": pl.Int64, "level": pl.Int64, "entity_ids": LIST},
    "community_reports": {
        "community": pl.Int64,
        **dict.fromkeys(("title", "summary", "full_content", "rating_explanation", "full_content_json"), pl.String),
        "rank": pl.Float64,
        "findings": REPORT_TYPES["findings"],
    },
}
TABLES = tuple(_COLUMNS)
_REQUIRED = ("documents", "text_units", "entities", "relationships")
_NAMES = {"entities": ("title",), "relationships": ("source", "target")}

MAX_NUMBER = 10_000_000
"""Maximum of numbers: a publication and its filters take time and memory in proportion to the largest one."""
MAX_LEVEL = 100
"""Maximum level of a community. A community is in all levels below its own, so rows grow with the number of levels."""
_MIGRATE = (
    "Migrate it to GraphRAG 3 with GraphRAG's notebooks (index_migration_to_v1, _v2 and _v3 in "
    "https://microsoft.github.io/graphrag/examples_notebooks/), then import the result. Or index its documents again."
)


def read_source(path: Path) -> Tables:
    """Return the tables of the index at `path`, its output folder or the folder around it, with the columns of
    `_COLUMNS`.

    A table or column that is missing is empty; a number that cannot be one is null.

    Raises:
        InputError: it is no index of GraphRAG 3, or a file is broken.
    """
    folder = path / "output" if (path / "output").is_dir() else path
    if any(folder.glob("create_final_*.parquet")):
        raise InputError(f"{folder} is an index of GraphRAG 0 or 1. {_MIGRATE}")
    if missing := [name for name in _REQUIRED if not (folder / f"{name}.parquet").is_file()]:
        raise InputError(
            f"{folder} has no {missing[0]}.parquet. Give the output folder of GraphRAG 3. A graph without texts can be "
            "stated in files of facts: docs/input.md."
        )
    tables = {name: _read(folder / f"{name}.parquet") for name in TABLES}
    if "document_ids" in tables["text_units"].columns:
        raise InputError(f"{folder} is an index of GraphRAG 2. {_MIGRATE}")
    for table, names in _NAMES.items():
        if absent := [name for name in names if name not in tables[table].columns]:
            columns = ", ".join(map(repr, tables[table].columns))
            raise InputError(f"{folder / table}.parquet has no column {absent[0]}. It has: {columns}.")
    return shaped(tables)


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False) if path.is_file() else pl.DataFrame()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read: {reason}. Export or copy it again.") from error


def shaped(tables: Tables) -> Tables:
    """Return the tables with the columns of `_COLUMNS` and no others."""
    return {
        name: tables[name].select(_column(tables[name], column, kind) for column, kind in columns.items())
        for name, columns in _COLUMNS.items()
    }


def _column(table: pl.DataFrame, name: str, kind: Any) -> pl.Expr | pl.Series:
    if name not in table.columns:
        return pl.Series(name, [None if kind != LIST else []] * table.height, dtype=kind)
    source_type = table.schema[name]
    if kind == LIST:
        texts = pl.col(name).cast(LIST) if isinstance(source_type, pl.List) else pl.lit(None, LIST)
        return texts.list.drop_nulls().fill_null([]).alias(name)
    if isinstance(kind, pl.List):
        return _findings(name, source_type)
    if source_type.is_nested():
        values = [
            None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in table[name]
        ]
        return pl.Series(name, values, dtype=pl.String)
    column = pl.col(name).cast(kind, strict=False)
    if kind == pl.Float64:
        return pl.when(column.is_finite()).then(column).alias(name)
    if kind == pl.Int64:
        return pl.when(column.is_between(0, MAX_LEVEL if name == "level" else MAX_NUMBER)).then(column).alias(name)
    return column


def _findings(name: str, source_type: pl.DataType) -> pl.Expr:
    """Return findings with both of their fields; null where there are none of them."""
    inner = source_type.inner if isinstance(source_type, pl.List) else None
    if not isinstance(inner, pl.Struct):
        return pl.lit(None, REPORT_TYPES["findings"]).alias(name)
    names = {field.name for field in inner.fields}
    fields = [
        (pl.element().struct.field(field) if field in names else pl.lit("")).cast(pl.String).fill_null("").alias(field)
        for field in ("summary", "explanation")
    ]
    return pl.col(name).list.eval(pl.struct(fields)).alias(name)


def fitting(frame: pl.DataFrame, fits: pl.Expr, table: str, why: str, counts: Counts) -> pl.DataFrame:
    """Return the rows that fit; the others are added to `counts`, and the first of them named in the log."""
    left = frame.filter(~fits.fill_null(False))
    if left.height:
        counts[table, f"{why}, left out"] += left.height
        names = [
            name for name in ("title", "source", "target", "subject_id", "id", "community") if name in left.columns
        ]
        examples = [
            " ".join(str(value) for value in row if value is not None) for row in left.select(names).head(5).rows()
        ]
        log.warning("%s: %d rows %s, left out: %s", table, left.height, why, ", ".join(examples))
    return frame.filter(fits.fill_null(False))
