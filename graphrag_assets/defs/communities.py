"""Communities of the graph, their members and history, the map's layout, and their reports."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import dagster as dg
import polars as pl

from graphrag_assets.defs.options import CommunityOptions, Redo, ReportOptions, asked_since
from graphrag_assets.defs.reporting import (
    Metadata,
    Updated,
    asset_spec,
    picture,
    selected_results,
    table_metadata,
    usage_metadata,
    usage_sums,
)
from graphrag_assets.defs.resources import GraphIndex, alone
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pictures.graph_map import graph_map
from graphrag_assets.pipeline.citations import report_citations
from graphrag_assets.pipeline.clustering import ClusterOptions, community_table
from graphrag_assets.pipeline.communities import finish_communities, finish_members, periods
from graphrag_assets.pipeline.community_identity import match_communities
from graphrag_assets.pipeline.frontier import MODULARITY_LOSS, Reclustered, recluster
from graphrag_assets.pipeline.layout import layout
from graphrag_assets.pipeline.reports import ReportInputs, community_reports, compare_written
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_options, record_stage
from graphrag_assets.store.working import assign_numbers, numbered, replace_tables

REPORT_INPUTS = ("communities", "community_members", "entities", "relationships", "entity_claims")
_DATED_UNITS = "SELECT t.id, d.creation_date FROM text_units t JOIN documents d ON d.id = t.document_id ORDER BY t.id"
# Imported communities were good enough for their index: what they lack does not count against later ones.
_IMPORTED = "SELECT count(*) AS n, coalesce(max(modularity_loss), 0)::DOUBLE AS loss FROM imports"


class UpdatedCommunities(NamedTuple):
    """What was written, how the clustering went, and the graph it is a clustering of."""

    updated: Updated
    clustering: Reclustered
    entities: pl.DataFrame
    relationships: pl.DataFrame


@alone("detect_communities")
def update_communities(index: GraphIndex, run_id: str, fresh: bool = False) -> UpdatedCommunities:
    """Cluster, from the previous communities unless `fresh`; match with them so that ids stay; lay out the map.

    The options of `index` stay: see `GraphIndex.of`.
    """
    started = time.monotonic()
    settings = index.settings
    entities, relationships, previous, history, previous_members, clustered_edges = index.working.read_tables(
        "entities", "relationships", "communities", "community_history", "community_members", "clustered_edges"
    )
    dated_units = index.working.read(_DATED_UNITS)
    imported = index.working.read(_IMPORTED)
    options = ClusterOptions(max_cluster_size=settings.max_cluster_size, seed=settings.seed)
    previous_members = previous_members.rename({"community": "cluster"})
    clustering = recluster(
        entities["id"],
        relationships,
        previous_members,
        clustered_edges,
        options,
        fresh,
        MODULARITY_LOSS + imported.item(0, "loss"),
        keep_divisions=imported.item(0, "n") > 0,
    )
    members = clustering.members
    table = community_table(members, entities, relationships)
    matched = match_communities(previous.select("id", "level", "entity_ids"), table)
    last_revision = history.select(pl.col("revision").max().fill_null(0)).item()
    events = matched.history.with_columns(revision=pl.lit(1 + last_revision))
    positions = layout(entities, members, relationships, settings.seed)
    with index.working.transaction() as connection:
        order = table.join(matched.ids, on="key").select("id", "level", -pl.col("size").cast(pl.Int64))
        assign_numbers(connection, "communities", order)
        numbers = numbered(connection, "communities", matched.ids.select("id"))
        frames = {
            schema.COMMUNITIES: finish_communities(table, matched.ids, numbers, periods(dated_units, table)),
            schema.COMMUNITY_MEMBERS: finish_members(members, matched.ids, numbers),
            schema.COMMUNITY_HISTORY: pl.concat([history, events], how="diagonal_relaxed"),
            schema.ENTITY_POSITIONS: positions,
            schema.CLUSTERED_EDGES: clustering.edges,
        }
        changes = replace_tables(connection, frames)
        seconds = time.monotonic() - started
        record_options(connection, None, index.options)
        record_stage(connection, run_id, "detect_communities", None, seconds, changes, "communities")
    by_name = {written.name: frame for written, frame in frames.items()}
    updated = Updated(by_name, changes, {}, time.monotonic() - started)
    return UpdatedCommunities(updated, clustering, entities, relationships)


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
    written = update_communities(index.of(None, config), context.run.run_id, config.afresh)
    yield from selected_results(context, community_metadata(*written))


def community_metadata(
    updated: Updated, clustering: Reclustered, entities: pl.DataFrame, relationships: pl.DataFrame
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
            "clustered_afresh": int(clustering.fresh),
        },
        "entity_positions": {"map": picture("The map of the graph", drawn)},
    }
    return {
        name: table_metadata(name, updated.changes[name], updated.seconds, frame, **more.get(name, {}))
        for name, frame in frames.items()
        if name != schema.CLUSTERED_EDGES.name  # which is no asset
    }


class UpdatedReports(NamedTuple):
    """What was written, and how many reports could be kept as they were."""

    updated: Updated
    n_kept: int


@alone("write_community_reports")
def update_reports(index: GraphIndex, backend: IndexingModels, run_id: str, redo: bool = False) -> UpdatedReports:
    """Write the reports whose inputs changed, or with `redo` all; keep the others; resolve their citations.

    The options of `index` stay: see `GraphIndex.of`.
    """
    started = time.monotonic()
    settings = index.settings
    *tables, previous, numbers = index.working.read_tables(*REPORT_INPUTS, "community_reports", "numbers")
    inputs = ReportInputs(*tables)
    previous = previous.clear() if redo else previous
    written_by = (backend.reporter, settings.report_input_tokens, settings.encoding)
    reports = community_reports(inputs, previous, backend.write_reports, *written_by)
    report_numbers = reports.select(pl.lit("community_reports").alias("table_name"), "id", "human_readable_id")
    live = _live_numbers(numbers, inputs.entities, inputs.relationships, inputs.claims)
    citations = report_citations(reports, pl.concat([live, report_numbers], how="vertical_relaxed"))
    frames = {schema.COMMUNITY_REPORTS: reports, schema.CITATIONS: citations}
    with index.working.transaction() as connection:
        changes = replace_tables(connection, frames)
        seconds, used = time.monotonic() - started, usage_sums(backend.usage)
        record_options(connection, None, index.options)
        record_stage(connection, run_id, "write_community_reports", None, seconds, changes, "community_reports", used)
    (stored,) = index.working.read_tables("community_reports")
    compare_written(inputs, reports, stored, *written_by)
    by_name = {written.name: frame for written, frame in frames.items()}
    updated = Updated(by_name, changes, backend.usage, time.monotonic() - started)
    return UpdatedReports(updated, reports.join(previous, on="fingerprint", how="semi").height)


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
    own, run = index.of(None, config), context.run
    backend = own.backend(run_id=run.run_id, cache_not_before=asked_since(context.instance, run, config))
    written = update_reports(own, backend, run.run_id, config.redo is not Redo.NOTHING)
    yield from selected_results(context, report_metadata(*written))


def report_metadata(updated: Updated, n_kept: int) -> Metadata:
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


def _live_numbers(numbers: pl.DataFrame, *tables: pl.DataFrame) -> pl.DataFrame:
    """The numbers of rows that exist now; the register also remembers those that are gone."""
    ids = pl.concat([table.select("id") for table in tables])
    return numbers.join(ids, on="id", how="semi").select("table_name", "id", "human_readable_id")


@dg.definitions
def communities() -> dg.Definitions:
    return dg.Definitions(assets=[detect_communities, write_community_reports])
