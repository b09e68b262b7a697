"""Communities of the graph, and their reports."""

from graphrag_assets.defs.options import CommunityOptions, ReportOptions
from graphrag_assets.defs.reporting import Metadata, tables_metadata, usage_metadata
from graphrag_assets.defs.stages import Stage, Step
from graphrag_assets.indexing import communities, reports
from graphrag_assets.indexing.stage import usage_sums


def detect_communities(step: Step) -> Metadata:
    """Communities of the graph as it is now, with their members and their history; how good the clustering is."""
    own = step.options.apply_to(step.index, None)
    updated, clustering = communities.update_communities(own, step.run_id, step.options.from_scratch)
    (found,) = own.working.read_tables("communities")
    more = {
        "mean_size": found["size"].mean() or 0.0,
        "max_size": found["size"].max() or 0,
        "levels": found["level"].n_unique(),
        "entities_free_to_move": clustering.n_free,
        "modularity": clustering.modularity,
        "modularity_of_fresh_run": clustering.last_fresh.modularity,
        "clustered_from_scratch": int(clustering.fresh),
    }
    previews = {"communities": found}
    return tables_metadata(step.names, updated.changes, updated.seconds, previews, {"communities": more})


def write_community_reports(step: Step) -> Metadata:
    """A report on each community, and what it cites."""
    own = step.index.with_run_options(None)
    models = step.models(own)
    updated, n_kept, n_unresolved = reports.update_reports(own, models, step.run_id, step.options.rerun != "NOTHING")
    written = updated.frames["community_reports"].select("community", "level", "title", "rank", "size")
    more = {
        "reports_written": updated.changes["community_reports"].rows - n_kept,
        "reports_kept": n_kept,
        "citations": updated.changes["citations"].rows,
        "unresolved_citations": n_unresolved,
        **usage_metadata(usage_sums(updated.usage)),
    }
    previews = {"community_reports": written.sort("rank", descending=True)}
    return tables_metadata(step.names, updated.changes, updated.seconds, previews, {"community_reports": more})


DETECT_COMMUNITIES = Stage(
    "detect_communities",
    "communities",
    {"communities": ("entities", "relationships")},
    communities.CODE_VERSION,
    detect_communities,
    CommunityOptions,
)
WRITE_COMMUNITY_REPORTS = Stage(
    "write_community_reports",
    "communities",
    {"community_reports": ("communities", "entities", "relationships", "covariates")},
    reports.CODE_VERSION,
    write_community_reports,
    ReportOptions,
)
