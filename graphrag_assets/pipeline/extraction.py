"""Text units become mentions: each unit is extracted by itself, so its facts depend on nothing but its text."""

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import with_id
from graphrag_assets.records import ClaimRecord, EntityRecord, RelationshipRecord, TextUnit, UnitExtraction
from graphrag_assets.store import schema
from graphrag_assets.text import title_key

_key = functools.lru_cache(maxsize=1 << 16)(title_key)  # the same names come again and again


class Extraction(NamedTuple):
    """The facts of a batch: frames as the tables of the same names, and index_errors rows of failed units."""

    entity_mentions: pl.DataFrame
    relationship_mentions: pl.DataFrame
    covariates: pl.DataFrame
    errors: pl.DataFrame


Extract = Callable[[Iterable[TextUnit]], Iterator[tuple[str, UnitExtraction | Exception]]]


def extract_text_units(text_units: pl.DataFrame, extract: Extract, extractor: str) -> Extraction:
    """Extract entities, relationships and claims from each text unit.

    Args:
        text_units: id, batch, document_id, text, and title and language of the document.
        extract: from text units to what was found in each, in any order, or the exception that makes the unit a
            failed one.
        extractor: fingerprint of `extract`, stored with each row.
    """
    entities: list[tuple[str, EntityRecord]] = []
    relationships: list[tuple[str, RelationshipRecord]] = []
    claims: list[tuple[str, ClaimRecord]] = []
    failures: list[tuple[str, str]] = []
    for unit_id, found in extract(starmap(TextUnit, text_units.select(TextUnit._fields).iter_rows())):
        if isinstance(found, Exception):
            failures.append((unit_id, f"{type(found).__name__}: {found}"))
            continue
        entities += [(unit_id, record) for record in found.entities]
        relationships += [(unit_id, record) for record in found.relationships]
        claims += [(unit_id, record) for record in found.claims]
    for records in (entities, relationships, claims, failures):
        records.sort(key=lambda record: record[0])  # whatever order they came in; stable within a unit
    lineage = text_units.select("batch", "document_id", text_unit_id="id")
    return Extraction(
        _entity_frame(entities, lineage, extractor),
        _relationship_frame(relationships, lineage, extractor),
        _claim_frame(claims, lineage, extractor),
        _failure_frame(failures, lineage),
    )


def _frame(rows: list[dict[str, object]], columns: dict[str, type[pl.DataType] | pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"text_unit_id": pl.String, **columns}, orient="row")


def _finish(frame: pl.DataFrame, lineage: pl.DataFrame, table: schema.Table, *identity: str) -> pl.DataFrame:
    """Rows of one id collapse to the first; the id is the hash of `identity`."""
    joined = frame.join(lineage, on="text_unit_id").with_columns(table_name=pl.lit(table.name))
    return (
        with_id(joined, "table_name", "text_unit_id", *identity)
        .unique("id", keep="first", maintain_order=True)
        .select(table.column_names)
        .sort("id")
    )


def _entity_frame(records: list[tuple[str, EntityRecord]], lineage: pl.DataFrame, extractor: str) -> pl.DataFrame:
    frame = _frame(
        [
            {
                "text_unit_id": unit,
                "title": record.title,
                "title_key": _key(record.title),
                "type": record.type.upper(),
                "description": record.description,
                "n_sentences": record.n_sentences,
            }
            for unit, record in records
        ],
        {
            "title": pl.String,
            "title_key": pl.String,
            "type": pl.String,
            "description": pl.String,
            "n_sentences": pl.Int64,
        },
    ).filter(pl.col("title_key") != "")
    return _finish(
        frame.with_columns(extractor=pl.lit(extractor)), lineage, schema.ENTITY_MENTIONS, "title_key", "type"
    )


def _relationship_frame(
    records: list[tuple[str, RelationshipRecord]], lineage: pl.DataFrame, extractor: str
) -> pl.DataFrame:
    frame = _frame(
        [
            {
                "text_unit_id": unit,
                "source": record.source,
                "target": record.target,
                "source_key": _key(record.source),
                "target_key": _key(record.target),
                "type": record.type.upper(),
                "description": record.description,
                "strength": float(record.strength),
            }
            for unit, record in records
        ],
        {
            "source": pl.String,
            "target": pl.String,
            "source_key": pl.String,
            "target_key": pl.String,
            "type": pl.String,
            "description": pl.String,
            "strength": pl.Float64,
        },
    ).filter((pl.col("source_key") != "") & (pl.col("target_key") != ""))
    return _finish(
        frame.with_columns(extractor=pl.lit(extractor)),
        lineage,
        schema.RELATIONSHIP_MENTIONS,
        "source_key",
        "target_key",
        "type",
        "description",
    )


def _claim_frame(records: list[tuple[str, ClaimRecord]], lineage: pl.DataFrame, extractor: str) -> pl.DataFrame:
    frame = _frame(
        [
            {
                "text_unit_id": unit,
                "type": record.type.upper(),
                "description": record.description,
                "subject_id": record.subject,
                "object_id": record.object,
                "subject_key": _key(record.subject),
                "object_key": _key(record.object),
                "status": record.status,
                "start_date": record.start_date,
                "end_date": record.end_date,
                "source_text": record.source_text,
            }
            for unit, record in records
        ],
        dict.fromkeys(
            (
                "type",
                "description",
                "subject_id",
                "object_id",
                "subject_key",
                "object_key",
                "status",
                "start_date",
                "end_date",
                "source_text",
            ),
            pl.String,
        ),
    )
    claims = frame.with_columns(extractor=pl.lit(extractor), covariate_type=pl.lit("claim"))
    return _finish(claims, lineage, schema.COVARIATES, "subject_key", "object_key", "type", "source_text")


def _failure_frame(failures: list[tuple[str, str]], lineage: pl.DataFrame) -> pl.DataFrame:
    frame = pl.DataFrame(failures, schema={"text_unit_id": pl.String, "error": pl.String}, orient="row")
    return frame.join(lineage, on="text_unit_id").select(
        "batch",
        source="text_unit_id",
        row_number=pl.lit(None, pl.Int64),
        stage=pl.lit("extract"),
        error="error",
        hint=pl.lit("Materialize the batch again: only its failed text units are extracted again."),
    )
