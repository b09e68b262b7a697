"""The published index: the one people and queries read, switched in when the blocking checks have passed."""

import logging
import time
from datetime import timedelta
from typing import Any

import dagster as dg
import duckdb
import polars as pl

from graphrag_assets.defs.checks import broken_gates
from graphrag_assets.defs.reporting import markdown_table, picture
from graphrag_assets.defs.resources import GraphIndex, alone
from graphrag_assets.errors import StoreError
from graphrag_assets.explorer.page import page_path, write_page
from graphrag_assets.indexing.models import ledger_entries
from graphrag_assets.pictures.graph_map import graph_map
from graphrag_assets.settings import Settings
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, recorded_inputs
from graphrag_assets.store.compaction import compact, trim_records
from graphrag_assets.store.publication_reader import STABLE_NAME
from graphrag_assets.store.publication_writer import Publication, publish
from graphrag_assets.store.working import replace_table

log = logging.getLogger(__name__)
_FRESHNESS = (
    # The schedule publishes every night, if only to find that nothing has changed: two missed nights are a failure.
    dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=50), warn_window=timedelta(hours=26))
    if Settings.load().automation == "on"
    # By hand, nobody is late before a month is over.
    else dg.FreshnessPolicy.time_window(fail_window=timedelta(days=31), warn_window=timedelta(days=7))
)
_SPENT = """
SELECT committed_at::DATE AS day, used.task AS task, sum(used.cost_usd) AS cost_usd,
       sum(used.prompt_tokens + used.completion_tokens)::BIGINT AS tokens
FROM (SELECT committed_at, unnest(usage) AS used FROM index_runs) GROUP BY ALL ORDER BY ALL
"""


@alone("published_index")
def update_publication(index: GraphIndex, run_id: str) -> Publication:
    """Publish the working database, unless the newest publication has the same content.

    Raises:
        Failure: a blocking check does not hold. The gates are looked at here, whatever was part of the run.
    """
    if broken := broken_gates(index):
        reasons = " ".join(f"{result.description} {result.metadata['cure'].value}" for result in broken)
        raise dg.Failure(f"Not published. {reasons}", allow_retries=False)
    own = index.of(None)
    settings, backend = own.settings, own.backend()
    made_with = {
        **settings.as_rows(),
        "input": settings.input_as_given,
        "extractor": backend.extractor,
        "reporter": backend.reporter,
        "embedding_model": backend.embedding_model,
    }
    rows = pl.DataFrame({"name": list(made_with), "value": list(made_with.values())})
    inputs = recorded_inputs(index.working, "graph")
    with index.get_connection() as connection:
        replace_table(connection, schema.INDEX_SETTINGS, rows)
        trim_records(connection)
    publication = publish(index.working, settings.index_folder, settings.keep_publications, ledger_entries(settings))
    if inputs:
        with index.get_connection() as connection:
            record_inputs(connection, "published", inputs, run_id)
    _give_back_space(index)
    if publication.is_new or not page_path(settings.index_folder).exists():
        _write_explorer(index)
    return publication


def _write_explorer(index: GraphIndex) -> None:
    """Write the explorer beside the index. What is published stays so, whatever comes of this."""
    try:
        write_page(index.settings.index_folder)
    except Exception as error:
        log.warning("No explorer: %s It is written again by `python -m graphrag_assets explore`.", error)


def _give_back_space(index: GraphIndex) -> None:
    """Compact the working database if that is worth it. What is published stays so, whatever comes of this."""
    try:
        compact(index.working)
    except (StoreError, OSError, duckdb.Error) as error:
        log.warning("the working database could not be compacted, which is tried again next time: %s", error)


@dg.asset(
    group_name="publication",
    deps=["embeddings", "citations", "community_history", "entity_positions"],  # and through them, all tables
    kinds={"duckdb"},
    freshness_policy=_FRESHNESS,
    description="graphrag.duckdb: a new compact file shaped for reading, numbered, linked, and switched in "
    "atomically. Open it with any DuckDB tool; it never blocks indexing and is never blocked by it.\n\n"
    "It stands behind the blocking checks: while one of them fails, readers keep what was published last. Its "
    "metadata show the graph's map and what models have cost; the check publication_is_up_to_date tells whether the "
    "input folder has moved on.",
)
def published_index(context: dg.AssetExecutionContext, index: GraphIndex) -> dg.MaterializeResult:
    """The newest publication, and the pointer to it."""
    started = time.monotonic()
    publication = update_publication(index, context.run.run_id)
    context.log.info("publication %d %s", publication.number, "made" if publication.is_new else "is up to date")
    return dg.MaterializeResult(metadata=publication_metadata(publication, index, time.monotonic() - started))


def publication_metadata(publication: Publication, index: GraphIndex, seconds: float) -> dict[str, Any]:
    """Metadata of the published index: where it is, how large, its map, and what models have cost."""
    entities, relationships, members, positions, spent = index.working.read_all(
        "SELECT id, title, degree FROM entities",
        "SELECT source_id, target_id, weight FROM relationships",
        "FROM community_members WHERE level = 0",
        "FROM entity_positions",
        _SPENT,
    )
    return {
        "map": picture("The map of the graph", graph_map(entities, relationships, members, positions)),
        "publication": publication.number,
        "new": publication.is_new,
        "path": dg.MetadataValue.path(str((index.settings.index_folder / STABLE_NAME).absolute())),
        "explorer": dg.MetadataValue.path(str(page_path(index.settings.index_folder).absolute())),
        "megabytes": round(publication.path.stat().st_size / 1e6, 2),
        "seconds": round(seconds, 2),
        **{f"rows/{name}": count for name, count in publication.rows.items()},
        "cost_usd_of_recorded_runs": float(spent["cost_usd"].sum()),
        "cost_by_task_and_day": dg.MetadataValue.md(markdown_table(spent, spent.height)),
    }


@dg.definitions
def publication() -> dg.Definitions:
    return dg.Definitions(assets=[published_index])
