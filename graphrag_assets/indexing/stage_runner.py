"""Runs the stages in this process, without Dagster: what `index` does.

Importing Dagster and running a job in it takes longer than all stages do after a small change.
"""

import logging
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import NamedTuple

from graphrag_assets.errors import CheckError, GraphRAGError, chain_of, masked_errors
from graphrag_assets.indexing import candidates, communities, embeddings, index_batch, knowledge_graph, publish, reports
from graphrag_assets.indexing.batch_pool import BatchPool, batches_at_once, work_on
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.up_to_date import refreshed
from graphrag_assets.llm.model_errors import BudgetExceeded, CircuitOpen
from graphrag_assets.runtime.received_signals import raise_if_interrupted
from graphrag_assets.store.invariants import Check
from graphrag_assets.store.schema import BATCH_TABLES

log = logging.getLogger(__name__)

NOT_PUBLISHED = (
    "Nothing was published. Run again when the cause is removed: only the rest is paid for. To publish what there is, "
    "launch the job refresh_graph."
)
OUT_OF_BUDGET = (
    "The budget is used up, so nothing was published. Raise GRAPHRAG_BUDGET_USD and run again: only the rest is paid "
    "for. To publish what there is, launch the job refresh_graph."
)
_GRAPH = (
    *(table.name for table in BATCH_TABLES),
    *("entity_aliases", "entities", "relationships"),
    *("communities", "community_members", "community_history"),
)
"""Tables up to the communities, from which reports are written."""


class StageRun(NamedTuple):
    """A finished run: of the batch `batch`, or, for None, of everything after the batches.

    Attributes:
        published: the number of the publication that a refresh has made or found, and whether it is new.
        reason: why the run failed; None if it succeeded.
        not_published: what to say if it failed for a reason for which all others would fail, too.
    """

    batch: str | None
    run_id: str
    published: tuple[int, bool] | None = None
    reason: str | None = None
    not_published: str | None = None

    @property
    def success(self) -> bool:
        return self.reason is None


class StageRunner:
    """Runs the stages of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def index(self, batches: Sequence[str]) -> Generator[StageRun, None, None]:
        """Index batches; yields each run as it completes.

        None begins after one that failed for a reason for which all others would fail.
        """
        at_once = batches_at_once(self._index.settings)
        with closing(work_on(batches, self._index_one, at_once, _meets_all)) as runs:
            for _, run in runs:
                if isinstance(run, Exception):  # not of a stage: `_run` returns these
                    raise run
                yield run

    def _index_one(self, batch: str, pool: BatchPool) -> StageRun:
        own = self._index.with_run_options(batch)

        def work(run_id: str) -> None:
            index_batch.index_batch(own, batch, own.models(batch, run_id), run_id, pool=pool)

        return _run(batch, work)

    def refresh(self, index: Index) -> StageRun:
        """Refresh everything after the batches. A failed blocking check stops it before reports or publication."""
        return refreshed(index, lambda: _run(None, lambda run_id: _refresh(index, run_id)))


def _meets_all(run: StageRun | Exception) -> bool:
    return isinstance(run, StageRun) and run.not_published is not None


def _run(batch: str | None, work: Callable[[str], tuple[int, bool] | None]) -> StageRun:
    run_id = str(uuid.uuid4())
    try:
        with masked_errors():
            published = work(run_id)
        raise_if_interrupted()
        return StageRun(batch, run_id, published)
    except Exception as error:
        raise_if_interrupted()
        log.debug("the run %s failed", run_id, exc_info=True)
        said = str(error) if isinstance(error, GraphRAGError) else f"{type(error).__name__}: {error}"
        return StageRun(batch, run_id, None, said.strip().partition("\n")[0], not_published(error))


def not_published(error: Exception) -> str | None:
    """What to say if an error will meet all batches, so that nothing is to be published."""
    chain = tuple(chain_of(error))
    if any(isinstance(one, BudgetExceeded) for one in chain):
        return OUT_OF_BUDGET
    return NOT_PUBLISHED if any(isinstance(one, CircuitOpen) for one in chain) else None


def _refresh(index: Index, run_id: str) -> tuple[int, bool]:
    knowledge_graph.knowledge_graph(index, index.models(run_id=run_id), run_id)
    own = index.with_run_options(None)
    communities.update_communities(own, run_id)
    _verify(index, *_GRAPH)  # what reports cost money for
    reports.update_reports(own, own.models(run_id=run_id), run_id)
    embeddings.update_embeddings(index, index.models(run_id=run_id), run_id)
    candidates.update_candidates(index, run_id)
    _verify(index, "community_reports", "citations", "embeddings")
    published = publish.update_publication(index, run_id, checked=True)
    return published.number, published.is_new


def _verify(index: Index, *assets: str) -> None:
    """Verify the blocking checks of these assets.

    Raises:
        CheckError: one fails.
    """
    if failed := failed_blocking_checks(index, assets):
        raise CheckError(in_words(failed))


def in_words(failed: Sequence[Check]) -> str:
    """A sentence for each failed check: what must hold, and the remedy."""
    return " ".join(f"Check failed: {check.statement} {check.remedy}" for check in failed)
