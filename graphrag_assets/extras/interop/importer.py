"""Imports an index as a batch of this one, without a model call.

Its facts are committed as those of any batch. Its communities and reports are written as if the last run had left
them, so the ordinary stages find them unchanged, keep them, and write only what the index lacked.

An import is finished when its counts are recorded. An interrupted one is deleted and repeated: with its facts in the
graph, its communities would be clustered instead of imported.
"""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import ReportMaterial, ReportRecord
from graphrag_assets.embedded import REPORTER, summarize, write_reports
from graphrag_assets.errors import CheckError, GraphRAGError, InputError
from graphrag_assets.extras.interop.facts import Facts, facts_of
from graphrag_assets.extras.interop.left_out import Counts
from graphrag_assets.extras.interop.source import Source, read_source
from graphrag_assets.extras.interop.structure import write_structure
from graphrag_assets.extras.interop.vectors import of_one_length
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.candidates import update_candidates
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import TEXTS, update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import DELETED
from graphrag_assets.indexing.merge_graph import NUMBERED, merge_graph
from graphrag_assets.indexing.publish import update_publication
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.runtime.peak_memory import restart_peak
from graphrag_assets.store import imports, schema
from graphrag_assets.store.change_log import remove_marks
from graphrag_assets.store.locks import batch_lock
from graphrag_assets.store.publication_writer import Publication

PREFIX = "imported-"
STAND_IN = "stand-in"
"""The summarizer of an import, so that the next run merges everything with the one that is set."""
_AS_THEY_EMBED = """
SELECT 'text_unit' AS kind, id, text FROM text_units
UNION ALL SELECT 'entity', id, title || ':' || description FROM entities
UNION ALL SELECT 'community_report', id, full_content FROM community_reports
"""


class Imported(NamedTuple):
    """The imported batch, its generation, the publication, and `counts`: step (read, written, repaired), table_name,
    what, n."""

    batch: str
    generation: str
    counts: pl.DataFrame
    publication: Publication


def import_index(index: Index, path: Path, name: str | None = None, vectors_of: str = "") -> Imported:
    """Import the index or graph at `path` as a batch and publish.

    Args:
        index: the index to import into.
        path: a folder of GraphRAG's output, a folder with entities and relationships, or a GraphML file.
        name: of the batch; default: `imported-` and the name of the folder.
        vectors_of: the embedding model of the imported vectors. They are used if it is that of the settings.

    Raises:
        InputError: `path` cannot be read, or the name is taken.
        GraphRAGError: it is imported, but a blocking check prevents publication.
    """
    restart_peak()
    started = time.monotonic()
    batch = name or PREFIX + path.resolve().stem
    with index.working.exclusive("refresh"), index.working.exclusive(batch_lock(batch)):
        is_known = _check_name(index, batch)
        source, counts, run_id = read_source(path), Counter[tuple[str, str]](), str(uuid.uuid4())
        counts.update(source.left_out)
        facts = facts_of(source, batch, imports.ids_of_others(index.working, batch), counts)
        _check_something_left(path, source, facts)
        digest = stable_id("import", *(frame.hash_rows().sum() for frame in facts.frames.values()))
        imported = imports.ImportedBatch(batch, str(path.resolve()), source.generation, digest)
        numbers, ids = facts.kept_numbers, facts.original_ids
        models = without_calls(index.models())
        vectors = _usable_vectors(index, source.vectors, models.embedding_model, vectors_of, counts)
        if is_known:
            _delete_leftovers(index, models, batch, run_id)
        seconds = time.monotonic() - started
        imports.write_facts(index.working, imported, facts.frames, numbers, ids, NUMBERED, run_id, seconds)
        merge_graph(index, models, run_id)
        with index.working.exclusive("detect_communities"), index.working.exclusive("write_community_reports"):
            n_kept = write_structure(index, batch, source, facts, counts)
        update_communities(index, run_id)
        update_reports(index, models, run_id)
        with index.working.exclusive("embed_texts"):
            _write_vectors(index, source._replace(vectors=vectors), models.embedding_model, counts)
        update_embeddings(index, models, run_id)
        update_candidates(index, run_id)
        table = _all_counts(index, batch, source, n_kept, counts)
        imports.record_counts(index.working, batch, table)
        return Imported(batch, source.generation, table, _published(index, batch, run_id))


def _published(index: Index, batch: str, run_id: str) -> Publication:
    try:
        return update_publication(index, run_id)
    except CheckError as error:
        raise GraphRAGError(f"{batch!r} is imported. {error}") from error


def _check_name(index: Index, batch: str) -> bool:
    """Whether a batch of that name existed, of which rows may be left.

    Raises:
        InputError: it still exists, or the name is no valid folder name.
    """
    _check_is_folder_name(batch)
    state = index.working.read("SELECT origin, n_documents FROM batch_state WHERE batch = $batch", {"batch": batch})
    is_whole = batch not in imports.unfinished(index.working)["batch"]
    if state.height and state.item(0, "n_documents") and is_whole:
        origin = state.item(0, "origin")
        what = f"was imported from {origin}" if origin else "is a batch of the input folder"
        remedy = f"Remove it with `import --remove {batch}` and run `index` first, or give" if origin else "Give"
        raise InputError(f"{batch!r} {what}. {remedy} this one another name with --name.")
    return state.height > 0


