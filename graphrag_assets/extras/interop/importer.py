"""Imports an index of GraphRAG 3 as a batch of this one, without a model call.

One transaction writes its facts as those of any batch, and its communities and reports as if the last run had left
them. The next run finds them, places what GraphRAG has left out, and keeps all reports.
"""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import DELETED
from graphrag_assets.assets.knowledge_graph import NUMBERED
from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.facts import Facts, facts_of
from graphrag_assets.extras.interop.reports import Numbers, report_rows
from graphrag_assets.extras.interop.source import Counts, Tables, fitting, read_source
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.loading import INDEX_ERRORS
from graphrag_assets.store import schema
from graphrag_assets.store.batches import write_batch
from graphrag_assets.store.connections import ArrowStream, execute_with
from graphrag_assets.store.index_database import IndexDatabase, assign_numbers

PREFIX = "imported-"
_NO_ERRORS = pl.DataFrame(schema=INDEX_ERRORS)


class Imported(NamedTuple):
    """The batch; its rows by table, in the source and taken over; rows that were changed or left out, by reason."""

    batch: str
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    repaired: Counts


def import_index(index: Index, path: Path, name: str | None = None) -> Imported:
    """Import the index at `path` as a batch; the next run merges and publishes it.

    Args:
        index: the index to import into.
        path: the output folder of GraphRAG 3.
        name: of the batch; default: `imported-` and the name of the folder.

    Raises:
        InputError: `path` cannot be read, or the name is taken.
    """
    started, counts = time.monotonic(), Counter[tuple[str, str]]()
    batch = name or PREFIX + path.resolve().name
    tables = read_source(path)
    facts = facts_of(tables, batch, counts)
    if facts.frames["entity_mentions"].is_empty():
        raise InputError(f"None of the {tables['entities'].height} entities of {path} has a title and a text unit.")
    hashes = [frame.hash_rows().sum() for frame in (*facts.frames.values(), *tables.values())]
    run_id, origin, digest = str(uuid.uuid4()), str(path.resolve()), stable_id("import", *hashes)
    with index.working.writing("import", run_id):
        _check_name(index.working, batch)
        with index.working.transaction() as connection:
            seconds = time.monotonic() - started
            write_batch(connection, batch, facts.frames, _NO_ERRORS, digest, run_id, seconds, origin=origin)
            n_communities, n_reports = _write_structure(connection, run_id, tables, facts, counts)
    if "://" not in index.settings.input_folder:  # without an input folder the next run would refuse to begin
        Path(index.settings.input_folder).mkdir(parents=True, exist_ok=True)
    rows_out = facts.rows() | {"communities": n_communities, "community_reports": n_reports}
    return Imported(batch, {name: table.height for name, table in tables.items()}, rows_out, +counts)


def _check_name(working: IndexDatabase, batch: str) -> None:
    state = working.read("SELECT origin, n_documents FROM batch_state WHERE batch = $batch", {"batch": batch})
    if state.height and state.item(0, "n_documents"):
        origin = state.item(0, "origin")
        what = f"was imported from {origin}" if origin else "is a batch of the input folder"
        remedy = f"Remove it with `import --remove {batch}`, or give" if origin else "Give"
        raise InputError(f"{batch!r} {what}. {remedy} this one another name with --name.")


def _write_structure(
    connection: duckdb.DuckDBPyConnection, run_id: str, tables: Tables, facts: Facts, counts: Counts
) -> tuple[int, int]:
    """Write communities, their members and reports as the last run would have left them; return how many there are.

    Entities that are in a community stay there.
    """
    numbers = _assigned_numbers(connection, facts.references)
    members = _joined(_members(tables["communities"], facts.entity_ids, counts), facts.edges)
    placed = pl.DataFrame(connection.sql("SELECT DISTINCT entity_id AS id FROM community_members"))["id"]
    new = members.filter(~pl.col("entity_id").is_in(placed.implode()))
    # Communities are found again by these ids, also those of entities that are in others.
    communities = members.join(new, on="community", how="semi", maintain_order="left")
    communities = communities.group_by("community", "level", maintain_order=True).agg(entity_ids="entity_id")
    counts["communities", "without an entity that is in no community yet, left out"] += (
        tables["communities"].height - communities.height
    )
    # A community of an earlier import of this name may still be there.
    ids = [stable_id(run_id, "community", number) for number in communities["community"]]
    communities = communities.with_columns(pl.Series("id", ids, dtype=pl.String))
    references = communities.select(pl.lit("communities").alias("table_name"), "id", number="community")
    number_of = {number: here for (_, number), here in _assigned_numbers(connection, references).items()}
    communities = communities.with_columns(number=pl.col("community").replace_strict(number_of, return_dtype=pl.Int64))
    numbers |= {("community_reports", number): here for number, here in number_of.items()}
    reports = report_rows(tables["community_reports"], communities, numbers, counts)
    is_new = pl.all_horizontal(~pl.col("source_id", "target_id").is_in(placed.implode()))
    rows = {
        schema.CLUSTERED_EDGES: facts.edges.filter(is_new),
        schema.COMMUNITY_MEMBERS: new.with_columns(
            pl.col("community").replace_strict(number_of, return_dtype=pl.Int64)
        ),
        schema.COMMUNITIES: communities.select(
            "id", "level", "entity_ids", community="number", human_readable_id="number", parent=pl.lit(-1, pl.Int64)
        ),
        schema.COMMUNITY_REPORTS: reports,
    }
    for table, frame in rows.items():
        execute_with(connection, f"INSERT INTO {table.name} BY NAME FROM added", added=frame)
    return communities.height, reports.height


