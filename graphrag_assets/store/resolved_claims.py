"""Claims of the working database that nobody takes back, with the entities that they are about."""

from importlib.resources import files

from graphrag_assets.store.schema import DENIED, literal

_RESOLVED, _TAKEN_BACK = (
    files("graphrag_assets.store").joinpath(f"sql/{name}.sql").read_text()
    for name in ("resolved_claims", "claims_taken_back")
)
CLAIM_VIEWS = (
    "CREATE OR REPLACE VIEW claims_taken_back AS "
    f"{_TAKEN_BACK.replace('{resolved}', _RESOLVED).replace('$denied', literal(DENIED))};"
    "CREATE OR REPLACE VIEW resolved_claims AS WITH claims AS (FROM covariates ANTI JOIN claims_taken_back USING (id)) "
    f"FROM ({_RESOLVED});"
)
"""Creates the views of claims that do not hold (id), and of the others (id, subject_entity_id, object_entity_id)."""


def claims_of_entities(claims: str) -> str:
    """A query: of the claims that the query `claims` selects, those about entities, numbered and dated.

    Names are resolved for these claims only, whatever the number of all.
    """
    return (
        f"WITH claims AS MATERIALIZED (FROM ({claims}) ANTI JOIN claims_taken_back USING (id)) "
        "SELECT c.*, n.human_readable_id, r.subject_entity_id, d.document_date "
        f"FROM claims c JOIN ({_RESOLVED}) r USING (id) LEFT JOIN documents d ON d.id = c.document_id "
        "JOIN numbers n ON n.table_name = 'covariates' AND n.id = c.id WHERE r.subject_entity_id IS NOT NULL"
    )
