"""Compares the input folder with the index: the batches to index, and names that cannot be batches."""

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import polars as pl
from upath import UPath

from graphrag_assets.assets.index import Index, existing_ledger
from graphrag_assets.assets.index_batch import deciding_options
from graphrag_assets.contracts.records import RETRY
from graphrag_assets.errors import InputError, full_disk_in
from graphrag_assets.ids import stable_id
from graphrag_assets.settings import Settings
from graphrag_assets.store import schema
from graphrag_assets.store.batches import REFRESHED, REFUSED, inputs_of, remove_inputs, replace_errors
from graphrag_assets.store.connections import one_value
from graphrag_assets.store.digest_cache import NAME, DigestCache, age
from graphrag_assets.store.input_table import SCHEME

SETTLE_SECONDS = 5.0
"""A batch waits until its files are this old: the newest file of a copy in progress is younger."""


class BatchSelection(Enum):
    """Which batches are indexed."""

    CHANGED = "changed"
    FAILED = "failed"
    ALL = "all"
    NOTHING = "nothing"


class Scan(NamedTuple):
    """The input folder beside the database.

    Attributes:
        digests: of every batch in the folder, by name.
        revised: batches whose files or settings differ from what was committed.
        pending: batches as they were committed, of which some text units, gleanings or contexts failed.
        unchanged: batches that are done.
        given_up: of the unchanged batches those with requests that two runs got no valid answer to.
        deleted: batches with rows that are no longer in the folder.
        settling: batches that were being written just now.
        imported: batches of imported indexes. They are in no folder, and stay until they are removed by name.
        unusable: names that no batch can have, and batches that cannot be listed, with error and hint. The latter stay
            as they are: nobody knows which files they have.
    """

    digests: dict[str, str]
    revised: list[str]
    pending: list[str]
    unchanged: list[str]
    deleted: list[str]
    settling: frozenset[str]
    imported: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    unusable: Mapping[str, tuple[str, str]] = {}

    @property
    def changed(self) -> list[str]:
        """Batches in the folder that have something to do, sorted."""
        return sorted([*self.revised, *self.pending])

    @property
    def due(self) -> list[str]:
        """Batches to be indexed: changed ones, and those that are deleted."""
        return [*self.changed, *self.deleted]

    @property
    def batches(self) -> list[str]:
        """Batches in the folder or in the database."""
        return [*self.due, *self.unchanged]

    def chosen(self, which: BatchSelection, batches: Sequence[str] = ()) -> list[str]:
        """Return the batches to index: `batches` if some are named, or else which of them are due.

        Raises:
            InputError: a name is no batch.
        """
        if unknown := [batch for batch in batches if batch not in self.batches]:
            raise InputError(
                f"No batch {', '.join(map(repr, unknown))} in the input folder. It has: "
                f"{', '.join(self.batches) or 'nothing'}. A batch is an entry directly under the input folder."
            )
        by_which = {
            BatchSelection.CHANGED: self.due,
            BatchSelection.FAILED: [*self.pending, *self.given_up],
            BatchSelection.ALL: self.batches,
            BatchSelection.NOTHING: [],
        }
        return list(batches) or by_which[which]


_STORED_BATCHES = """
WITH undone AS (
    SELECT batch, id AS text_unit, 'extract' AS stage FROM text_units WHERE extractor IS NULL
    UNION ALL SELECT batch, source, stage FROM index_errors WHERE stage IN ('context', 'glean')
), counted AS (
    SELECT u.batch, count(*) FILTER (g.batch IS NULL) AS n_pending, count(g.batch) AS n_given_up
    FROM undone u LEFT JOIN index_errors g
      ON g.batch = u.batch AND g.source = u.text_unit AND g.stage = u.stage AND g.hint = $given_up
    GROUP BY u.batch
)
SELECT batch, digest, n_documents, n_errors, origin IS NOT NULL AS imported,
       coalesce(n_pending, 0) AS n_pending, coalesce(n_given_up, 0) AS n_given_up
FROM batch_state LEFT JOIN counted USING (batch) ORDER BY batch
"""
_SCAN = "scan_input"


