"""One batch from its files to its facts: documents, text units, mentions and claims."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import GLEAN, TextUnit
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.pipeline.chunking import ChunkOptions, chunk_documents
from graphrag_assets.pipeline.extraction import Extract, extract_text_units
from graphrag_assets.pipeline.loading import (
    DOCUMENTS,
    INDEX_ERRORS,
    SourceFile,
    given_titles,
    load_documents,
)
from graphrag_assets.pipeline.own_facts import FORMAT, extract_own_facts
from graphrag_assets.pipeline.unit_contexts import (
    SEPARATOR,
    correspondents,
    metadata_texts,
    with_contexts,
)
from graphrag_assets.reading.read_records import Converter
from graphrag_assets.reading.source_records import LoadOptions
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema

_OF_EMBEDDED = ("title", "language", "document_date", "correspondents")
"""The properties of a document that the embedded default uses."""
_OF_MODEL = ("document_date", "metadata", "headings")
"""What is sent to a chat model besides the text: properties of the document, and the headings of the text unit."""


_HEADINGS = pl.col("headings").list.join(SEPARATOR).fill_null("")


def read_corpus(
    batch: str,
    files: Iterable[SourceFile],
    load: LoadOptions,
    chunk: ChunkOptions,
    convert: Converter,
    metadata_columns: Sequence[str] = (),
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the batch's documents, its text units (not extracted yet), and its errors.

    The context of a text unit is the title and headings it stands under, and the metadata of its document.
    """
    documents, errors = load_documents(batch, files, load, convert)
    text_units = chunk_documents(documents, chunk)
    metadata = metadata_texts(documents["raw_data"], metadata_columns)
    text_units = with_contexts(documents.with_columns(given_titles(documents), metadata), text_units)
    return documents, text_units.with_columns(extractor=pl.lit(None, pl.String)), errors


class KnownFacts(NamedTuple):
    """The stored facts of the batch: mentions and claims of text units extracted by the same extractor.

    `text_units` has their id and headings, and title, language, document_date and raw_data of the document. `losses`:
    rows of index_errors of those that were extracted with losses.
    """

    text_units: pl.DataFrame
    entity_mentions: pl.DataFrame
    relationship_mentions: pl.DataFrame
    covariates: pl.DataFrame
    losses: pl.DataFrame


NO_FACTS = KnownFacts(
    pl.DataFrame(
        schema={name: DOCUMENTS[name] for name in ("id", "title", "language", "document_date", "raw_data")}
        | {"headings": pl.List(pl.String)}
    ),
    pl.DataFrame(schema=polars_schema(schema.ENTITY_MENTIONS)),
    pl.DataFrame(schema=polars_schema(schema.RELATIONSHIP_MENTIONS)),
    pl.DataFrame(schema=polars_schema(schema.COVARIATES)),
    pl.DataFrame(schema=INDEX_ERRORS),
)


def already_extracted(
    units: pl.DataFrame, stored: KnownFacts, extractor: str, metadata_columns: Sequence[str] = ()
) -> pl.Series:
    """Return the ids of the text units that are `stored`, made from the same text and, where it matters, the same
    context.

    `units`: as `in_documents` returns them.
    """
    by_model = not extractor.startswith(EXTRACTOR)
    used = {*(_OF_EMBEDDED if EXTRACTOR in extractor else ()), *(_OF_MODEL if by_model else ())}
    raw_data = stored.text_units["raw_data"]
    then = stored.text_units.with_columns(
        metadata_texts(raw_data, metadata_columns), correspondents(raw_data), _HEADINGS
    )
    return units.join(then, on=["id", *sorted(used)], how="semi", nulls_equal=True)["id"]


def in_documents(text_units: pl.DataFrame, documents: pl.DataFrame, metadata_columns: Sequence[str]) -> pl.DataFrame:
    """`text_units` with what an extraction uses besides: headings, and of documents title, date, mail, file …"""
    raw_data = documents["raw_data"]
    context = documents.with_columns(metadata_texts(raw_data, metadata_columns), correspondents(raw_data)).select(
        *_OF_EMBEDDED, "metadata", "source", document_id="id"
    )
    return text_units.with_columns(_HEADINGS).join(context, on="document_id", maintain_order="left")


def units_to_extract(
    text_units: pl.DataFrame, documents: pl.DataFrame, metadata_columns: Sequence[str]
) -> Iterator[TextUnit]:
    """Return the text units as an extraction takes them."""
    rows = in_documents(text_units, documents, metadata_columns).select(TextUnit._fields)
    return starmap(TextUnit, rows.iter_rows())


def extract_facts(
    documents: pl.DataFrame,
    text_units: pl.DataFrame,
    errors: pl.DataFrame,
    stored: KnownFacts,
    extract: Extract,
    extractor: str,
    metadata_columns: Sequence[str] = (),
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Return what a batch contributes, by table, and its errors.

    Only text units that are not `stored` are extracted; those that fail stay pending.

    Documents of facts are not extracted: what they state are their facts.

    A text unit with a failed gleaning is extracted again, by the answers in the ledger as far as they are there.

    The embedded default uses the document's title, language, date and correspondents too, a chat model its date and
    metadata and the headings of the text unit: where they changed, a text unit is extracted again.
    """
    units = in_documents(text_units, documents, metadata_columns)
    of_facts = extract_own_facts(documents, text_units, units)
    units = units.filter(~pl.col("document_id").is_in(documents.filter(format=FORMAT)["id"].implode()))
    unfinished = stored.losses.filter(pl.col("stage") == GLEAN)["source"]
    done = already_extracted(units, stored, extractor, metadata_columns)
    done = done.filter(~done.is_in(unfinished.implode()))
    extracted = extract_text_units(units.filter(~pl.col("id").is_in(done.implode())), extract, extractor)
    failed = pl.col("id").is_in(extracted.errors["source"].implode())
    kept_losses = stored.losses.filter(pl.col("source").is_in(done.implode()))

    text_units = text_units.with_columns(extractor=pl.when(~failed).then(pl.lit(extractor)))
    frames = {"documents": documents, "text_units": text_units}
    for name in ("entity_mentions", "relationship_mentions", "covariates"):
        before = getattr(stored, name).filter(pl.col("text_unit_id").is_in(done.implode()))
        new = getattr(extracted, name), getattr(of_facts, name)
        frames[name] = pl.concat([before, *new], how="vertical_relaxed")
    return frames, pl.concat([errors, extracted.errors, kept_losses, extracted.losses], how="diagonal_relaxed")
