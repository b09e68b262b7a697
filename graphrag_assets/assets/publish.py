"""Publishes the working database: the file that people and queries read; and tells whether a run would change nothing.

A run would change nothing if the digest of its inputs is that of what the last publication was made from.
"""

import logging
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets import __version__
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.index import Index, exclusive
from graphrag_assets.assets.models import ledger_entries
from graphrag_assets.assets.scan import Scan, behind, present_inputs
from graphrag_assets.errors import CheckError
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.alias_decisions import USER_RULE
from graphrag_assets.store import schema
from graphrag_assets.store.batches import REFRESHED, inputs_of, record_inputs, recorded_inputs, trim_runs
from graphrag_assets.store.decisions import read_decisions
from graphrag_assets.store.index_database import replace_table
from graphrag_assets.store.publication_writer import Publication, intact_publication, publication_shape, publish

log = logging.getLogger(__name__)


CODE_VERSION = "2"
"""Incremented when a publication of the same tables differs."""
# What people and scans write, not the stages.
_DECISIONS = f"FROM entity_aliases WHERE rule = '{USER_RULE}' OR NOT accepted ORDER BY ALL"
_PROFILES = "SELECT version, id, adopted FROM prompt_profile ORDER BY ALL"
_UNREADABLE = "SELECT * EXCLUDE (first_seen) FROM index_errors WHERE stage = 'scan' ORDER BY ALL"
_FAILED = "SELECT count(*) FROM index_runs WHERE run_id = $run AND list_sum([u.failures FOR u IN usage]) > 0"


@exclusive("publication")
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
    settings, values = index.settings, made_with(index)
    rows = pl.DataFrame({"name": list(values), "value": list(values.values())})
    with index.working.transaction() as connection:
        replace_table(connection, schema.INDEX_SETTINGS, rows)
        trim_runs(connection)

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


def inputs_digest(index: Index) -> str:
    """Hash of batches, decisions, prompt profiles, names of no batches, settings, models, code."""
    recorded = index.working.read_all(_DECISIONS, _PROFILES, _UNREADABLE)
    rows: list[tuple[Any, ...]] = [row for frame in recorded for row in frame.iter_rows()]
    decisions = read_decisions(index.settings.index_folder)
    made = sorted(made_with(index).items())
    return stable_id("refresh", present_inputs(index), __version__, publication_shape(), *rows, *decisions, *made)


def record_inputs_of_run(index: Index, run_id: str) -> None:
    """Record, before the graph is made, what it is made from."""
    digest = inputs_digest(index)
    with index.working.transaction() as connection:
        record_inputs(connection, "run", digest, run_id)


def record_up_to_date(index: Index, run_id: str) -> None:
    """Record what has been published, unless that has changed since, or a model's answer failed."""
    digest, failed = inputs_digest(index), index.working.read(_FAILED, {"run": run_id}).item()
    published = recorded_inputs(index.working, "published") == present_inputs(index)
    if published and not failed and recorded_inputs(index.working, "run") == digest:
        with index.working.transaction() as connection:
            record_inputs(connection, REFRESHED, digest, run_id)


def up_to_date(index: Index, found: Scan) -> Publication | None:
    """The newest publication, if a run over all of `found` would change nothing; else None.

    The publication was opened, and pointer and link lead to a whole one.
    """
    if found.due or recorded_inputs(index.working, REFRESHED) != inputs_digest(index):
        return None
    return intact_publication(index.working, index.settings.index_folder)
