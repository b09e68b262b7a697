"""Claims of the working database with the entities that they are about."""

from importlib.resources import files

_RESOLVED = files("graphrag_assets.store").joinpath("sql/resolved_claims.sql").read_text()
RESOLVED_CLAIMS = f"CREATE OR REPLACE VIEW resolved_claims AS WITH claims AS (FROM covariates) FROM ({_RESOLVED});"
"""Creates the view of all claims: id, subject_entity_id, object_entity_id."""


def claims_of_entities(claims: str) -> str:
    """A query: of the claims that the query `claims` selects, those about entities, numbered and dated.

    Names are resolved for these claims only, whatever the number of all.
    """
    return (
        f"WITH claims AS MATERIALIZED ({claims}) "
        "SELECT c.*, n.human_readable_id, r.subject_entity_id, d.document_date "
        f"FROM claims c JOIN ({_RESOLVED}) r USING (id) LEFT JOIN documents d ON d.id = c.document_id "
        "JOIN numbers n ON n.table_name = 'covariates' AND n.id = c.id WHERE r.subject_entity_id IS NOT NULL"
    )