@full_disk_in(_SCAN)
def scan(index: Index, read_every_file: bool = False) -> Scan:
    """Compare the input folder with the batches in the database, by content and settings.

    Only files whose size or time has changed since the last scan are read, unless `read_every_file`.

    Raises:
        InputError: the input folder cannot be read. It is never taken for an empty one.
    """
    folder, settings = index.input, index.settings
    _refuse_overlap(settings)
    cache = DigestCache(settings.index_folder / NAME, settings.input_as_given)
    committed = index.working.read(_STORED_BATCHES, {"given_up": RETRY})
    present = dict(committed.select("batch", "digest").iter_rows())
    deciding, digests, settling, unusable = deciding_options(settings, index.models()).items(), {}, set(), {}
    for batch, files, error, hint in folder.list_batches():
        if error:
            unusable[batch] = error, hint
            if batch in present:
                digests[batch] = present[batch]
            continue
        digests[batch] = stable_id(cache.digest(folder, batch, files, read_every_file), *deciding)
        if age(files) < SETTLE_SECONDS:
            settling.add(batch)
    cache.save()
    stored = committed.filter(~pl.col("imported"))
    same = {batch for batch, digest in stored.select("batch", "digest").iter_rows() if digests.get(batch) == digest}
    pending = same & set(stored.filter(pl.col("n_pending") > 0)["batch"])
    live = stored.filter((pl.col("n_documents") > 0) | (pl.col("n_errors") > 0))["batch"]
    return Scan(
        digests=digests,
        revised=sorted(set(digests) - same),
        pending=sorted(pending),
        unchanged=sorted(same - pending),
        deleted=sorted(set(live) - set(digests)),
        settling=frozenset(settling),
        imported=tuple(committed.filter("imported")["batch"]),
        given_up=tuple(sorted((same - pending) & set(stored.filter(pl.col("n_given_up") > 0)["batch"]))),
        unusable=unusable,
    )


def _refuse_overlap(settings: Settings) -> None:
    """Return an index within its own input folder would index itself, and one that holds its input could delete it."""
    if settings.input.startswith(SCHEME):
        return
    location = UPath(settings.input_folder.rpartition("::")[2])  # the last of chained file systems holds the files
    if location.protocol not in ("", "file", "local"):
        return
    source, index = Path(location.path).resolve(), settings.index_folder.resolve()
    if source == index or source in index.parents or index in source.parents:
        raise InputError(
            f"The input folder {source} and the index folder {index} contain one another, so the index would index "
            "itself. Set GRAPHRAG_INPUT to a folder of documents alone, or GRAPHRAG_DATA to another folder."
        )


@full_disk_in(_SCAN)
def scan_input(index: Index, replace: bool = False, read_every_file: bool = False) -> Scan:
    """Tie the index to its input folder, record names that cannot be batches, and compare folder and index.

    An index of another version begins again, see `IndexDatabase.renew`.

    Raises:
        InputError: the folder cannot be read; or the index was built from another folder, and `replace` is false.
    """
    index.working.renew()
    claim_input_folder(index, replace)
    scanned = scan(index, read_every_file)
    _record_errors(index, scanned.unusable)
    return scanned


def retry_given_up(index: Index) -> None:
    """Have the next run send again what two runs got no valid answer to; batches that need it: `Scan.given_up`.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    if ledger := existing_ledger(index.settings):
        ledger.forget_failures()
    with index.working.transaction() as connection:
        connection.execute(f"DELETE FROM {schema.SUMMARIZED.sql_name}")  # paid answers come from the ledger
        remove_inputs(connection, REFUSED)
        remove_inputs(connection, REFRESHED)


def present_inputs(index: Index) -> str:
    """Return the revision of the batches, from which everything else is made."""
    with index.working.connect() as connection:
        return inputs_of(connection)


def claim_input_folder(index: Index, replace: bool = False) -> None:
    """Tie the index to its input folder. Batches of another folder would replace those it has.

    Raises:
        InputError: the folder cannot be read; or the index was built from another folder, and `replace` is false.
    """
    folder = index.settings.input_as_given
    if index.working.read(_CLAIMED).rows() == [(folder,)]:
        return
    _refuse_overlap(index.settings)  # a folder that is refused must not become the index's
    next(index.input.list_batches(), None)  # raises where it cannot be read
    with index.working.transaction() as connection:
        claimed = connection.execute(_CLAIMED).fetchone()
        n_batches = one_value(connection, "SELECT count(*) FROM batch_state WHERE n_documents > 0 AND origin IS NULL")
        if not replace and n_batches and claimed and claimed[0] != folder:
            raise InputError(
                f"This index holds the batches of {claimed[0]}; indexing {folder} would remove them. Give the "
                "other folder an index of its own by setting GRAPHRAG_DATA, or run `graphrag-assets index "
                "--replace`."
            )
        connection.execute("DELETE FROM index_settings WHERE name = 'input'")
        connection.execute("INSERT INTO index_settings VALUES ('input', $folder)", {"folder": folder})


_CLAIMED = "SELECT value FROM index_settings WHERE name = 'input'"


def _record_errors(index: Index, unusable: Mapping[str, tuple[str, str]]) -> None:
    """Rows of index_errors for entries of the input folder that cannot be batches, or cannot be listed."""
    rows = [(name, *problem) for name, problem in unusable.items()]
    n_recorded = index.working.read("SELECT count(*) FROM index_errors WHERE stage = 'scan'").item()
    if not rows and not n_recorded:
        return
    errors = pl.DataFrame(rows, {"batch": pl.String, "error": pl.String, "hint": pl.String}, orient="row").with_columns(
        source="batch", row_number=pl.lit(None, pl.Int64), stage=pl.lit("scan")
    )
    with index.working.transaction() as connection:
        replace_errors(connection, errors, "stage = 'scan'", {})
