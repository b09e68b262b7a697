"""The input folder against the index: which batches to index, and which names cannot be batches."""

from typing import NamedTuple

import polars as pl

from graphrag_assets.defs.batch_index import batch_digest
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.store.batches import replace_errors


class Scan(NamedTuple):
    """Batches to index, batches as they were, and batches that are no longer in the folder."""

    changed: list[str]
    unchanged: list[str]
    gone: list[str]


def scan(index: GraphIndex) -> Scan:
    """Compare the input folder with the batches in the database, by content and settings.

    Raises:
        InputError: the input folder cannot be read. It is never taken for an empty one.
    """
    present = index.input_folder.batches()
    stored = index.working.read(
        "SELECT batch, digest, extracted, n_documents, n_errors FROM batch_state ORDER BY batch"
    )
    digests = dict(stored.filter("extracted").select("batch", "digest").iter_rows())
    unchanged = [batch for batch in present if digests.get(batch) == batch_digest(index, batch)]
    live = stored.filter((pl.col("n_documents") > 0) | (pl.col("n_errors") > 0))["batch"]
    return Scan(
        changed=[batch for batch in present if batch not in unchanged],
        unchanged=unchanged,
        gone=[batch for batch in live if batch not in present],
    )


def record_unusable_names(index: GraphIndex) -> None:
    """Rows of index_errors for entries of the input folder that cannot be batches because of their names."""
    names = index.input_folder.unusable_names()
    errors = pl.DataFrame(
        {
            "batch": [name.name for name in names],
            "source": [name.name for name in names],
            "row_number": None,
            "stage": "scan",
            "error": [name.error for name in names],
            "hint": [name.hint for name in names],
        },
        schema_overrides={"row_number": pl.Int64},
    )
    with index.get_connection() as connection:
        replace_errors(connection, errors, "stage = 'scan'", {})
