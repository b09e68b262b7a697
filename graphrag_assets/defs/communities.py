"""Communities of the graph, their members and history, and their reports."""

from collections.abc import Iterator, Mapping

import dagster as dg
import polars as pl

from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.defs.masked import masked
from graphrag_assets.defs.options import CommunityOptions, ReportOptions, cache_not_before
from graphrag_assets.defs.reporting import (
    Metadata,
    asset_spec,
    selected_results,
    tables_metadata,
    usage_metadata,
)
from graphrag_assets.defs.resources import MODELS, begin_step, needs
from graphrag_assets.indexing import communities, reports
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.pipeline.incremental_leiden import Reclustered
from graphrag_assets.store import schema

_COMMUNITY_TABLES = {
    schema.COMMUNITIES: ["entities", "relationships"],
    schema.COMMUNITY_MEMBERS: ["communities"],
    schema.COMMUNITY_HISTORY: ["communities"],
}
_BY_NAME = [table.name for table in _COMMUNITY_TABLES]
_REPORT_TABLES = {
    schema.COMMUNITY_REPORTS: ["communities", "community_members", "entities", "relationships", "covariates"],
    schema.CITATIONS: ["community_reports"],
}


def detect_communities(names: IndexNames) -> dg.AssetsDefinition:
    """The assets of communities, their members and their history."""
    version = communities.CODE_VERSION

    @dg.multi_asset(
        name=names.name("detect_communities"),
        can_subset=True,
        specs=[asset_spec(names, table, "communities", deps, version) for table, deps in _COMMUNITY_TABLES.items()],
        required_resource_keys=needs(names),
    )
    @masked
    def detect_communities(
        context: dg.AssetExecutionContext, config: CommunityOptions
    ) -> Iterator[dg.MaterializeResult]:
        """Communities of the graph as it is now, with their members and their history."""
        own = config.apply_to(begin_step(names, context), None)
        written = communities.update_communities(own, context.run.run_id, config.from_scratch)
        frames = dict(zip(_BY_NAME, own.working.read_tables(*_BY_NAME), strict=True))
        yield from selected_results(context, own, community_metadata(names, *written, frames))

    return detect_communities


def community_metadata(
    names: IndexNames,
    updated: StageResult,
    clustering: Reclustered,
    frames: Mapping[str, pl.DataFrame],
) -> Metadata:
    """Metadata of the communities' tables: how much the clustering moved and how good it is, sizes."""
    more: Metadata = {
        "communities": {
            "mean_size": frames["communities"]["size"].mean() or 0.0,
            "max_size": frames["communities"]["size"].max() or 0,
            "levels": frames["communities"]["level"].n_unique(),
            "entities_free_to_move": clustering.n_free,
            "modularity": clustering.modularity,
            "modularity_of_fresh_run": clustering.last_fresh.modularity,
            "clustered_from_scratch": int(clustering.fresh),
        },
    }
    return tables_metadata(names, updated.changes, updated.seconds, frames, more)


def write_community_reports(names: IndexNames) -> dg.AssetsDefinition:
    """The assets of reports and citations."""
    version = reports.CODE_VERSION

    @dg.multi_asset(
        name=names.name("write_community_reports"),
        can_subset=True,
        specs=[asset_spec(names, table, "communities", deps, version) for table, deps in _REPORT_TABLES.items()],
        required_resource_keys=needs(names, MODELS),
    )
    @masked
    def write_community_reports(
        context: dg.AssetExecutionContext, config: ReportOptions
    ) -> Iterator[dg.MaterializeResult]:
        """A report on each community, and what it cites."""
        own, run = begin_step(names, context).with_run_options(None), context.run
        models = own.models(run_id=run.run_id, cache_not_before=cache_not_before(context.instance, run, config))
        written = reports.update_reports(own, models, run.run_id, config.rerun != "NOTHING")
        yield from selected_results(context, own, report_metadata(names, *written))

    return write_community_reports


def report_metadata(names: IndexNames, updated: StageResult, n_kept: int, n_unresolved: int) -> Metadata:
    """Metadata of the reports and their citations."""
    written, citations = updated.frames["community_reports"], updated.frames["citations"]
    ranked = written.select("community", "level", "title", "rank", "size").sort("rank", descending=True)
    more: Metadata = {
        "community_reports": {
            "reports_written": updated.changes["community_reports"].rows - n_kept,
            "reports_kept": n_kept,
            **usage_metadata(usage_sums(updated.usage)),
        },
        "citations": {"unresolved": n_unresolved},
    }
    previews = {"community_reports": ranked, "citations": citations}
    return tables_metadata(names, updated.changes, updated.seconds, previews, more)
