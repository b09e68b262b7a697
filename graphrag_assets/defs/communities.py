"""Communities of the graph, their members and history, the map's layout, and their reports."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from graphrag_assets.defs.options import CommunityOptions, ReportOptions, cache_not_before
from graphrag_assets.defs.reporting import (
    Metadata,
    asset_spec,
    picture,
    selected_results,
    table_metadata,
    usage_metadata,
)
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.rerun import Rerun
from graphrag_assets.indexing.stage import StageResult
from graphrag_assets.pictures.graph_map import graph_map
from graphrag_assets.pipeline.incremental_leiden import Reclustered
from graphrag_assets.store import schema


@dg.multi_asset(
    name="detect_communities",
    can_subset=True,
    specs=[
        asset_spec(schema.COMMUNITIES, "communities", ["entities", "relationships"]),
        asset_spec(schema.COMMUNITY_MEMBERS, "communities", ["communities"]),
        asset_spec(schema.COMMUNITY_HISTORY, "communities", ["communities"]),
        asset_spec(schema.ENTITY_POSITIONS, "communities", ["community_members"]),
    ],
)
def detect_communities(
    context: dg.AssetExecutionContext, config: CommunityOptions, index: GraphIndex
) -> Iterator[dg.MaterializeResult]:
    """Communities of the graph as it is now, with their members, their history and the map."""
    own = config.apply_to(index.open(), None)
    written = update_communities(own, context.run.run_id, config.from_scratch)
    yield from selected_results(context, community_metadata(*written))


def community_metadata(
    updated: StageResult, clustering: Reclustered, entities: pl.DataFrame, relationships: pl.DataFrame
) -> Metadata:
    """Metadata of the communities' tables: how much the clustering moved and how good it is, sizes, the map."""
    frames = updated.frames
    drawn = graph_map(entities, relationships, frames["community_members"], frames["entity_positions"])
    more: Metadata = {
        "communities": {
            "mean_size": frames["communities"]["size"].mean() or 0.0,
            "max_size": frames["communities"]["size"].max() or 0,
            "levels": frames["communities"]["level"].n_unique(),
            "entities_free_to_move": clustering.n_free,
            "modularity": clustering.modularity,
            "modularity_of_fresh_run": clustering.fresh_modularity,
            "clustered_from_scratch": int(clustering.fresh),
        },
        "entity_positions": {"map": picture("The map of the graph", drawn)},
    }
    return {
        name: table_metadata(name, updated.changes[name], updated.seconds, frame, **more.get(name, {}))
        for name, frame in frames.items()
        if name != schema.CLUSTERED_EDGES.name  # which is no asset
    }


@dg.multi_asset(
    name="write_community_reports",
    can_subset=True,
    specs=[
        asset_spec(
            schema.COMMUNITY_REPORTS,
            "communities",
            ["communities", "community_members", "entities", "relationships", "covariates"],
        ),
        asset_spec(schema.CITATIONS, "communities", ["community_reports"]),
    ],
)
def write_community_reports(
    context: dg.AssetExecutionContext, config: ReportOptions, index: GraphIndex
) -> Iterator[dg.MaterializeResult]:
    """A report on each community, and what it cites."""
    own, run = config.apply_to(index.open(), None), context.run
    models = own.models(run_id=run.run_id, cache_not_before=cache_not_before(context.instance, run, config))
    written = update_reports(own, models, run.run_id, config.rerun is not Rerun.NOTHING)
    yield from selected_results(context, report_metadata(*written))


def report_metadata(updated: StageResult, n_kept: int) -> Metadata:
    """Metadata of the reports and their citations."""
    reports, citations = updated.frames["community_reports"], updated.frames["citations"]
    more = {
        "reports_written": reports.height - n_kept,
        "reports_kept": n_kept,
        **usage_metadata(updated.usage),
    }
    ranked = reports.select("community", "level", "title", "rank", "size").sort("rank", descending=True)
    unresolved = citations["cited_id"].null_count()
    return {
        "community_reports": table_metadata(
            "community_reports", updated.changes["community_reports"], updated.seconds, ranked, **more
        ),
        "citations": table_metadata(
            "citations", updated.changes["citations"], updated.seconds, citations, unresolved=unresolved
        ),
    }
