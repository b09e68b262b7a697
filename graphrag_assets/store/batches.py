"""Commit of a batch: all its tables in one transaction, so that a crash leaves its old or its new state."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import duckdb
import polars as pl

from graphrag_assets.runtime.outgoing import masker
from graphrag_assets.runtime.processes import peak_megabytes
from graphrag_assets.runtime.tracing import annotate
from graphrag_assets.store import schema
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.index_database import Changes, IndexDatabase, insert_row, replace_table

FACTS = tuple(table.name for table in schema.FACTS)

PUBLISHED_STAGES = ("knowledge_graph", "detect_communities", "write_community_reports", "embed_texts")
"""The stages whose tables a publication needs."""

UsageByTask = Mapping[str, Mapping[str, float]]
"""Usage of model calls by task: calls, ledger_hits, prompt_tokens, … as in index_runs."""


def batches_of(working: IndexDatabase, batch: str, sources: Sequence[str]) -> list[str]:
    """Return the batch, and those that hold documents of these files: another option `batch_by` may have moved them."""
    query = "SELECT DISTINCT batch FROM documents WHERE source IN (SELECT unnest($sources::VARCHAR[]))"
    return sorted({batch, *working.read(query, {"sources": list(sources)})["batch"]})


def known_facts(
    working: IndexDatabase, batches: Sequence[str], sources: Sequence[str], extractor: str
) -> list[pl.DataFrame]:
    """Return the stored facts of text units of these files, in any of the batches, that `extractor` has extracted.

    Returns:
        text_units (id, headings, and title, language, document_date and raw_data of the document) and the tables
        entity_mentions, relationship_mentions and covariates, with the batch where they are.
    """
    scope = """
        WHERE batch IN (SELECT unnest($batches::VARCHAR[])) AND extractor = $extractor
        AND document_id IN (SELECT id FROM documents WHERE source IN (SELECT unnest($sources::VARCHAR[])))
    """
    units = f"""
        SELECT t.id, t.headings, d.title, d.language, d.document_date, d.raw_data::VARCHAR AS raw_data
        FROM (FROM text_units {scope}) t JOIN documents d ON d.id = t.document_id ORDER BY t.id
    """
    facts = (f"FROM {name} {scope} ORDER BY id" for name in FACTS)
    parameters = {"batches": list(batches), "sources": list(sources), "extractor": extractor}
    return working.read_all(units, *facts, parameters=parameters)


def languages_extracted_by(working: IndexDatabase, extractor: str) -> pl.Series:
    """Return the language of each document with a text unit whose extractor has a name that begins with `extractor`."""
    return working.read(
        "SELECT language FROM documents WHERE id IN (SELECT document_id FROM text_units "
        "WHERE starts_with(extractor, $extractor))",
        {"extractor": extractor},
    )["language"]


def recorded_errors(working: IndexDatabase, batches: Sequence[str], *stages: str) -> pl.DataFrame:
    """Return rows of index_errors of the batches' text units in `stages`, such as extract, context or `LOSS_STAGES`."""
    return working.read(
        "SELECT * EXCLUDE (first_seen) FROM index_errors WHERE batch IN (SELECT unnest($batches::VARCHAR[])) "
        "AND stage IN (SELECT unnest($stages))",
        {"batches": list(batches), "stages": list(stages)},
    )


def write_batch(
    connection: duckdb.DuckDBPyConnection,
    batch: str,
    frames: Mapping[str, pl.DataFrame],
    errors: pl.DataFrame,
    digest: str,
    run_id: str,
    seconds: float,
    usage: UsageByTask | None = None,
    origin: str | None = None,
) -> dict[str, Changes]:
    """Replace the batch's rows by `frames` (table name to frame); part of a transaction.

    `seconds` and `usage` of computing them are recorded in index_runs; `origin` is that of an imported batch.
    """
    changes = {
        table.name: replace_table(connection, table, frames[table.name], "batch = $batch", batch=batch)
        for table in schema.BATCH_TABLES
    }
    replace_errors(connection, errors, "batch = $batch AND stage NOT IN ('scan', 'embed')", {"batch": batch})
    record_stage(connection, run_id, "index_batch", batch, seconds, changes, "text_units", usage)
    query = "SELECT revision, digest FROM batch_state WHERE batch = $batch"
    ((revision, before),) = connection.execute(query, {"batch": batch}).fetchall() or [(0, None)]
    if before == digest and not any(change.inserted or change.deleted for change in changes.values()):
        return changes  # it keeps its revision
    state = {
        "batch": batch,
        "revision": revision + 1,
        "digest": digest,
        "n_documents": frames["documents"].height,
        "n_text_units": frames["text_units"].height,
        "n_errors": errors.height,
        "run_id": run_id,
        "committed_at": utc_now(),
        "origin": origin,
    }
    connection.execute("DELETE FROM batch_state WHERE batch = $batch", {"batch": batch})
    insert_row(connection, schema.BATCH_STATE, state)
    connection.execute("UPDATE index_state SET revision = revision + 1")
    return changes


