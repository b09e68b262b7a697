"""Publishes the working database: the file that people and queries read."""

import logging

import duckdb
import polars as pl

from graphrag_assets.errors import CheckError, StoreError
from graphrag_assets.explorer.page import page_path, write_page
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.models import ledger_entries
from graphrag_assets.indexing.scan import overtaken
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_inputs, recorded_inputs
from graphrag_assets.store.compaction import compact, trim_records
from graphrag_assets.store.publication_writer import Publication, publish
from graphrag_assets.store.records_file import write_records
from graphrag_assets.store.working import replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "1"
"""Incremented when a publication of the same tables differs."""


@exclusive("publication")
def update_publication(index: Index, run_id: str, checked: bool = False) -> Publication:
    """Publish the working database, unless the newest publication has the same content.

    The blocking checks run first, unless `checked` says that they have just passed and no batch was committed since.

    Raises:
        CheckError: a blocking check failed.
    """
    if (not checked or overtaken(index)) and (failed := failed_blocking_checks(index)):
        reasons = " ".join(f"{check.statement} {check.remedy}" for check in failed)
        raise CheckError(f"Not published. Check failed: {reasons}")
    own = index.with_run_options(None)
    settings, models = own.settings, own.models()
    made_with = {
        **settings.as_rows(),
        "input": settings.input_as_given,
        "extractor": models.extractor,
        "summarizer": models.summarizer,
        "reporter": models.reporter,
        "embedding_model": models.embedding_model,
    }
    rows = pl.DataFrame({"name": list(made_with), "value": list(made_with.values())})
    inputs = recorded_inputs(index.working, "graph")
    with index.working.transaction() as connection:
        replace_table(connection, schema.INDEX_SETTINGS, rows)
        trim_records(connection)
    calls = ledger_entries(settings)
    publication = publish(index.working, settings.index_folder, settings.keep_publications, calls)
    if inputs:
        with index.working.transaction() as connection:
            record_inputs(connection, "published", inputs, run_id)
    write_records(index.working, settings.index_folder, calls)
    _compact(index)
    if publication.is_new or not page_path(settings.index_folder).exists():
        _write_explorer(index)
    return publication


def publish_records(index: Index) -> None:
    """Let readers see the present records of runs and model calls after a run that did not come to publish."""
    write_records(index.working, index.settings.index_folder, ledger_entries(index.settings))


def _write_explorer(index: Index) -> None:
    """Write the explorer beside the publication, which stays valid if this fails."""
    try:
        write_page(index.settings.index_folder)
    except Exception as error:
        log.warning("The explorer could not be written: %s Write it again with `graphrag-assets explore`.", error)


def _compact(index: Index) -> None:
    """Compact the working database if worthwhile. The publication stays valid if this fails."""
    try:
        compact(index.working)
    except (StoreError, OSError, duckdb.Error) as error:
        log.warning("The working database could not be compacted; the next publication tries again: %s", error)
