"""The content of an index, to be compared with that of a fresh index of the same documents."""

import os
import shutil
import tempfile
from pathlib import Path

import duckdb
import igraph
import polars as pl
import pytest

from graphrag_assets import testing
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.reports import stale_reports
from graphrag_assets.assets.scan import scan
from graphrag_assets.pipeline.community_reports import references_in
from graphrag_assets.store.index_database import IndexDatabase
from graphrag_assets.store.index_files import STABLE_NAME, publication_file
from graphrag_assets.store.publication_writer import publish
from graphrag_assets.store.schema import PUBLISHED, Table, identifier
from graphrag_assets.text.words import sentences
from tests.model_index import SAMPLE_INPUT
from tests.search_tables import COUNTED_TEXTS

# Content of the tables without numbers, times and run ids.
FACTS = {
    "documents": "* EXCLUDE (creation_date)",
    "text_units": "*",
    "entity_mentions": "*",
    "relationship_mentions": "*",
    "covariates": "*",
    "entity_aliases": "*",
    "entities": "* EXCLUDE (human_readable_id)",
    "relationships": "* EXCLUDE (human_readable_id)",
    "entity_candidates": "*",
    "index_errors": "* EXCLUDE (first_seen)",
}
EMBEDDED = "SELECT kind, id, fingerprint FROM embeddings WHERE kind <> 'community_report' ORDER BY ALL"


def sentences_of_the_sample() -> list[str]:
    text = " ".join(path.read_text() for path in sorted((SAMPLE_INPUT / "2-cable-of-1857-58").iterdir()))
    return [" ".join(text[s.start : s.end].split()) for s in sentences(text) if 60 < s.end - s.start < 200]


SENTENCES = sentences_of_the_sample()


def index_at(root: Path, patch: pytest.MonkeyPatch) -> Index:
    patch.setenv("GRAPHRAG_DATA", str(root))
    return Index(root / "index" / "working.duckdb")


def no_settings(patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        patch.delenv(name)


def index_all(index: Index, only: list[str] | None = None) -> None:
    """Index everything that changed and publish, without Dagster."""
    found = scan(index)
    for batch in only or [*found.changed, *found.deleted]:
        index_batch(index, batch, index.models(batch), "test")
    refresh(index)


def refresh(index: Index) -> None:
    """The stages after those of the batches."""
    testing.refresh(index, "test")


def assert_reports(index: Index) -> None:
    """No report is out of date, and citations are resolved as those of all reports together."""
    assert stale_reports(index, index.models()).is_empty()
    stored = index.working.read("FROM community_reports ORDER BY ALL")
    numbers = index.working.read(" UNION ALL ".join(_NUMBERED))
    assert index.working.read("FROM citations ORDER BY ALL").equals(
        resolved(references_in(stored), numbers).sort(pl.all())
    )


def resolved(references: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """The rows of citations of `references_in` reports, where `numbers` are those of all rows that can be cited."""
    known = numbers.select("table_name", pl.col("human_readable_id").cast(pl.Int64), cited_id="id")
    found = references.join(known, on=["table_name", "human_readable_id"], how="left")
    found = found.with_columns(cited_id=pl.when("is_marked").then(None).otherwise("cited_id")).drop("is_marked")
    return found.unique(["report_id", "table_name", "human_readable_id"]).sort(
        "report_id", "table_name", "human_readable_id"
    )


_NUMBERED = [
    *(
        f"SELECT '{name}' AS table_name, id, human_readable_id FROM {name}"
        for name in ("entities", "relationships", "community_reports")
    ),
    *(
        f"SELECT '{name}', t.id, n.human_readable_id FROM {name} t JOIN numbers n ON n.table_name = '{name}' AND n.id = t.id"
        for name in ("covariates", "text_units")
    ),
]


def facts(index: Index) -> dict[str, list[dict]]:
    """What depends on the present documents alone."""
    tables = {name: f"SELECT {columns} FROM {name} ORDER BY ALL" for name, columns in FACTS.items()}
    return {name: index.working.read(query).to_dicts() for name, query in tables.items()} | {
        "embeddings": index.working.read(EMBEDDED).to_dicts()
    }


def modularity(index: Index) -> float:
    """Modularity of the top level, computed by igraph."""
    entities, edges = index.working.read_all("FROM entities ORDER BY ALL", "FROM relationships ORDER BY ALL")
    members = index.working.read("SELECT entity_id, community FROM community_members WHERE level = 0")
    community = dict(members.iter_rows())
    place = {entity: number for number, entity in enumerate(entities["id"])}
    graph = igraph.Graph(
        n=entities.height, edges=[(place[s], place[t]) for s, t in edges.select("source_id", "target_id").iter_rows()]
    )
    numbers = {name: number for number, name in enumerate(sorted(set(community.values())))}
    labels = [numbers[community[entity]] for entity in entities["id"]]
    return graph.modularity(labels, weights=edges["weight"].to_list()) if edges.height else 0.0


def assert_equal(made: Index, fresh: Index) -> None:
    """`made` has the facts of `fresh`, communities as good, and a publication that agrees with its tables.

    Communities depend on the history of an index: their structure is verified by the blocking checks.
    """
    failed = [check.name for check in failed_blocking_checks(made)]
    assert not failed, f"failed checks: {failed}"
    assert_reports(made)
    ours = facts(made)
    for name, rows in facts(fresh).items():
        assert ours[name] == rows, f"{name}: {_first_difference(ours[name], rows)}"
    if not scan(made).imported:  # imported communities stay, however good they are
        reached, best = modularity(made), modularity(fresh)
        assert reached >= best - 0.01 * abs(best) - 1e-9, f"modularity {reached}, fresh {best}"
    assert_published(made)


def _first_difference(ours: list[dict], theirs: list[dict]) -> str:
    """The first row of each side that the other lacks."""
    lacking = [next((row for row in one if row not in two), None) for one, two in ((ours, theirs), (theirs, ours))]
    return f"{len(ours)} rows, such as {lacking[0]}; {len(theirs)} fresh ones, such as {lacking[1]}"


def assert_published(index: Index) -> None:
    """The current publication has the rows of one for which all texts are counted."""
    folder = index.database.parent
    with tempfile.TemporaryDirectory() as scratch:
        copy = IndexDatabase(Path(scratch) / "working.duckdb")
        with index.working.lock():
            shutil.copyfile(index.database, copy.path)
        with copy.transaction() as connection:
            for table in COUNTED_TEXTS:
                connection.execute(f"DELETE FROM {table.sql_name}")
        last = publication_file(Path(scratch), 1_000_000)  # so that events keep their publications
        last.parent.mkdir()
        last.touch()
        expected = publish(copy, Path(scratch)).path
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{folder / STABLE_NAME}' AS made (READ_ONLY)")
            connection.execute(f"ATTACH '{expected}' AS expected (READ_ONLY)")
            for table in PUBLISHED:
                if table.name not in NOT_COMPARED:
                    assert_same_rows(connection, table)


NOT_COMPARED = {"publication", "index_runs", "batch_state", "index_settings", "index_errors", "llm_calls"}
"""What was recorded after the publication, or is not part of the working database."""


def assert_same_rows(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """The table of the attached databases `made` and `expected` has the same rows, in any order."""
    name = f"{table.schema}.{identifier(table.name)}"
    for one, other in (("made", "expected"), ("expected", "made")):
        rows = connection.execute(f"FROM (FROM {one}.{name} EXCEPT ALL FROM {other}.{name}) LIMIT 3").fetchall()
        assert not rows, f"{table.name}: only in {one}: {rows}"
