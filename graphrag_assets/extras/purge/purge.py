"""Purge: deletes everything that stems from deleted documents from the data folder."""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from filelock import FileLock, Timeout

from graphrag_assets.contracts.records import PlacedUnit
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.explorer.page import page_path, write_page
from graphrag_assets.extras.purge.index_rows import live_rows, purge_rows, stale_publications
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.models import existing_ledger, ledger_entries
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.scan import Scan, present_inputs, scan
from graphrag_assets.indexing.staged_batches import staging_of
from graphrag_assets.pipeline.batch import described, units_to_extract
from graphrag_assets.pipeline.unit_contexts import heading_contexts, outlines_of, placed_units
from graphrag_assets.settings import Settings
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.compaction import KEPT_RUNS, compact
from graphrag_assets.store.connections import SPILL_FOLDER
from graphrag_assets.store.drafts import draft_folder, leftovers, remove_leftovers
from graphrag_assets.store.locks import batch_locks, lock_file
from graphrag_assets.store.publication_files import kept_publications
from graphrag_assets.store.publication_writer import delete_publications, publish
from graphrag_assets.store.records_file import write_records
from graphrag_assets.store.schema import IMPORTED

_STAGES = (
    *("refresh", "prompt_profile", "knowledge_graph", "detect_communities", "write_community_reports", "embed_texts"),
    "publication",
)
_RUN = "purge"


class Removed(NamedTuple):
    """What was removed, or would be: from where, what, how many rows or files, how many bytes (None: not known)."""

    place: str
    what: str
    rows: int
    bytes: int | None = None


PurgeHistory = Callable[[float, list[str]], Removed]
"""Deletes what an orchestrator recorded of runs until a time (Unix time), or of batches other than those listed."""


def purge(
    index: Index, dry_run: bool = False, shared_ledger: bool = False, purge_history: PurgeHistory | None = None
) -> list[Removed]:
    """Delete what stems from deleted documents and deleted versions of documents; with `dry_run` only count it.

    An interrupted purge is completed by the next one.

    Args:
        index: the index; it must be up to date with its input folder.
        dry_run: delete nothing.
        shared_ledger: whether a ledger set by GRAPHRAG_LEDGER_URL may lose what this index does not need.
        purge_history: deletes, or with `dry_run` counts, the orchestrator's records.

    Raises:
        StoreError: the index is not up to date, was made with other models than are set, or is being written.
    """
    if not index.working.path.exists():
        raise StoreError("Nothing is indexed yet, so there is nothing to purge.")
    with _exclusive(index):
        found = scan(index)
        _check_settings(index)
        _check_up_to_date(index, found)
        batches = sorted({*found.digests, *found.imported})
        # First the history: the records that say which runs are concerned are purged below.
        removed = [purge_history(_last_removal(index), batches)] if purge_history else []
        live = live_rows(index.working, batches)
        removed += _purge_ledger(index, live.batches["batch"], live.text_units["id"], dry_run, shared_ledger)
        rows = purge_rows(index.working, batches, dry_run)
        removed += [Removed("working.duckdb", name, n) for name, n in rows.items()]
        if not dry_run:
            before, after = compact(index.working, always=True)
            removed.append(Removed("working.duckdb", "free space", 0, max(before - after, 0)))
            write_records(index.working, index.settings.index_folder, ledger_entries(index.settings))
        removed.append(_purge_publications(index, batches, dry_run))
        removed.append(_purge_staging(index, dry_run))
        removed.append(_purge_leftovers(index.settings.index_folder, dry_run))
        return [one for one in removed if one.rows or one.bytes]


def _purge_publications(index: Index, batches: list[str], dry_run: bool) -> Removed:
    folder = index.settings.index_folder
    stale = stale_publications(folder, live_rows(index.working, batches))
    size = sum(path.stat().st_size for _, path in stale)
    if stale and not dry_run:
        if stale[-1][0] == kept_publications(folder)[-1]:  # readers need something to read
            publish(
                index.working, folder, index.settings.keep_publications, ledger_entries(index.settings), always=True
            )
        delete_publications(folder, [number for number, _ in stale])
        if page_path(folder).exists():
            write_page(folder)  # it may show what a publication held that is gone now
    return Removed("publications", ", ".join(path.name for _, path in stale), len(stale), size)


def _purge_staging(index: Index, dry_run: bool) -> Removed:
    """What killed runs have left in the staging area; an extraction in progress is done again."""
    staging = staging_of(index)
    n_files = len(staging.files()) if staging else 0
    if staging and not dry_run:
        staging.sweep()
    return Removed("staging", "files", n_files)


def _purge_leftovers(folder: Path, dry_run: bool) -> Removed:
    spill = folder / SPILL_FOLDER
    left = [*leftovers(folder), *([spill] if spill.is_dir() else [])]
    size = sum(file.stat().st_size for draft in left for file in (draft, *draft.rglob("*")) if file.is_file())
    if not dry_run:
        remove_leftovers(folder)
        shutil.rmtree(spill, ignore_errors=True)
    return Removed("index folder", "leftovers of killed processes", len(left), size)


