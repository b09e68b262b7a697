"""The input folder against the index: which batches to index, and which names cannot be batches."""

from typing import NamedTuple

import polars as pl

from graphrag_assets.defs.batch_index import batch_digest
from graphrag_assets.defs.resources import GraphIndex
from graphrag_assets.errors import InputError
from graphrag_assets.store.batches import replace_errors


class Scan(NamedTuple):
    """Batches to index, batches as they were, and batches that are no longer in the folder."""

    changed: list[str]
    unchanged: list[str]
    gone: list[str]


_STORED_BATCHES = """
SELECT batch, digest, extracted, n_documents, n_errors,
       (SELECT count(*) FROM text_units t WHERE t.batch = s.batch AND t.extractor IS NULL) AS n_undone
FROM batch_state s ORDER BY batch
"""


def scan(index: GraphIndex) -> Scan:
    """Compare the input folder with the batches in the database, by content and settings.

    A batch with text units that failed, or were never extracted, counts as changed: it is tried again.

    Raises:
        InputError: the input folder cannot be read. It is never taken for an empty one.
    """
    present = index.input_folder.batches()
    stored = index.working.read(_STORED_BATCHES)
    digests = dict(stored.filter(pl.col("extracted") & (pl.col("n_undone") == 0)).select("batch", "digest").iter_rows())
    unchanged = {batch for batch in present if digests.get(batch) == batch_digest(index, batch)}
    live = stored.filter((pl.col("n_documents") > 0) | (pl.col("n_errors") > 0))["batch"]
    return Scan(
        changed=[batch for batch in present if batch not in unchanged],
        unchanged=sorted(unchanged),
        gone=sorted(set(live) - set(present)),
    )


def claim_input_folder(index: GraphIndex, replace: bool = False) -> None:
    """Tie the index to its input folder. Batches of another folder would replace those it has.

    Raises:
        InputError: the index was built from another folder, and `replace` is false.
    """
    folder = index.settings.input_as_given
    known = index.working.read("SELECT value FROM index_settings WHERE name = 'input'")
    n_batches = index.working.read("SELECT count(*) FROM batch_state WHERE n_documents > 0").item()
    if not replace and n_batches and known.height and known.item() != folder:
        raise InputError(
            f"This index holds {n_batches} batches of {known.item()}; indexing {folder} would remove them. Give the "
            "other folder an index of its own by setting GRAPHRAG_DATA, or run `python -m graphrag_assets index "
            "--replace`."
        )
    with index.get_connection() as connection:
        connection.execute("DELETE FROM index_settings WHERE name = 'input'")
        connection.execute("INSERT INTO index_settings VALUES ('input', $folder)", {"folder": folder})


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
