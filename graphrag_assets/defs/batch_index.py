"""A batch through the pipeline and into the database: read what is known, compute, commit."""

import importlib.util
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from graphrag_assets.defs.options import Redo
from graphrag_assets.defs.reporting import usage_sums
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.errors import InputError
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline import unit_contexts
from graphrag_assets.pipeline.batch import KnownFacts, already_extracted, extract_facts, read_corpus
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.pipeline.loading import LoadOptions
from graphrag_assets.settings import Settings
from graphrag_assets.store.batches import FACTS, commit_batch, failed_units, known_contexts, known_facts
from graphrag_assets.store.working import Changes

if TYPE_CHECKING:
    from graphrag_assets.llm import Usage

CORPUS_VERSION = 2
"""Raised when loading, chunking or contexts make something else of the same files."""
GONE = "gone"
"""Stands for the content of a batch that is not in the folder."""


class IndexedBatch(NamedTuple):
    """What was committed: the frames by table, the skipped rows, the changes by table; and what models used."""

    frames: dict[str, pl.DataFrame]
    errors: pl.DataFrame
    changes: dict[str, Changes]
    usage: "Mapping[str, Usage]"


def load_options(settings: Settings) -> LoadOptions:
    return LoadOptions(
        text_column=settings.text_column,
        title_column=settings.title_column,
        id_column=settings.id_column,
        max_document_bytes=int(settings.max_document_mb * 1_000_000),
        encoding=settings.encoding,
    )


def chunk_options(settings: Settings) -> ChunkOptions:
    return ChunkOptions(
        method=settings.chunking,
        size=settings.chunk_size,
        overlap=settings.chunk_overlap,
        encoding=settings.encoding,
    )


def deciding_options(index: GraphIndex) -> tuple[object, ...]:
    """Everything but the files that decides what is made of a batch."""
    settings, backend = index.settings, index.backend()
    by_model = settings.text_unit_context == "model"
    contexts = (settings.text_unit_context, backend.context_writer if by_model else "")
    converters = bool(importlib.util.find_spec("markitdown"))  # installing them mends files they can read
    return load_options(settings), chunk_options(settings), backend.extractor, contexts, converters, CORPUS_VERSION


def batch_digest(index: GraphIndex, batch: str) -> str:
    """Hash of the batch's files and of everything that decides what is made of them; `index` is the batch's own."""
    folder = index.input_folder
    if not folder.has(batch):
        return stable_id(GONE)  # nothing is made of it, whatever its options were
    return stable_id(folder.digest(batch), *deciding_options(index))


def index_batch_of(
    index: GraphIndex,
    batch: str,
    backend: IndexingModels,
    run_id: str,
    extract: bool = True,
    redo: Redo = Redo.FAILED_UNITS,
) -> IndexedBatch:
    """Index one batch; with `extract` false only its documents and text units.

    Text units already extracted by the same extractor are not extracted again unless `redo` wants it. A batch that is
    no longer in the input folder commits no rows, which removes it from the index. `index` is the batch's own, as
    `index.of(batch)` gives it; its options stay with the batch.

    Raises:
        InputError: the batch is an imported one; there are no files to index it from.
    """
    origins = index.working.read("SELECT origin FROM batch_state WHERE batch = $batch", {"batch": batch})
    if origins["origin"].drop_nulls().len():
        raise InputError(
            f"The batch {batch!r} was imported from {origins['origin'].item()}. Give the entry of the input folder "
            f"another name, or run `python -m graphrag_assets import --remove {batch}` first."
        )
    with index.working.alone(f"batch-{stable_id(batch)}"):
        return _index_batch(index, batch, backend, run_id, extract, redo)


def _index_batch(
    index: GraphIndex, batch: str, backend: IndexingModels, run_id: str, extract: bool, redo: Redo
) -> IndexedBatch:
    started = time.monotonic()
    settings = index.settings
    digest = batch_digest(index, batch)
    files = index.input_folder.files(batch)
    with_contexts = settings.text_unit_context != "none"
    documents, text_units, errors = read_corpus(
        batch, files, load_options(settings), chunk_options(settings), with_contexts
    )
    if settings.text_unit_context == "model":
        text_units, failures = _written_contexts(index, batch, documents, text_units, backend, redo)
        errors = pl.concat([errors, failures], how="diagonal_relaxed")
    stored = known_facts(index.working, batch, backend.extractor)
    if redo in (Redo.EXTRACTION, Redo.EVERYTHING):
        stored = {name: frame.clear() for name, frame in stored.items()}
    left_alone = failed_units(index.working, batch) if redo is Redo.NOTHING else None
    known = KnownFacts(stored["text_units"], *(stored[name] for name in FACTS))
    if extract:
        facts = extract_facts(documents, text_units, errors, known, backend.extract, backend.extractor, left_alone)
        frames, errors = facts._asdict(), facts.errors
        del frames["errors"]
    else:
        done = pl.col("id").is_in(already_extracted(documents, text_units, known, backend.extractor).implode())
        text_units = text_units.with_columns(extractor=pl.when(done).then(pl.lit(backend.extractor)))
        frames = {"documents": documents, "text_units": text_units}
    seconds = time.monotonic() - started
    used = usage_sums(backend.usage)
    options = index.options if index.input_folder.has(batch) else {}  # they go with the batch
    changes = commit_batch(index.working, batch, frames, errors, digest, run_id, seconds, used, options)
    return IndexedBatch(frames, errors, changes, backend.usage)


def _written_contexts(
    index: GraphIndex,
    batch: str,
    documents: pl.DataFrame,
    text_units: pl.DataFrame,
    backend: IndexingModels,
    redo: Redo,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The text units with contexts by the chat model, and the index_errors rows of those it failed to write."""
    known = known_contexts(index.working, batch)
    left_alone = failed_units(index.working, batch, unit_contexts.STAGE) if redo is Redo.NOTHING else None
    return unit_contexts.write_contexts(
        documents,
        text_units,
        known.clear() if redo is Redo.EVERYTHING else known,
        backend.write_contexts,
        backend.context_writer,
        left_alone,
    )