def _members(communities: pl.DataFrame, entity_ids: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """community, level, entity_id: each entity in one community at each level."""
    has_place = pl.col("level").is_not_null() & pl.col("community").is_not_null()
    is_first = pl.col("community").is_first_distinct()
    communities = fitting(communities, has_place & is_first, "communities", "without a number or level", counts)
    rows = communities.select("community", "level", id="entity_ids").explode("id", empty_as_null=False)
    members = rows.join(entity_ids, on="id", maintain_order="left").drop("id")
    members = members.unique(maintain_order=True)
    first = members.unique(["level", "entity_id"], keep="first", maintain_order=True)
    counts["communities", "memberships in a second community of a level, left out"] += members.height - first.height
    return first


def _joined(members: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """`members` with the related entities that are in no community: in those that they are related to most strongly.

    GraphRAG has clustered the ends of relationships that are no entities, and left them out. Clustering could place
    them too, but would move their neighbors, and a community that changes much loses its report.
    """
    ends = ("source_id", "target_id")
    both = pl.concat(edges.select("weight", entity_id=one, near=other) for one, other in (ends, ends[::-1]))
    while True:
        smallest = members.sort("level").unique("entity_id", keep="last").select("community", near="entity_id")
        ties = both.join(smallest, on="near").join(members, on="entity_id", how="anti")
        if ties.is_empty():
            return members
        strongest = (
            ties.group_by("entity_id", "community")
            .agg(pl.col("weight").sum(), pl.col("near").min())
            .sort(pl.col("weight").neg(), "community")
            .unique("entity_id", keep="first")
        )
        theirs = strongest.select("entity_id", "near").join(members.rename({"entity_id": "near"}), on="near")
        members = pl.concat([members, theirs.select(members.columns)])


def _assigned_numbers(connection: duckdb.DuckDBPyConnection, references: pl.DataFrame) -> Numbers:
    """Return the number here of each reference (table_name, number, id): the one it has there, unless another row has
    it.
    """
    contents = " UNION ALL ".join(
        f"SELECT '{table}' AS table_name, id, content FROM ({query})" for table, query in NUMBERED.items()
    )
    execute_with(
        connection,
        f"""
        INSERT INTO numbers BY NAME
        SELECT w.table_name, w.id, min(w.number) AS human_readable_id, any_value(c.content) AS content
        FROM wanted w LEFT JOIN ({contents}) c USING (table_name, id)
        WHERE NOT EXISTS (FROM numbers n WHERE n.table_name = w.table_name AND n.id = w.id)
        GROUP BY ALL
        HAVING NOT EXISTS (
            FROM numbers n WHERE n.table_name = w.table_name AND n.human_readable_id = min(w.number))
        """,
        wanted=references,
    )
    for (table,), rows in references.group_by("table_name", maintain_order=True):
        assign_numbers(connection, str(table), NUMBERED.get(str(table)) or rows.select("id", "number").unique("id"))
    connection.register("referenced", ArrowStream(references))
    query = "SELECT table_name, number, human_readable_id FROM referenced JOIN numbers USING (table_name, id)"
    pairs = connection.execute(query).fetchall()
    connection.unregister("referenced")
    return {(table, number): here for table, number, here in pairs}


def remove(index: Index, batch: str, documents: Sequence[str] = ()) -> list[str]:
    """Delete an imported batch, or the documents of it that have one of these titles, sources or ids.

    The next run removes what was derived from them from the graph, as with deleted files.

    Returns:
        the titles of the deleted documents.

    Raises:
        InputError: there is no such import, or no such document in it.
    """
    with index.working.writing("import --remove"):
        imported = dict(
            index.working.read("SELECT batch, origin FROM batch_state WHERE origin IS NOT NULL").iter_rows()
        )
        if batch not in imported:
            names_of_imports = ", ".join(sorted(imported)) or "nothing"
            raise InputError(f"There is no imported batch {batch!r}. Imported: {names_of_imports}.")
        query = "SELECT id, title, source FROM documents WHERE batch = $batch ORDER BY source, id"
        rows = index.working.read(query, {"batch": batch})
        names = pl.Series(documents or rows["id"])
        chosen = rows.filter(pl.any_horizontal(pl.all().is_in(names.implode())))
        if missing := set(names) - {*chosen["id"], *chosen["title"], *chosen["source"]}:
            raise InputError(
                f"{batch!r} has no document {min(missing)!r}. Give its title, source or id, as in `documents`."
            )
        with index.working.transaction() as connection:
            frames = {}
            for table in schema.BATCH_TABLES:
                column = "id" if table is schema.DOCUMENTS else "document_id"
                query = f"FROM {table.name} WHERE batch = $batch AND {column} NOT IN (SELECT unnest($ids::VARCHAR[]))"
                parameters = {"batch": batch, "ids": chosen["id"].to_list()}
                frames[table.name] = pl.DataFrame(connection.sql(query, params=parameters))
            is_left = frames["documents"].height > 0
            digest = stable_id("import", *frames["documents"]["id"]) if is_left else DELETED
            origin = imported[batch] if is_left else None
            write_batch(connection, batch, frames, _NO_ERRORS, digest, str(uuid.uuid4()), 0.0, origin=origin)
        return chosen["title"].to_list()
