"""Tells whether a run would change nothing: by the digest of what the last publication was made from."""

from typing import Any

from graphrag_assets import __version__
from graphrag_assets.assets import publish
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.scan import Scan, present_inputs
from graphrag_assets.ids import stable_id
from graphrag_assets.pipeline.alias_decisions import USER_RULE
from graphrag_assets.store.batches import REFRESHED, record_inputs, recorded_inputs
from graphrag_assets.store.decisions import read_decisions
from graphrag_assets.store.publication_content import publication_shape
from graphrag_assets.store.publication_writer import Publication, intact_publication

# What people and scans write, not the stages.
_DECISIONS = f"FROM entity_aliases WHERE rule = '{USER_RULE}' OR NOT accepted ORDER BY ALL"
_PROFILES = "SELECT version, id, adopted FROM prompt_profile ORDER BY ALL"
_UNREADABLE = "SELECT * EXCLUDE (first_seen) FROM index_errors WHERE stage = 'scan' ORDER BY ALL"
_FAILED = "SELECT count(*) FROM index_runs WHERE run_id = $run AND list_sum([u.failures FOR u IN usage]) > 0"


def inputs_digest(index: Index) -> str:
    """Hash of batches, decisions, prompt profiles, names of no batches, settings, models, code."""
    made_with = publish.made_with(index.with_run_options(None))
    recorded = index.working.read_all(_DECISIONS, _PROFILES, _UNREADABLE)
    rows: list[tuple[Any, ...]] = [row for frame in recorded for row in frame.iter_rows()]
    decisions = read_decisions(index.settings.index_folder)
    made = sorted(made_with.items())
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