def _purge_ledger(
    index: Index, batches: pl.Series, units: pl.Series, dry_run: bool, shared_ledger: bool
) -> list[Removed]:
    ledger = existing_ledger(index.settings)
    if ledger is None or (index.settings.ledger_url and not shared_ledger):
        return []
    from graphrag_assets.extras.purge.ledger import purge_answers

    rows, size = purge_answers(ledger, needed_answers(index), set(batches), set(units), dry_run)
    return [Removed("ledger", "answers that the index does not use, deleted origins", rows, size)]


def needed_answers(index: Index) -> set[str]:
    """The ledger's keys of all answers that making the present index from nothing would ask for.

    Found by making it, on a copy of the database, with models that only look up.
    """
    settings = index.settings
    keys: set[str] = set()
    if not settings.calls_models:
        return keys
    from graphrag_assets.extras.purge.ledger_only import ledger_only_models

    with draft_folder(settings.index_folder) as drafts:
        copy = index.on_copy(drafts / "working.duckdb")
        index.working.copy_to(copy.working.path)
        documents, units = copy.working.read_tables("documents", "text_units")
        for (batch,), of_batch in units.group_by("batch", maintain_order=True):
            own = copy.with_run_options(str(batch))
            models = ledger_only_models(own.settings, keys, own.profile)
            columns = own.settings.metadata_column_list
            if own.settings.text_unit_context == "model":
                for _ in models.write_contexts(_placed_units(documents.filter(batch=batch), of_batch, columns)):
                    pass
            for _ in models.extract(units_to_extract(of_batch, documents, columns)):
                pass  # the mentions are in the database; looking their answers up is the point
        own = copy.with_run_options(None)
        models = ledger_only_models(own.settings, keys, own.profile)
        with copy.working.transaction() as connection:
            for derived in ("entities", "relationships", "embeddings"):
                connection.execute(f"DELETE FROM {derived}")
            connection.execute("DELETE FROM community_reports WHERE model <> $imported", {"imported": IMPORTED})
        merge_graph(copy, models, _RUN)
        update_reports(copy, models, _RUN)
        update_embeddings(copy, models, _RUN)
    return keys


def _placed_units(
    documents: pl.DataFrame, text_units: pl.DataFrame, metadata_columns: Sequence[str]
) -> list[PlacedUnit]:
    """The text units as their contexts were written from: with those of headings."""
    titled = described(documents, metadata_columns)
    return placed_units(documents, text_units.with_columns(heading_contexts(titled, outlines_of(titled), text_units)))


@contextlib.contextmanager
def _exclusive(index: Index) -> Iterator[None]:
    """Hold the locks of the global stages and of all batches, so that nothing is committed.

    Raises:
        StoreError: another run is writing the index.
    """
    folder = index.working.path.parent
    with contextlib.ExitStack() as stack:
        try:
            for name in (*_STAGES, *batch_locks()):
                stack.enter_context(FileLock(lock_file(folder, name), timeout=0))
        except Timeout as error:
            raise StoreError(
                f"A run that holds {Path(error.lock_file).stem} is in progress. Purge when it has finished."
            ) from None
        yield


def _check_up_to_date(index: Index, found: Scan) -> None:
    differing = [*found.revised, *found.deleted]
    stale = {recorded_inputs(index.working, stage) for stage in ("graph", "published")} != {present_inputs(index)}
    if differing or stale:
        names = ", ".join(differing[:5]) + (" …" if len(differing) > 5 else "")
        why = f"Batches differ from the input folder: {names}." if differing else "The publication is out of date."
        raise StoreError(
            f"{why} Run `graphrag-assets index` first: purge removes what an up-to-date index no longer uses."
        )


def _check_settings(index: Index) -> None:
    """Only the models that the index was made with can identify the answers that it needs."""
    models = index.with_run_options(None).models()
    names = ("extractor", "summarizer", "reporter", "embedding_model")
    made_with = dict(index.working.read("SELECT name, value FROM index_settings").iter_rows())
    if any(made_with.get(name, getattr(models, name)) != getattr(models, name) for name in names):
        raise StoreError(
            "The index was made with other models, prompts or options than are set now, and purge would remove their "
            "answers from the ledger. Set what it was made with, or run `graphrag-assets index` first."
        )


_LAST_REMOVAL = """
SELECT greatest(
    max(committed_at) FILTER (deleted > 0 AND stage = 'index_batch'),
    -- What runs deleted that are no longer recorded is unknown.
    CASE WHEN count(*) >= $kept THEN (SELECT min(committed_at) FROM
        (SELECT committed_at FROM index_runs ORDER BY committed_at DESC LIMIT $kept)) END
)
FROM index_runs
"""


def _last_removal(index: Index) -> float:
    """When rows of a batch were last removed or replaced (Unix time): records of earlier runs may tell of them."""
    when = index.working.read(
        f"SELECT coalesce(epoch(({_LAST_REMOVAL})::TIMESTAMP), 0)::DOUBLE", {"kept": KEPT_RUNS}
    ).item()
    return float(when)


def ledger_note(settings: Settings, shared_ledger: bool) -> str:
    """What to tell people whose ledger may serve other indexes too; nothing when it is the index's own."""
    if not settings.ledger_url:
        return ""
    if shared_ledger:
        return "The ledger of GRAPHRAG_LEDGER_URL keeps only what this index needs: others that use it will pay again."
    return (
        "The ledger of GRAPHRAG_LEDGER_URL is not purged: it may serve other indexes too. Give --shared-ledger if this "
        "one alone may say what stays in it."
    )
