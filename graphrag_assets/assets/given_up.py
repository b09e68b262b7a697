"""Requests that were given up: two runs got no valid answer to them, so no run sends them again by itself."""

from graphrag_assets.assets import embeddings
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.knowledge_graph import forget_summaries
from graphrag_assets.assets.models import existing_ledger
from graphrag_assets.store.batches import REFRESHED, remove_inputs


def retry_given_up(index: Index) -> None:
    """Have the next run send again what was given up; batches that need it are `Scan.given_up`.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    if ledger := existing_ledger(index.settings):
        ledger.forget_failures()
    with index.working.transaction() as connection:
        forget_summaries(connection)
        remove_inputs(connection, embeddings.REFUSED)
        remove_inputs(connection, REFRESHED)
