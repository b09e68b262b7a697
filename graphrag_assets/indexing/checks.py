"""Checks of the working database: the invariants of the index. Failed blocking checks stop publication."""

from collections.abc import Collection, Sequence

import polars as pl

from graphrag_assets.contracts.records import OF_READ_TEXT
from graphrag_assets.errors import InputError
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.report_inputs import (
    LOGGED_INPUTS,
    READER,
    made_with,
    read_changed,
    read_part,
    state_of_reports,
)
from graphrag_assets.indexing.reports import CHECKED
from graphrag_assets.indexing.scan import Scan, present_inputs, scan
from graphrag_assets.pipeline.clustering import disconnected_communities
from graphrag_assets.pipeline.report_updates import stale_reports
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.change_log import Changed, changes_since_mark, has_mark, remove_mark, remove_marks
from graphrag_assets.store.invariants import INVARIANTS, Check, find_touched, over_all, over_touched

MAX_FAILED_SHARE = 0.05
"""Failed text units above this share block publication: a few are bad text, more mean a bad model or connection."""
VERIFIER = "checks"
"""The reader of the change log that verifies the rows that changes touch; its mark is where all rows were verified."""


def offending_rows(checks: Sequence[Check], index: Index, changed: Changed | None = None) -> list[pl.DataFrame]:
    """The offending rows of each check, in order, among all rows or those that `changed` touches.

    When a blocking check fails, rows are wrong that the change log does not name: the next refresh derives everything.
    """
    over = over_all if changed is None else over_touched
    queries = {check.name: check.find for check in checks if isinstance(check.find, str)}
    with index.working.connect() as connection:
        if changed is not None:
            find_touched(connection, changed, queries.values())
        by_query = {
            name: connection.sql(f"SELECT * FROM ({over(query)}) ORDER BY ALL").pl() for name, query in queries.items()
        }
    found = [by_query[c.name] if isinstance(c.find, str) else c.find(index, changed) for c in checks]
    if any(check.blocking and rows.height for check, rows in zip(checks, found, strict=True)):
        with index.working.transaction() as connection:
            remove_marks(connection)
    return found


def failed_blocking_checks(
    index: Index, assets: Collection[str] | None = None, changed: Changed | None = None
) -> list[Check]:
    """The blocking checks, of these assets or of all, that the working database fails, see `offending_rows`."""
    blocking = [check for check in CHECKS if check.blocking and (assets is None or check.asset in assets)]
    return [c for c, rows in zip(blocking, offending_rows(blocking, index, changed), strict=True) if rows.height]


def clear_verified(index: Index) -> None:
    """Remove the mark of the checks of changed rows where all rows are checked instead: it would keep the log."""
    with index.working.transaction() as connection:
        remove_mark(connection, VERIFIER)


_LEVELS = "SELECT DISTINCT level FROM communities WHERE $ids IS NULL OR id IN (SELECT unnest($ids::VARCHAR[]))"
_MEMBERS = """
CREATE OR REPLACE TEMP TABLE members AS
SELECT community, entity_id AS id, row_number() OVER () AS entity_id
FROM community_members JOIN communities c USING (community, level)
WHERE level = $level AND ($ids IS NULL OR c.id IN (SELECT unnest($ids::VARCHAR[])))
"""
_INSIDE = (
    "SELECT a.entity_id AS source_id, b.entity_id AS target_id FROM relationships r "
    "JOIN members a ON a.id = r.source_id JOIN members b ON b.id = r.target_id AND b.community = a.community"
)


def _disconnected(index: Index, changed: Changed | None) -> pl.DataFrame:
    """The communities that are not connected; a row lists the relationships inside, so it changes if one is lost.

    A community is looked at where it first appears: an entity is in one community of a level, so that memory does not
    grow with the number of levels.
    """
    ids = None if changed is None else changed.ids("communities").to_list()
    found = [pl.Series("community", [], pl.Int64)]
    with index.working.connect() as connection:
        for (level,) in connection.execute(_LEVELS, {"ids": ids}).fetchall():
            connection.execute(_MEMBERS, {"level": level, "ids": ids})
            members = connection.sql("SELECT community, entity_id FROM members").pl()
            found.append(disconnected_communities(members, connection.sql(_INSIDE).pl()))
    return pl.concat(found).sort().to_frame()


