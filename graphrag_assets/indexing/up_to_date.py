"""Tells whether everything after the batches is as a refresh would make it, without running one.

A refresh that has succeeded records the digest of what it was made from. Every commit of a stage removes the record in
its own transaction, so it stands only while nothing has been written since.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from graphrag_assets import __version__
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing import candidates, communities, embeddings, knowledge_graph, publish, reports
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.scan import Scan, present_inputs
from graphrag_assets.pipeline.alias_decisions import USER_RULE
from graphrag_assets.store.batches import REFRESHED, inputs_of, record_inputs, recorded_inputs
from graphrag_assets.store.decisions import read_decisions
from graphrag_assets.store.publication_content import publication_shape
from graphrag_assets.store.publication_writer import Publication, intact_publication

_CODE = (
    __version__,
    knowledge_graph.CODE_VERSION,
    communities.CODE_VERSION,
    reports.CODE_VERSION,
    embeddings.CODE_VERSION,
    candidates.CODE_VERSION,
    publish.CODE_VERSION,
)
# No stage writes these: people decide on aliases and adopt prompt profiles, a scan records names of no batches.
_DECISIONS = f"FROM entity_aliases WHERE rule = '{USER_RULE}' OR NOT accepted ORDER BY ALL"
_PROFILES = "SELECT version, id, adopted FROM prompt_profile ORDER BY ALL"
_ERRORS = "SELECT * EXCLUDE (first_seen) FROM index_errors ORDER BY ALL"
_TROUBLED = """
WITH refresh AS (SELECT min(committed_at) AS began FROM index_runs WHERE run_id = $run)
SELECT count(*) FILTER (WHERE run_id = $run AND list_sum([u.failures FOR u IN usage]) > 0)
     + count(*) FILTER (WHERE run_id <> $run AND committed_at >= began)
FROM index_runs, refresh
"""


def refresh_digest(index: Index) -> str:
    """Hash of what a refresh is made from: batches, decisions, prompt profiles, errors, settings, models, code."""
    with index.working.connect() as connection:
        batches = inputs_of(connection)
        recorded = [connection.sql(query).pl() for query in (_DECISIONS, _PROFILES, _ERRORS)]
    made_with = publish.made_with(index.with_run_options(None))
    decided = read_decisions(index.settings.index_folder)
    rows = (*decided, *(row for frame in recorded for row in frame.iter_rows()), *sorted(made_with.items()))
    return stable_id("refresh", batches, _CODE, publication_shape(), *rows)


def record_refreshed(index: Index, digest: str, run_id: str) -> None:
    """Record that the refresh `run_id` was made from the inputs of `digest`, taken before it.

    Not if these have changed meanwhile, another run has written, or a model's answer failed: the next refresh has
    something to do.
    """
    if refresh_digest(index) != digest:
        return
    with index.working.transaction() as connection:
        ((troubled,),) = connection.execute(_TROUBLED, {"run": run_id}).fetchall()
        if not troubled:
            record_inputs(connection, REFRESHED, digest, run_id)


class Finished(Protocol):
    """A finished run."""

    @property
    def run_id(self) -> str: ...
    @property
    def success(self) -> bool: ...


R = TypeVar("R", bound=Finished)


def refreshed(index: Index, run: Callable[[], R]) -> R:
    """The result of `run`, a refresh, which is recorded if it succeeds.

    Checks may refuse a refresh during which another process has committed a batch: it is made again.
    """
    with index.working.exclusive("refresh"):
        while True:
            inputs, digest = present_inputs(index), refresh_digest(index)
            done = run()
            if done.success:
                record_refreshed(index, digest, done.run_id)
            if done.success or present_inputs(index) == inputs:
                return done


def up_to_date(index: Index, found: Scan) -> Publication | None:
    """The newest publication, if a run over all of `found` would change nothing; else None.

    The publication was opened, and pointer and link lead to a whole one.
    """
    if found.due:
        return None
    recorded = recorded_inputs(index.working, REFRESHED)
    if recorded is None or recorded != refresh_digest(index):
        return None
    return intact_publication(index.working, index.settings.index_folder)
