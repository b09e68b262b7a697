"""An index that others made becomes a batch of this one, without a model call.

Its facts are committed as those of any batch. Its communities and reports are then written as what the last run had
left, and the ordinary stages do the rest: they find nothing that has changed, keep communities and reports, and
write only what the index lacked.
"""

import math
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.defs.communities import update_communities, update_reports
from graphrag_assets.defs.graph import NUMBERED, update_graph
from graphrag_assets.defs.publication import update_publication
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.defs.retrieval import update_embeddings
from graphrag_assets.errors import InputError
from graphrag_assets.ids import stable_id
from graphrag_assets.interop.facts import Facts, entity_ids, facts_of
from graphrag_assets.interop.hierarchy import Hierarchy, hierarchy_of
from graphrag_assets.interop.repair_texts import Counts
from graphrag_assets.interop.reports import renumbered, repair_reports
from graphrag_assets.interop.source import Source, read_source
from graphrag_assets.models.backend import Backend, offline_backend
from graphrag_assets.models.offline import REPORTER
from graphrag_assets.models.offline.reports import write_reports
from graphrag_assets.models.records import ReportMaterial, ReportRecord
from graphrag_assets.pipeline.clustering import ClusterOptions
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.pipeline.frontier import recluster
from graphrag_assets.pipeline.resolution import apply_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.imports import (
    ImportedBatch,
    add_original_ids,
    add_rows,
    ids_of_others,
    number_communities,
    record_counts,
    rows_written,
    write_facts,
)
from graphrag_assets.store.publishing import Publication

PREFIX = "imported-"


class Imported(NamedTuple):
    """The batch that an index became, what it was, the publication, and `counts`: step (read, written, repaired),
    table_name, what, n."""

    batch: str
    generation: str
    counts: pl.DataFrame
    publication: Publication


def import_index(index: GraphIndex, path: Path, name: str | None = None, vectors_of: str = "") -> Imported:
    """Import the index or graph at `path` as a batch and publish.

    Args:
        index: the index it becomes part of.
        path: a folder of GraphRAG's output, a folder with entities and relationships, or a GraphML file.
        name: of the batch; default: `imported-` and the name of the folder.
        vectors_of: the embedding model that the vectors of the imported index are of. They are used if it is that of
            the settings.

    Raises:
        InputError: `path` cannot be read, or the name is taken.
    """
    started = time.monotonic()
    batch = name or PREFIX + path.resolve().stem
    with index.working.alone("refresh"):
        _check_name(index, batch)
        source, counts, run_id = read_source(path), Counter[tuple[str, str]](), str(uuid.uuid4())
        facts = facts_of(source, batch, ids_of_others(index.working, batch), counts)
        digest = stable_id("import", *(frame.hash_rows().sum() for frame in facts.frames.values()))
        imported = ImportedBatch(batch, str(path.resolve()), source.generation, digest)
        numbers, ids = facts.kept_numbers, facts.original_ids
        seconds = time.monotonic() - started
        write_facts(index.working, imported, facts.frames, numbers, ids, NUMBERED, run_id, seconds)
        backend = without_calls(index.backend())
        update_graph(index, backend, run_id)
        n_kept = _write_structure(index, batch, source, facts, counts)
        update_communities(index, run_id)
        update_reports(index, backend, run_id)
        _write_vectors(index, source, backend.embedding_model, vectors_of, counts)
        update_embeddings(index, backend, run_id)
        table = _all_counts(index, batch, source, n_kept, counts)
        record_counts(index.working, batch, table)
        return Imported(batch, source.generation, table, update_publication(index, run_id))


def _check_name(index: GraphIndex, batch: str) -> None:
    state = index.working.read(
        "SELECT origin, n_documents FROM batch_state WHERE batch = $batch AND n_documents > 0", {"batch": batch}
    )
    if state.height:
        origin = state.item(0, "origin")
        what = f"was imported from {origin}" if origin else "is a batch of the input folder"
        cure = f"Remove it with `import --remove {batch}` and run `index` first, or give" if origin else "Give"
        raise InputError(f"{batch!r} {what}. {cure} this one another name with --name.")


