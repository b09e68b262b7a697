"""The steps over the whole graph as stages: what each reads, makes and reports."""

from graphrag_assets.assets import candidates, communities, embeddings, reports
from graphrag_assets.assets import knowledge_graph as graph
from graphrag_assets.assets.index_names import BATCH_STATE
from graphrag_assets.assets.options import CommunityOptions, GraphOptions, ReportOptions
from graphrag_assets.assets.reporting import Metadata, table_metadata, tables_metadata, usage_metadata
from graphrag_assets.assets.stage import usage_sums
from graphrag_assets.assets.stages import Stage, Step
from graphrag_assets.assets.up_to_date import record_inputs_of_run

_DEGREES = "SELECT coalesce(avg(degree), 0) AS mean_degree, coalesce(max(degree), 0) AS max_degree FROM entities"


def knowledge_graph(step: Step) -> Metadata:
    """Entities and relationships, merged from the mentions of all batches."""
    index = step.index
    record_inputs_of_run(index, step.run_id)
    from_scratch = step.options.rerun != "NOTHING"
    updated = graph.knowledge_graph(index, step.models(index), step.run_id, from_scratch=from_scratch)
    degrees = index.working.read(_DEGREES).row(0, named=True)
    more = {"entities": {**degrees, **usage_metadata(usage_sums(updated.usage))}}
    previews = updated.frames | {"entities": updated.frames["entities"].sort("degree", descending=True)}
    return tables_metadata(step.names, updated.changes, updated.seconds, previews, more)


KNOWLEDGE_GRAPH = Stage(
    "knowledge_graph",
    "graph",
    {
        "entities": (BATCH_STATE, "entity_mentions", "relationship_mentions"),
        "relationships": (BATCH_STATE, "entity_mentions", "relationship_mentions"),
    },
    graph.CODE_VERSION,
    knowledge_graph,
    GraphOptions,
)


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


def embed_texts(step: Step) -> Metadata:
    """A vector of each text unit, entity and report; no rows without an embedding model."""
    models = step.models(step.index)
    updated, n_embedded = embeddings.update_embeddings(step.index, models, step.run_id)
    more = {"embedded": n_embedded, **usage_metadata(usage_sums(updated.usage))}
    more |= {} if models.embedding_model else {"note": embeddings.NO_MODEL}
    vectors, changes = updated.frames["embeddings"], updated.changes["embeddings"]
    return {"embeddings": table_metadata(step.names, "embeddings", changes, updated.seconds, vectors, **more)}


EMBED_TEXTS = Stage(
    "embed_texts",
    "retrieval",
    {"embeddings": ("text_units", "entities", "community_reports")},
    embeddings.CODE_VERSION,
    embed_texts,
)


def find_candidates(step: Step) -> Metadata:
    """Pairs of entities that may be one thing, scored, with the decisions on them."""
    updated = candidates.update_candidates(step.index, step.run_id)
    return tables_metadata(step.names, updated.changes, updated.seconds, updated.frames, {})


FIND_CANDIDATES = Stage(
    "find_candidates",
    "retrieval",
    {"entity_candidates": ("entities", "relationships", "embeddings")},
    candidates.CODE_VERSION,
    find_candidates,
)
