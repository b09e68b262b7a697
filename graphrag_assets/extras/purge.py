"""Purge: deletes everything that stems from deleted documents from the index folder and the ledger."""

import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl
import sqlalchemy as sa

from graphrag_assets.assets.index import Index, existing_ledger, ledger_entries
from graphrag_assets.assets.scan import Scan, present_inputs, scan
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.explorer.page import page_path, write_page
from graphrag_assets.llm.ledger import LLM_CALLS, Ledger
from graphrag_assets.store.batches import recorded_inputs
from graphrag_assets.store.connections import SPILL_FOLDER, execute_with, one_value
from graphrag_assets.store.index_database import OUTDATED, IndexDatabase
from graphrag_assets.store.index_files import kept_publications, leftovers, remove_leftovers
from graphrag_assets.store.publication_writer import delete_publications, publish

# The input folder was read before: a batch that has been committed since has rows.
_LIVE_BATCHES = """
CREATE OR REPLACE TEMP TABLE live_batches AS
FROM present UNION SELECT batch FROM batch_state WHERE n_documents > 0 OR n_errors > 0
"""
_NAMES = """
CREATE OR REPLACE TEMP TABLE live_names AS
SELECT key FROM (
    SELECT title_key AS key FROM entity_mentions
    UNION SELECT source_key FROM relationship_mentions UNION SELECT target_key FROM relationship_mentions
    UNION SELECT subject_key FROM covariates UNION SELECT object_key FROM covariates
) WHERE key IS NOT NULL
"""
_IDS = "CREATE OR REPLACE TEMP TABLE live_ids AS " + " UNION ALL ".join(
    f"SELECT '{name}' AS table_name, id FROM {name}"
    for name in ("documents", "text_units", "covariates", "entities", "relationships", "communities")
)
_LAST_NUMBER = (
    "human_readable_id = (SELECT max(human_readable_id) FROM numbers m WHERE m.table_name = numbers.table_name)"
)
_PURGED = "purged"
# Examples of prompt profiles stay if documents still have them, whatever their text units are now. The prompts change,
# but not the profile's id: nothing is extracted again because an example is gone.
_EXAMPLES = """
CREATE OR REPLACE TEMP TABLE live_examples AS
SELECT passage FROM (SELECT DISTINCT unnest(examples).text AS passage FROM prompt_profile)
WHERE EXISTS (SELECT 1 FROM documents WHERE contains(documents.text, passage))
"""
_PURGE_PROFILES = """
UPDATE prompt_profile SET
    examples = list_filter(examples, lambda example: list_contains(passages, example.text)),
    entity_types = list_transform(entity_types, lambda type: struct_update(type, examples := []::VARCHAR[])),
    relationship_types = list_transform(relationship_types, lambda type: struct_update(type, examples := []::VARCHAR[]))
FROM (SELECT coalesce(list(id), []) AS present FROM text_units),
     (SELECT coalesce(list(passage), []) AS passages FROM live_examples)
WHERE NOT list_has_all(present, sample_ids)
"""

# The rows to delete, by table; live_batches, live_names and live_ids are what exists.
_STALE_ROWS = {
    "batch_state": "batch NOT IN (FROM live_batches)",
    "index_runs": "batch NOT IN (FROM live_batches)",
    "index_errors": "batch NOT IN (FROM live_batches)",
    # Decisions by users are kept when their documents are deleted.
    "entity_aliases": "document_id NOT IN (SELECT id FROM documents) OR alias_key NOT IN (FROM live_names)",
    "summarized": "id NOT IN (SELECT id FROM live_ids)",
    # The last number of each table stays, without its id, so that no number is assigned twice.
    "numbers": f"(table_name, id) NOT IN (FROM live_ids) AND NOT ({_LAST_NUMBER})",
}


def purge_rows(working: IndexDatabase, batches: Iterable[str], dry_run: bool = False) -> dict[str, int]:
    """Delete rows of records and registers that stem from deleted documents; `batches` are those in the input folder.

    Returns:
        rows by table; with `dry_run` they are only counted.
    """
    with working.transaction() as connection:
        execute_with(connection, _LIVE_BATCHES, present=pl.DataFrame({"batch": list(batches)}, {"batch": pl.String}))
        connection.execute(_NAMES)
        connection.execute(_IDS)
        if dry_run:
            return {
                name: one_value(connection, f"SELECT count(*) FROM {name} WHERE {stale}")
                for name, stale in _STALE_ROWS.items()
            }
        removed = {name: one_value(connection, f"{_verb(name)} WHERE {stale}") for name, stale in _STALE_ROWS.items()}
        connection.execute(_EXAMPLES)
        connection.execute(_PURGE_PROFILES)
        connection.execute(f"UPDATE numbers SET id = '{_PURGED}' WHERE (table_name, id) NOT IN (FROM live_ids)")
    return removed