def without_calls(backend: Backend) -> Backend:
    """`backend` with the embedded default where something has to be written: an import calls no language model.

    What the embedded default had to write is marked as written by a stand-in, so a language model writes it anew in
    the next run.
    """
    offline = offline_backend()

    def stand_in(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        return [replace(record, writer=REPORTER) for record in write_reports(materials)]

    return replace(backend, summarise=offline.summarise, write_reports=stand_in)


def _write_structure(index: GraphIndex, batch: str, source: Source, facts: Facts, counts: Counts) -> int:
    """Communities, members and reports of the source as the last run would have left them.

    Returns:
        how many communities came with the source.
    """
    if source.members.is_empty():
        return 0
    entities, relationships, members, edges, aliases, present = index.working.read_tables(
        "entities", "relationships", "community_members", "clustered_edges", "entity_aliases", "communities"
    )
    # What is in a community already stays there.
    new = entities.join(members, left_on="id", right_on="entity_id", how="anti")
    inside = relationships.join(new, left_on="source_id", right_on="id", how="semi").join(
        new, left_on="target_id", right_on="id", how="semi"
    )
    canonical = apply_aliases(facts.keys.with_columns(document_id=pl.lit(None, pl.String)), aliases, ["key"])
    keys = canonical.select("id", entity_id=entity_ids(canonical["key"])).join(
        new.select(entity_id="id"), on="entity_id", how="semi", maintain_order="left"
    )
    hierarchy = hierarchy_of(source.communities, source.members, keys, new, inside, counts)
    kept = hierarchy.communities
    taken = kept["id"].is_in(present["id"].implode())
    hashed = pl.Series([stable_id(batch, "community", given) for given in kept["id"]], dtype=pl.String)
    renamed = kept.with_columns(original_id="id", id=pl.when(taken).then(hashed).otherwise("id"))
    complete = _padded(members.select("level", "community", "entity_id"), hierarchy.members)
    seen = pl.concat([edges, _edges(inside)])
    loss = _modularity_loss(index, entities, relationships, complete, seen)
    reports = repair_reports(source.reports, kept["community"], counts)
    with index.working.transaction() as connection:
        numbered = number_communities(connection, renamed, batch)
        number_of = numbered.select("community", "id", number=pl.col("human_readable_id").cast(pl.Int64))
        named = _new_numbers(complete, members.height, number_of)
        connection.execute("DELETE FROM community_members; DELETE FROM clustered_edges")
        add_rows(connection, schema.COMMUNITY_MEMBERS, named)
        add_rows(connection, schema.CLUSTERED_EDGES, seen)
        add_rows(connection, schema.COMMUNITIES, _community_rows(numbered))
        written = reports.join(number_of.rename({"id": "community_id"}), on="community", maintain_order="left")
        numbers = connection.sql("SELECT table_name, id, human_readable_id FROM numbers").pl()
        cited = renumbered(written, _references(facts.references, numbers, number_of), counts)
        add_rows(connection, schema.COMMUNITY_REPORTS, _report_rows(cited))
        report_ids = _report_rows(cited).select("id", original_id=written["id"])
        original = pl.concat(
            [
                frame.select(pl.lit(table).alias("table_name"), "id", "original_id")
                for table, frame in (("communities", renamed.filter(taken)), ("community_reports", report_ids))
            ]
        )
        add_original_ids(connection, batch, original)
        connection.execute("UPDATE imports SET modularity_loss = $loss WHERE batch = $batch", {"loss": loss, "batch": batch})
    return kept.height


def _padded(present: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """Both memberships, level-complete over the levels of either; the first `present.height` levels … come first."""
    frames = [frame.select("level", pl.col("community").cast(pl.Int64), "entity_id") for frame in (present, added)]
    deepest = max((frame["level"].max() for frame in frames if frame.height), default=0)
    padded = []
    for place, frame in enumerate(frames):
        if frame.is_empty():
            continue
        last = frame.filter(pl.col("level") == frame["level"].max())
        more = [last.with_columns(level=pl.lit(level, pl.Int64)) for level in range(last["level"][0] + 1, deepest + 1)]  # type: ignore[operator]
        padded.append(pl.concat([frame, *more]).with_columns(added=pl.lit(place == 1)))
    return pl.concat(padded)


def _new_numbers(complete: pl.DataFrame, n_present: int, number_of: pl.DataFrame) -> pl.DataFrame:
    """The members with the numbers that imported communities have here; pieces keep numbers below 0 for the moment."""
    renamed = complete.join(number_of.select("community", "number"), on="community", how="left", maintain_order="left")
    number = pl.when("added").then(pl.coalesce("number", "community")).otherwise("community")
    return renamed.select("level", "entity_id", community=number)


def _edges(relationships: pl.DataFrame) -> pl.DataFrame:
    return relationships.select(
        source_id=pl.min_horizontal("source_id", "target_id"),
        target_id=pl.max_horizontal("source_id", "target_id"),
        weight="weight",
    )


def _modularity_loss(
    index: GraphIndex, entities: pl.DataFrame, relationships: pl.DataFrame, members: pl.DataFrame, edges: pl.DataFrame
) -> float:
    """How far the modularity of these communities is below that of a fresh run, as a share of it."""
    settings = index.settings
    name = pl.concat_str("added", pl.lit(":"), "community")
    found = recluster(
        entities["id"],
        relationships,
        members.select("level", "entity_id", cluster=name),
        edges,
        ClusterOptions(max_cluster_size=settings.max_cluster_size, seed=settings.seed),
        tolerated_loss=math.inf,
        keep_divisions=True,
    )
    return max((found.fresh_modularity - found.modularity) / max(abs(found.fresh_modularity), 1e-9), 0.0)


def _community_rows(communities: pl.DataFrame) -> pl.DataFrame:
    """Rows of the table communities that the clustering can compare its own with; it writes them whole."""
    number = pl.col("human_readable_id").cast(pl.Int64)
    return communities.select(
        "id", "level", "entity_ids", human_readable_id=number, community=number, parent=pl.lit(-1, pl.Int64)
    )


def _references(references: pl.DataFrame, numbers: pl.DataFrame, communities: pl.DataFrame) -> dict[tuple[str, int], int]:
    rows = references.join(numbers, on=["table_name", "id"]).select("table_name", "number", "human_readable_id")
    found = {(table, old): int(new) for table, old, new in rows.iter_rows()}
    return found | {("community_reports", old): new for old, new in communities.select("community", "number").iter_rows()}


def _report_rows(reports: pl.DataFrame) -> pl.DataFrame:
    """Rows of community_reports without a fingerprint: the next run finds the inputs they stand for."""
    ids = [stable_id("community_report", community) for community in reports["community_id"]]
    return reports.select(
        pl.Series("id", ids, dtype=pl.String),
        pl.col("number").alias("community"),
        pl.col("number").alias("human_readable_id"),
        "title",
        "summary",
        "full_content",
        "rank",
        "rating_explanation",
        "findings",
        "full_content_json",
        pl.lit(schema.IMPORTED).alias("model"),
    )


def _write_vectors(index: GraphIndex, source: Source, model: str, vectors_of: str, counts: Counts) -> None:
    """The vectors of the source for the texts that are as they were, if they are of the model that is set."""
    if source.vectors.is_empty():
        return
    if vectors_of != model:
        counts["embeddings", "of another model than the index's, or of an unknown one, left out"] += source.vectors.height
        return
    texts = embedding_texts(*_embedded(index), model)
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
    counts["embeddings", "of texts that are not as they were, left out"] += source.vectors.height - rows.height
    with index.working.transaction() as connection:
        known = connection.sql("SELECT kind, id FROM embeddings").pl()
        add_rows(connection, schema.EMBEDDINGS, rows.join(known, on=["kind", "id"], how="anti"))


def _embedded(index: GraphIndex) -> list[pl.DataFrame]:
    return index.working.read_all(
        "SELECT id, text FROM text_units",
        "SELECT id, title, description FROM entities",
        "SELECT id, full_content FROM community_reports",
    )


def _all_counts(index: GraphIndex, batch: str, source: Source, n_kept: int, repaired: Counts) -> pl.DataFrame:
    """step, table_name, what, n: rows read, rows written, and every repair that was made at least once."""
    written = rows_written(index.working, batch)
    if source.members.height:
        repaired["communities", "added for entities that were in none"] += written["communities"] - n_kept
    own = index.working.read("SELECT count(*) FROM community_reports WHERE model = $own", {"own": REPORTER}).item()
    if source.reports.height:
        repaired["community_reports", "written by the embedded default, where there was none"] += own
    rows = [("read", table, "rows", n) for table, n in source.rows().items()]
    rows += [("written", table, "rows", n) for table, n in written.items()]
    rows += [("repaired", table, what, n) for (table, what), n in repaired.items() if n > 0]
    return pl.DataFrame(rows, schema=["step", "table_name", "what", "n"], orient="row")


__all__ = ["Hierarchy", "Imported", "import_index", "without_calls"]
