"""Checks of the working database: the invariants of the index. Failed blocking checks stop publication."""

from collections.abc import Sequence

import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.reports import stale_reports
from graphrag_assets.assets.scan import Scan, present_inputs, scan
from graphrag_assets.contracts.records import OF_READ_TEXT
from graphrag_assets.errors import InputError
from graphrag_assets.pipeline.clustering import disconnected_communities
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.index_files import current_number
from graphrag_assets.store.invariants import INVARIANTS, Check

MAX_FAILED_SHARE = 0.05
"""Failed text units above this share block publication: a few are bad text, more mean a bad model or connection."""


def offending_rows(checks: Sequence[Check], index: Index) -> list[pl.DataFrame]:
    """Return the offending rows of each check, in order."""
    queries = {check.name: check.find for check in checks if isinstance(check.find, str)}
    with index.working.connect() as connection:
        rows = {
            name: pl.DataFrame(connection.sql(f"SELECT * FROM ({query}) ORDER BY ALL"))
            for name, query in queries.items()
        }
    return [rows[check.name] if isinstance(check.find, str) else check.find(index) for check in checks]


def failed_blocking_checks(index: Index) -> list[Check]:
    """Return the blocking checks that the working database fails."""
    blocking = [check for check in CHECKS if check.blocking]
    return [c for c, rows in zip(blocking, offending_rows(blocking, index), strict=True) if rows.height]


# A community is looked at where it first appears: an entity is in one community of a level, so that memory does not
# grow with the number of levels.
_MEMBERS = """
CREATE OR REPLACE TEMP TABLE members AS
SELECT community, entity_id AS id, row_number() OVER () AS entity_id
FROM community_members JOIN communities USING (community, level) WHERE level = $level
"""
_INSIDE = (
    "SELECT a.entity_id AS source_id, b.entity_id AS target_id FROM relationships r "
    "JOIN members a ON a.id = r.source_id JOIN members b ON b.id = r.target_id AND b.community = a.community"
)


def _disconnected(index: Index) -> pl.DataFrame:
    communities = [pl.Series("community", [], pl.Int64)]
    with index.working.connect() as connection:
        for (level,) in connection.execute("SELECT DISTINCT level FROM communities").fetchall():
            connection.execute(_MEMBERS, {"level": level})
            members = pl.DataFrame(connection.sql("SELECT community, entity_id FROM members"))
            communities.append(disconnected_communities(members, pl.DataFrame(connection.sql(_INSIDE))))
    return pl.concat(communities).sort().to_frame()


def _stale(index: Index) -> pl.DataFrame:
    return stale_reports(index, index.models())


def _too_many_failed(index: Index) -> pl.DataFrame:
    return index.working.read(
        "SELECT source AS text_unit, error FROM index_errors WHERE stage = 'extract' AND "
        "(SELECT count(*) FROM index_errors WHERE stage = 'extract') > $share * (SELECT count(*) FROM text_units)",
        {"share": MAX_FAILED_SHARE},
    )


def _out_of_date(index: Index) -> pl.DataFrame:
    try:
        return out_of_date(index, scan(index))
    except InputError as error:  # an unreadable folder says nothing about the publication
        return pl.DataFrame({"batch": ["?"], "problem": [str(error)]})


def out_of_date(index: Index, scanned: Scan) -> pl.DataFrame:
    """Return what the publication lacks of the input folder: batch (empty: of several batches), problem."""
    rows = [(batch, "differs from the input folder, or has failed text units") for batch in scanned.changed]
    rows += [(batch, "was deleted from the input folder") for batch in scanned.deleted]
    if recorded_inputs(index.working, "published") != present_inputs(index):
        rows.append(("", "Batches were indexed after the last publication."))
    newest = index.working.read("SELECT max(number) FROM publication").item()
    current = current_number(index.settings.index_folder)
    if newest and current and current != newest:
        again = f"The job rollback to {newest}, or `graphrag-assets publications rollback newest`, goes forward again."
        rows.append(("", f"Readers have publication {current} since a rollback; the newest is {newest}. {again}"))
    return pl.DataFrame(rows, schema={"batch": pl.String, "problem": pl.String}, orient="row")


_READ_BY_REPORTS = (
    *("documents", "text_units", "covariates", "numbers", "entity_aliases", "entities", "relationships"),
    *("communities", "community_members", "community_reports"),
)
UP_TO_DATE = Check(
    "publication_is_up_to_date",
    "publication",
    ("batch_state",),
    False,
    "The publication was made from the present input folder.",
    _out_of_date,
    "Do what the rows say; for batches, launch the job update_index or switch on document_batches_sensor.",
)
CHECKS = (
    *INVARIANTS,
    Check(
        "no_input_is_skipped",
        "documents",
        ("index_errors",),
        False,
        "Every file and row of the input folder was read.",
        f"SELECT batch, source, row_number, error, hint FROM index_errors WHERE stage NOT IN {tuple(OF_READ_TEXT)}",
        "Follow the hint of each row, then launch the job update_index.",
    ),
    Check(
        "few_text_units_failed",
        "entities",
        ("text_units", "index_errors"),
        True,
        f"The share of text units whose extraction failed is at most {MAX_FAILED_SHARE:.0%}.",
        _too_many_failed,
        "Run `graphrag-assets index`, or materialize the batches: only failed text units are extracted again.",
    ),
    Check(
        "communities_are_connected",
        "communities",
        ("relationships", "communities", "community_members"),
        True,
        "Every community is connected.",
        _disconnected,
        "Launch the job update_index.",
    ),
    Check(
        "reports_are_current",
        "community_reports",
        _READ_BY_REPORTS,
        True,
        "Every report was written from the present state of its community.",
        _stale,
        "Launch the job update_index.",
    ),
    UP_TO_DATE,
)
