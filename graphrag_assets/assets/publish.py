"""Publishes the working database: the file that people and queries read."""

import logging
from pathlib import Path

import polars as pl

from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.index import Index, exclusive
from graphrag_assets.assets.models import ledger_entries
from graphrag_assets.assets.scan import behind
from graphrag_assets.errors import CheckError
from graphrag_assets.runtime.tracing import traced
from graphrag_assets.store import schema
from graphrag_assets.store.batches import inputs_of, record_inputs, trim_records
from graphrag_assets.store.publication_writer import Publication, intact_publication, publish
from graphrag_assets.store.working import replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "2"
"""Incremented when a publication of the same tables differs."""


@exclusive("publication")
@traced("publication")
def update_publication(index: Index, run_id: str, checked: bool = False) -> Publication:
    """Publish the working database, unless the newest publication has the same content.

    If another run has changed batches since a stage has read them, this is left to that run. The blocking checks run
    first, unless `checked` says that they have just passed.

    Raises:
        CheckError: a blocking check failed, or searches find less than before and GRAPHRAG_BLOCK_WORSE is set.
    """
    if stages := behind(index):
        said = f"Another run has changed batches after {', '.join(stages)}: publishing is left to it."
        newest = intact_publication(index.working, index.settings.index_folder)
        if newest is None:
            raise CheckError(f"Not published. {said} If there is no other run, start `graphrag-assets index`.")
        log.warning("%s If there is no other run, start `graphrag-assets index`.", said)
        return newest
    if not checked and (failed := failed_blocking_checks(index)):
        reasons = " ".join(f"{check.statement} {check.remedy}" for check in failed)
        raise CheckError(f"Not published. Check failed: {reasons}")
    own = index.with_run_options(None)
    settings, values = own.settings, made_with(own)
    rows = pl.DataFrame({"name": list(values), "value": list(values.values())})
    with index.working.transaction() as connection:
        replace_table(connection, schema.INDEX_SETTINGS, rows)
        trim_records(connection)

    def judge(candidate: Path) -> None:
        if settings.questions_file.is_file():
            from graphrag_assets.extras.evaluation.gate import check_candidate

            check_candidate(settings, candidate)

    publication = publish(index.working, settings.index_folder, llm_calls=ledger_entries(settings), judge=judge)
    with index.working.transaction() as connection:
        record_inputs(connection, "published", inputs_of(connection), run_id)
    return publication


def made_with(index: Index) -> dict[str, str | None]:
    """Name and value of what shapes an index: its settings, the input folder, and what performs each task."""
    settings, models = index.settings, index.models()
    return {
        **settings.as_rows(),
        "input": settings.input_as_given,
        "extractor": models.extractor,
        "summarizer": models.summarizer,
        "reporter": models.reporter,
        "embedding_model": models.embedding_model,
        "prompt_profile": index.profile.id if index.profile else "",
    }
