"""Communities of the graph and their members."""

import math
from importlib.resources import files

import polars as pl

from graphrag_assets.assets.stage import CODE_VERSIONS, Run, StageResult, stage
from graphrag_assets.pipeline.clustering import ClusterOptions, communities_of
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.incremental_leiden import MODULARITY_LOSS, recluster
from graphrag_assets.store import schema
from graphrag_assets.store.connections import execute_with
from graphrag_assets.store.index_database import assign_numbers, replace_table

_READ = (  # in any order: nothing made of them depends on it
    "SELECT id FROM entities",
    "SELECT source_id, target_id, weight FROM relationships",
    "SELECT level, community AS cluster, entity_id FROM community_members",
    "FROM clustered_edges",
    "SELECT id, level, entity_ids FROM communities",
    "SELECT count(*) > 0 AS is_imported FROM batch_state WHERE origin IS NOT NULL",
)
_COMMUNITIES = files("graphrag_assets.store").joinpath("sql/communities.sql").read_text()
_MEMBERS = """
SELECT human_readable_id AS community, level, entity_id
FROM clusters JOIN ids ON key = cluster JOIN numbers n ON n.table_name = 'communities' AND n.id = ids.id
"""


@stage("communities", {"communities": ("entities", "relationships")}, CODE_VERSIONS["communities"])
def detect_communities(run: Run) -> StageResult:
    """Cluster, starting from the previous communities; match them so that ids stay."""
    index = run.index
    entities, relationships, members, edges, previous, imported = index.working.read_all(*_READ)
    is_imported = imported.item()
    clustering = recluster(
        entities["id"],
        relationships,
        members,
        edges,
        ClusterOptions(index.settings.max_cluster_size),
        run.config is not None and run.config.from_scratch,
        # Imported communities stay, with the reports that were paid for, until somebody clusters from scratch.
        math.inf if is_imported else MODULARITY_LOSS,
        keep_divisions=is_imported,
    )
    current = communities_of(clustering.members)
    ids = match_communities(previous, current)
    with index.working.transaction() as connection:
        order = current.join(ids, on="key").select("id", "level", -pl.col("size"))
        assign_numbers(connection, "communities", order)
        for name, frame in {"clusters": clustering.members, "ids": ids}.items():
            execute_with(connection, f"CREATE OR REPLACE TEMP TABLE {name} AS FROM rows", rows=frame)
        changes = {
            "communities": replace_table(connection, schema.COMMUNITIES, _COMMUNITIES),
            "community_members": replace_table(connection, schema.COMMUNITY_MEMBERS, _MEMBERS),
            "clustered_edges": replace_table(connection, schema.CLUSTERED_EDGES, clustering.edges),
        }
    return StageResult(
        changes,
        {
            "modularity": clustering.modularity,
            "modularity_of_fresh_run": clustering.fresh_modularity,
            "clustered_from_scratch": int(clustering.is_fresh),
        },
    )
