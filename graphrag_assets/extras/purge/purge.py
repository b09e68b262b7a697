"""Purge: deletes everything that stems from deleted documents from the index folder and the ledger."""

import shutil
from pathlib import Path
from typing import NamedTuple

from graphrag_assets.assets.index import Index, existing_ledger, ledger_entries
from graphrag_assets.assets.scan import Scan, present_inputs, scan
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.explorer.page import page_path, write_page
from graphrag_assets.extras.purge.index_rows import purge_rows
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.connections import SPILL_FOLDER
from graphrag_assets.store.index_database import OUTDATED
from graphrag_assets.store.index_files import kept_publications, leftovers, remove_leftovers
from graphrag_assets.store.publication_writer import delete_publications, publish


class Removed(NamedTuple):
    """What was removed, or would be: from where, what, how many rows or files."""

    place: str
    what: str
    number: int


def purge(index: Index, dry_run: bool = False, shared_ledger: bool = False) -> list[Removed]:
    """Delete what stems from deleted documents and deleted versions of documents; with `dry_run` only count it.

    One publication is left, a new one. An interrupted purge is completed by the next one.

    Args:
        index: the index; it must be up to date with its input folder.
        dry_run: delete nothing.
        shared_ledger: whether a ledger set by GRAPHRAG_LEDGER_URL may lose what this index does not need.

    Raises:
        StoreError: the index is not up to date.
    """
    if not index.working.path.exists():
        raise StoreError("Nothing is indexed yet, so there is nothing to purge.")
    with index.working.writing("purge"):
        found = scan(index)
        _check_up_to_date(index, found)
        batches = {*found.digests, *found.imported}
        rows = purge_rows(index.working, batches, dry_run)
        removed = [Removed("working.duckdb", name, n) for name, n in rows.items()]
        removed.append(_purge_ledger(index, batches, dry_run, shared_ledger))
        if not dry_run:
            index.working.rewrite()
        removed.append(_purge_publications(index, dry_run))
        removed.append(_purge_leftovers(index.settings.index_folder, dry_run))
        return [one for one in removed if one.number]


def _purge_ledger(index: Index, batches: set[str], dry_run: bool, shared_ledger: bool) -> Removed:
    ledger, what = existing_ledger(index.settings), "answers, names of batches and text units"
    if ledger is None or (index.settings.ledger_url and not shared_ledger):
        return Removed("ledger", what, 0)
    from graphrag_assets.extras.purge.ledger import purge_answers

    units = index.working.read("SELECT id FROM text_units")["id"]
    return Removed("ledger", what, purge_answers(ledger, batches, units, dry_run))


def _purge_publications(index: Index, dry_run: bool) -> Removed:
    """Publish a file without anything of earlier ones, and delete those."""
    folder = index.settings.index_folder
    earlier = kept_publications(folder)
    if not dry_run:
        publish(index.working, folder, llm_calls=ledger_entries(index.settings), always=True)
        delete_publications(folder, earlier)
        if page_path(folder).exists():
            write_page(folder)
    return Removed("publications", ", ".join(map(str, earlier)), len(earlier))


def _purge_leftovers(folder: Path, dry_run: bool) -> Removed:
    spill = folder / SPILL_FOLDER
    outdated = folder / OUTDATED
    places = folder, folder / "publications"
    left = [*leftovers(*places), *(path for path in (spill, outdated) if path.exists())]
    if not dry_run:
        remove_leftovers(*places)
        outdated.unlink(missing_ok=True)
        shutil.rmtree(spill, ignore_errors=True)
    return Removed("index folder", "leftovers of killed processes and of other versions", len(left))


def _check_up_to_date(index: Index, found: Scan) -> None:
    differing = [*found.revised, *found.deleted]
    stale = {recorded_inputs(index.working, stage) for stage in ("knowledge_graph", "published")} != {
        present_inputs(index)
    }
    if differing or stale:
        names = ", ".join(differing[:5]) + (" …" if len(differing) > 5 else "")
        why = f"Batches differ from the input folder: {names}." if differing else "The publication is out of date."
        raise StoreError(
            f"{why} Run `graphrag-assets index` first: purge removes what an up-to-date index no longer uses."
        )