def replace_errors(
    connection: duckdb.DuckDBPyConnection, errors: pl.DataFrame, scope: str, parameters: Mapping[str, str | list[str]]
) -> None:
    """Replace the rows of index_errors in `scope`, an SQL condition with `parameters`, by `errors`.

    A known error keeps the time it was first seen. Secrets are masked.
    """
    errors = errors.with_columns(pl.col("error", "hint").cast(pl.String).map_elements(masker(), pl.String))
    execute_with(
        connection,
        """
        CREATE OR REPLACE TEMP TABLE current_errors AS
        SELECT DISTINCT ON (i.batch, i.source, i.row_number, i.stage, i.error)
            i.batch, i.source, i.row_number::BIGINT AS row_number, i.stage, i.error, i.hint,
            coalesce(e.first_seen, $now) AS first_seen
        FROM incoming_errors i LEFT JOIN index_errors e
          ON e.batch IS NOT DISTINCT FROM i.batch AND e.source IS NOT DISTINCT FROM i.source
         AND e.stage = i.stage AND e.error = i.error
         AND e.row_number IS NOT DISTINCT FROM i.row_number
        """,
        {"now": utc_now()},
        incoming_errors=errors,
    )
    connection.execute(f"DELETE FROM index_errors WHERE {scope}", dict(parameters))
    connection.execute("INSERT INTO index_errors BY NAME FROM current_errors")


REFRESHED = "refreshed"
"""The stage that stands for all of a refresh in refresh_state, see `assets.publication`."""
REFUSED = "refused texts"
"""The stage of refresh_state with the errors of texts that the embedding model does not take, by fingerprint."""


def record_stage(
    connection: duckdb.DuckDBPyConnection,
    run_id: str,
    stage: str,
    batch: str | None,
    seconds: float,
    changes: Mapping[str, Changes],
    main: str,
    usage: UsageByTask | None = None,
) -> None:
    """Add a row to index_runs for a stage that has written `changes`; `main` is its main table.

    A stage after the batches was made from their present revision: no other run has written since it read them. What a
    refresh has recorded no longer holds.
    """
    remove_inputs(connection, REFRESHED)
    if batch is None:
        record_inputs(connection, stage, inputs_of(connection))
    values: dict[str, object] = {
        "run_id": run_id,
        "stage": stage,
        "batch": batch,
        "committed_at": utc_now(),
        "seconds": round(seconds, 3),
        "rows": changes[main].rows,
        "inserted": sum(change.inserted for change in changes.values()),
        "deleted": sum(change.deleted for change in changes.values()),
        "peak_mb": peak_megabytes(),
        "usage": [{"task": task, **sums} for task, sums in (usage or {}).items()],
    }
    annotate({f"graphrag.{name}": v for name, v in values.items() if isinstance(v, str | int | float)})
    insert_row(connection, schema.INDEX_RUNS, values)


def trim_runs(connection: duckdb.DuckDBPyConnection, rows: int = 10_000) -> None:
    """Delete the oldest rows of index_runs, but for the last of each stage and batch."""
    newest = "committed_at DESC, rowid DESC"
    connection.execute(
        f"DELETE FROM index_runs WHERE rowid IN (SELECT rowid FROM index_runs QUALIFY row_number() OVER "
        f"(ORDER BY {newest}) > {rows} AND row_number() OVER (PARTITION BY stage, batch ORDER BY {newest}) > 1)"
    )


def inputs_of(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the revision of the batches: tables that were derived from another one are out of date."""
    return str(one_value(connection, "SELECT revision FROM index_state"))


def stages_behind(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return stages whose tables a publication needs, and that were derived from another revision of the batches."""
    derived = dict(connection.execute("SELECT stage, inputs FROM refresh_state").fetchall())
    present = inputs_of(connection)
    return [stage for stage in PUBLISHED_STAGES if derived.get(stage) != present]


def record_inputs(connection: duckdb.DuckDBPyConnection, stage: str, inputs: str) -> None:
    """Record the inputs that `stage` (graph, resolution of the clustering, published, refreshed) was made from."""
    remove_inputs(connection, stage)
    insert_row(connection, schema.REFRESH_STATE, {"stage": stage, "inputs": inputs})


def remove_inputs(connection: duckdb.DuckDBPyConnection, stage: str) -> None:
    """Forget what `stage` was made from, so that it is made again."""
    connection.execute("DELETE FROM refresh_state WHERE stage = $stage", {"stage": stage})


def recorded_inputs(working: IndexDatabase, stage: str) -> str | None:
    """Return the inputs that `stage` was last made from; None before its first run."""
    with working.connect() as connection:
        return recorded(connection, stage)


def recorded(connection: duckdb.DuckDBPyConnection, stage: str) -> str | None:
    """As `recorded_inputs`, in an open connection."""
    rows = connection.execute("SELECT inputs FROM refresh_state WHERE stage = $stage", {"stage": stage}).fetchall()
    return rows[0][0] if rows else None


def utc_now() -> datetime:
    """Now in UTC, without a time zone, as DuckDB's TIMESTAMP."""
    return datetime.now(UTC).replace(tzinfo=None)