def _verb(table: str) -> str:
    """Rows of runs are kept without the batch's name: they record costs."""
    return "UPDATE index_runs SET batch = NULL" if table == "index_runs" else f"DELETE FROM {table}"


PURGED = "purged"
_COLUMNS = [LLM_CALLS.c[name] for name in ("key", "batch", "unit", "run_id")]
_IS_ANSWERED = sa.or_(LLM_CALLS.c.response.is_not(None), LLM_CALLS.c.vector.is_not(None))
_THIS = LLM_CALLS.c.key == sa.bindparam("of")
_WITHOUT_ORIGIN = sa.update(LLM_CALLS).where(_THIS).values(batch=sa.bindparam("to_batch"), unit=sa.bindparam("to_unit"))
_WITHOUT_ANSWER = (
    sa.update(LLM_CALLS).where(_THIS).values(key=sa.bindparam("to"), kind=PURGED, response=None, vector=None)
)


def purge_answers(ledger: Ledger, batches: Collection[str], units: Collection[str], dry_run: bool = False) -> int:
    """Keep the answers about `units`, and remove the names of batches and units that are not given.

    What was asked about several units, such as descriptions, reports and questions, may quote any of them. So may the
    earlier answers about a unit that was asked about in several runs: its prompt has changed, with its headings, its
    document's columns or the model. All of these go.

    The row stays as kind "purged": tokens and cost are not secret, and the budget counts them. Its key, a hash of
    the request, is replaced by a random one. On SQLite and PostgreSQL the bytes are removed as well.

    Returns:
        the number of rows that lose their answer or their origin.

    Raises:
        LedgerError: the ledger cannot be used, or another process holds it.
    """
    known_batches, known_units = set(batches), set(units)
    rows = [tuple(row) for row in ledger.rows(sa.select(*_COLUMNS, _IS_ANSWERED))]
    runs: dict[str, set[str]] = {}
    for _, _, unit, run, answered in rows:
        if answered:
            runs.setdefault(unit, set()).add(run)
    answers, origins = [], []
    for key, batch, unit, _, answered in rows:
        if answered and (unit not in known_units or len(runs[unit]) > 1):
            answers.append({"of": key, "to": uuid.uuid4().hex})
        origin = (batch if batch in known_batches else None, unit if unit in known_units else None)
        if origin != (batch, unit):
            origins.append({"of": key, "to_batch": origin[0], "to_unit": origin[1]})
    if not dry_run:
        if origins:
            ledger.execute(_WITHOUT_ORIGIN, origins)
        if answers:
            ledger.execute(_WITHOUT_ANSWER, answers)
        ledger.shrink()
    return len({str(row["of"]) for row in (*answers, *origins)})


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
        state = scan(index)
        _check_up_to_date(index, state)
        batches = {*state.digests, *state.imported}
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


def _check_up_to_date(index: Index, state: Scan) -> None:
    differing = [*state.revised, *state.deleted]
    stale = {recorded_inputs(index.working, stage) for stage in ("knowledge_graph", "published")} != {
        present_inputs(index)
    }
    if differing or stale:
        names = ", ".join(differing[:5]) + (" …" if len(differing) > 5 else "")
        why = f"Batches differ from the input folder: {names}." if differing else "The publication is out of date."
        raise StoreError(
            f"{why} Run `graphrag-assets index` first: purge removes what an up-to-date index no longer uses."
        )


@click.command("purge")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--shared-ledger", is_flag=True, help="Purge a ledger set by GRAPHRAG_LEDGER_URL too.")
def purge_command(dry_run: bool, shared_ledger: bool) -> None:
    """Purge deleted documents and versions of documents from the ledger, old publications and free space."""
    console, index = Console(), Index.from_environment()
    removed = purge(index, dry_run, shared_ledger)
    table = table_of("place", "what", numbers=["number"], title="would be removed" if dry_run else "removed")
    for place, what, number in removed:
        table.add_row(place, what, f"{number:,}")
    print_table(console, table)
    if index.settings.ledger_url and not shared_ledger:
        console.say(
            "The ledger of GRAPHRAG_LEDGER_URL is not purged: it may serve other indexes too. Give --shared-ledger if "
            "only this index uses it."
        )
    console.say("Dagster's own storage is not purged: docs/dagster.md says how to.")
