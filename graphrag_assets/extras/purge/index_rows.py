"""Purges deleted documents from records and registers.

The index tables have no rows of a deleted document once its batch is indexed again, which an asset check verifies.
"""

from collections.abc import Iterable

import polars as pl

from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.index_database import IndexDatabase

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