def _stale(index: Index, changed: Changed | None) -> pl.DataFrame:
    """The communities whose report is out of date. Reports and inputs that are known to agree are not read again."""
    own = index.with_run_options(None)
    encoding, models = own.settings.tokenizer, own.models()
    with own.working.connect() as connection:
        if changed is not None:
            later = changes_since_mark(connection, READER, LOGGED_INPUTS, made_with(connection, own, models))
            is_known = later is not None and later.rows.is_empty()
        else:
            is_known = has_mark(connection, CHECKED, state_of_reports(connection, own, models))
    if is_known:
        return pl.DataFrame(schema={"community": pl.Int64})
    parts = (read_part(own, communities) for communities in read_changed(own, models, everything=True).parts)
    return (
        pl.concat([stale_reports(part.inputs, part.previous, models.reporter, encoding=encoding) for part in parts])
        .sort()
        .to_frame()
    )


def _too_many_failed(index: Index, _: Changed | None) -> pl.DataFrame:
    return index.working.read(
        "SELECT source AS text_unit, error FROM index_errors WHERE stage = 'extract' AND "
        "(SELECT count(*) FROM index_errors WHERE stage = 'extract') > $share * (SELECT count(*) FROM text_units)",
        {"share": MAX_FAILED_SHARE},
    )


def _out_of_date(index: Index, _: Changed | None) -> pl.DataFrame:
    try:
        return out_of_date(index, scan(index))
    except InputError as error:  # an unreadable folder says nothing about the publication
        return pl.DataFrame({"batch": ["?"], "problem": [str(error)]})


def out_of_date(index: Index, found: Scan) -> pl.DataFrame:
    """What the publication lacks of the input folder: batch (empty: of several batches), problem."""
    rows = [(batch, "differs from the input folder, or has failed text units") for batch in found.changed]
    rows += [(batch, "was deleted from the input folder") for batch in found.deleted]
    if recorded_inputs(index.working, "published") != present_inputs(index):
        rows.append(("", "batches were indexed after the last publication"))
    return pl.DataFrame(rows, schema={"batch": pl.String, "problem": pl.String}, orient="row")


_SKIPPED = """
SELECT batch, source, row_number, error, hint FROM index_errors
WHERE stage NOT IN (SELECT unnest($stages)) ORDER BY ALL
"""


def _skipped(index: Index, _: Changed | None) -> pl.DataFrame:
    return index.working.read(_SKIPPED, {"stages": list(OF_READ_TEXT)})


UP_TO_DATE = Check(
    "publication_is_up_to_date",
    "publication",
    False,
    "The publication was made from the present input folder.",
    _out_of_date,
    "Launch the job update_index, or switch on document_batches_sensor.",
)
CHECKS = (
    *INVARIANTS,
    Check(
        "no_input_is_skipped",
        "documents",
        False,
        "Every file and row of the input folder was read.",
        _skipped,
        "Follow the hint of each row, then launch the job update_index.",
    ),
    Check(
        "few_text_units_failed",
        "entities",
        True,
        f"The share of text units whose extraction failed is at most {MAX_FAILED_SHARE:.0%}.",
        _too_many_failed,
        "Run `graphrag-assets index`, or materialize the batches: only failed text units are extracted again.",
    ),
    Check(
        "communities_are_connected",
        "communities",
        True,
        "Every community is connected.",
        _disconnected,
        "Launch the job refresh_graph.",
    ),
    Check(
        "reports_are_current",
        "community_reports",
        True,
        "Every report was written from the present state of its community.",
        _stale,
        "Launch the job refresh_graph.",
    ),
    UP_TO_DATE,
)