def _check_is_folder_name(batch: str) -> None:
    """Documents handed over to the input folder go into a folder of this name, without the prefix."""
    folder = batch.removeprefix(PREFIX)
    if not folder.strip() or folder.startswith(".") or any(c in "/\\" or not c.isprintable() for c in batch):
        raise InputError(
            f"{batch!r} cannot be the name of a batch: it must be a valid folder name without / and \\ that does "
            "not start with a dot. Choose another with --name."
        )


def _delete_leftovers(index: Index, models: IndexingModels, batch: str, run_id: str) -> None:
    """Delete all rows left by a removed or interrupted import."""
    documents = index.working.read("SELECT id FROM documents WHERE batch = $batch", {"batch": batch})
    imports.replace_documents(index.working, batch, documents["id"], DELETED, run_id)
    merge_graph(index, models, run_id)
    update_communities(index, run_id)
    update_reports(index, models, run_id)


def without_calls(models: IndexingModels) -> IndexingModels:
    """`models` with the embedded default for all writing: an import calls no language model.

    Reports written by the embedded default are marked, so that a language model rewrites them in the next run.
    """

    def stand_in(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        return [replace(record, writer=REPORTER) for record in write_reports(materials)]

    return replace(models, summarize=summarize, summarizer=STAND_IN, write_reports=stand_in)


def _check_something_left(path: Path, source: Source, facts: Facts) -> None:
    n_given = source.entities.height + source.relationships.height
    if n_given and facts.frames["entity_mentions"].is_empty():
        raise InputError(
            f"No entity or relationship in {path} has a name: none of {n_given} rows can be imported. Check the "
            "columns title of entities, source and target of relationships."
        )


def _usable_vectors(index: Index, vectors: pl.DataFrame, model: str, vectors_of: str, counts: Counts) -> pl.DataFrame:
    """The vectors of the source with the model and the length of those of the index."""
    if not model or vectors_of != model:
        counts["embeddings", "from another or an unknown embedding model, left out"] += vectors.height
        return vectors.clear()
    lengths = index.working.read(
        "SELECT len(vector) FROM embeddings WHERE model = $model GROUP BY ALL ORDER BY count(*) DESC LIMIT 1",
        {"model": model},
    )
    usable = of_one_length(vectors, lengths.item() if lengths.height else None)
    counts["embeddings", "with another length than the index's vectors, left out"] += vectors.height - usable.height
    return usable


def _write_vectors(index: Index, source: Source, model: str, counts: Counts) -> None:
    """Write the vectors of the source for unchanged texts."""
    if source.vectors.is_empty():
        return
    # Imported vectors embed other texts of the same rows; they are used, not paid for again.
    queries = (query.format(among="") for query in TEXTS.values())
    units, entities, reports, theirs = index.working.read_all(*queries, _AS_THEY_EMBED)
    texts = embedding_texts(units, entities, reports, model).rows.drop("parts").join(theirs, on=["kind", "id"])
    given = pl.concat(
        [
            source.text_units.select(kind=pl.lit("text_unit"), id="id", text="text"),
            source.entities.select(
                kind=pl.lit("entity"),
                id="id",
                text=pl.concat_str("title", pl.lit(":"), pl.col("description").fill_null("")),
            ),
            source.reports.select(kind=pl.lit("community_report"), id="id", text="full_content"),
        ]
    ).join(source.vectors, on=["kind", "id"])
    found = texts.join(given.select("kind", "text", "vector").unique(["kind", "text"]), on=["kind", "text"])
    matrix = np.array(found["vector"].to_list(), dtype=np.float32).reshape(found.height, -1)
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    rows = found.select("kind", "id", "fingerprint", "model").with_columns(
        vector=pl.Series(unit.tolist(), dtype=pl.List(pl.Float32))
    )
    counts["embeddings", "of changed texts or of entities without a relationship, left out"] += (
        source.vectors.height - rows.height
    )
    with index.working.transaction() as connection:
        remove_marks(connection)
        known = connection.sql("SELECT kind, id FROM embeddings").pl()
        imports.add_rows(connection, schema.EMBEDDINGS, rows.join(known, on=["kind", "id"], how="anti"))


def _all_counts(index: Index, batch: str, source: Source, n_kept: int, repaired: Counts) -> pl.DataFrame:
    """step, table_name, what, n: rows read, rows written, and repairs."""
    written = imports.rows_written(index.working, batch)
    if source.members.height:
        repaired["communities", "added for entities without a community"] += written["communities"] - n_kept
    own = index.working.read("SELECT count(*) FROM community_reports WHERE model = $own", {"own": REPORTER}).item()
    if source.reports.height:
        repaired["community_reports", "written by the embedded default because they were missing"] += own
    rows = [("read", table, "rows", n) for table, n in source.rows().items()]
    rows += [("written", table, "rows", n) for table, n in written.items()]
    rows += [("repaired", table, what, n) for (table, what), n in repaired.items() if n > 0]
    return pl.DataFrame(rows, schema=["step", "table_name", "what", "n"], orient="row")
