"""The published index: the one people and queries read, switched in when the blocking checks have passed."""

import time
from datetime import timedelta
from typing import Any

import dagster as dg

from graphrag_assets.defs.reporting import markdown_table, picture
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.errors import CheckError
from graphrag_assets.explorer.page import page_path
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.publish import update_publication
from graphrag_assets.pictures.graph_map import graph_map
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import STABLE_NAME
from graphrag_assets.store.publication_writer import Publication

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
    return dg.MaterializeResult(metadata=published(index.open(), context.run.run_id, context.log))


def published(index: Index, run_id: str, log: dg.DagsterLogManager) -> dict[str, Any]:
    """Publish the index; returns the metadata of the publication.

    Raises:
        Failure: a blocking check failed; a retry would not help.
    """
    started = time.monotonic()
    try:
        publication = update_publication(index, run_id)
    except CheckError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    log.info("publication %d %s", publication.number, "written" if publication.is_new else "is up to date")
    return _metadata(publication, index, time.monotonic() - started)


def _metadata(publication: Publication, index: Index, seconds: float) -> dict[str, Any]:
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
