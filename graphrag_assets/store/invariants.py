"""Invariants of the working database, as queries for violating rows."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from graphrag_assets.store.schema import INDEX_RUNS, WORKING


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one asset.

    Attributes:
        reads: the tables that it reads.
        blocking: whether it blocks publication.
        statement: what must hold.
        find: the offending rows: a query, or a function of the index.
        remedy: what to do when there are any.
    """

    name: str
    asset: str
    reads: tuple[str, ...]
    blocking: bool
    statement: str
    find: str | Callable[..., pl.DataFrame]
    remedy: str


_REINDEX = "Launch the job update_index with which: ALL: paid answers come from the ledger."
_REFRESH = "Launch the job update_index."


def _duplicates(name: str, key: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{column}"' for column in key)
    shown = ", ".join(f'"{column}"::VARCHAR' for column in key)
    return (
        f"SELECT '{name}' AS table_name, concat_ws(' · ', {shown}) AS key, count(*) AS n "
        f"FROM {name} GROUP BY {columns} HAVING n > 1"
    )


_KEYED = tuple(table for table in WORKING if table != INDEX_RUNS)
_LISTED = """
SELECT '{table}' AS table_name, u.id, u.ref AS missing FROM (SELECT id, unnest({column}) AS ref FROM {table}) u
ANTI JOIN {target} t ON t.id = u.ref
"""

INVARIANTS = (
    Check(
        "keys_are_unique",
        "embeddings",
        tuple(table.name for table in _KEYED),
        True,
        "Keys are unique in every table.",
        " UNION ALL ".join(_duplicates(t.name, t.key) for t in _KEYED),
        _REINDEX,
    ),
    Check(
        "relationship_ends_are_entities",
        "relationships",
        ("entities", "relationships"),
        True,
        "Source and target of every relationship are entities.",
        "SELECT r.id, source, target FROM relationships r "
        "LEFT JOIN entities s ON s.id = source_id AND s.title = source "
        "LEFT JOIN entities t ON t.id = target_id AND t.title = target WHERE s.id IS NULL OR t.id IS NULL",
        _REFRESH,
    ),
    Check(
        "references_exist",
        "communities",
        ("text_units", "entities", "relationships", "communities"),
        True,
        "Every id in a list column is the id of a row.",
        " UNION ALL ".join(
            _LISTED.format(table=table, column=column, target=target)
            for table, column, target in (
                ("entities", "text_unit_ids", "text_units"),
                ("relationships", "text_unit_ids", "text_units"),
                ("communities", "text_unit_ids", "text_units"),
                ("communities", "entity_ids", "entities"),
                ("communities", "relationship_ids", "relationships"),
            )
        ),
        _REFRESH,
    ),
    Check(
        "entities_and_relationships_stand_in_text_units",
        "relationships",
        ("entities", "relationships"),
        True,
        "Every entity and every relationship is mentioned in at least one text unit.",
        "SELECT 'entities' AS table_name, id, title FROM entities WHERE len(coalesce(text_unit_ids, [])) = 0 "
        "UNION ALL SELECT 'relationships', id, source || ' – ' || target FROM relationships "
        "WHERE len(coalesce(text_unit_ids, [])) = 0",
        _REFRESH,
    ),
    Check(
        "one_community_per_entity_and_level",
        "community_members",
        ("entities", "community_members"),
        True,
        "Every entity is in exactly one community at each level.",
        "SELECT e.id AS entity_id, l.level, count(m.community) AS n FROM entities e "
        "CROSS JOIN (SELECT DISTINCT level FROM community_members) l "
        "LEFT JOIN community_members m ON m.entity_id = e.id AND m.level = l.level GROUP BY ALL HAVING n <> 1 "
        "UNION ALL SELECT m.entity_id, m.level, 0 FROM community_members m "
        "ANTI JOIN entities e ON e.id = m.entity_id "
        "UNION ALL SELECT id, 0, 0 FROM entities WHERE NOT EXISTS (FROM community_members)",
        _REFRESH,
    ),
    Check(
        "children_lie_within_parents",
        "communities",
        ("communities",),
        True,
        "Members of a child are members of its parent; parents and children name each other.",
        # Not list_has_all: it reads a parent's members again for each child.
        "WITH members AS (SELECT community, unnest(entity_ids) AS member FROM communities), "
        "children AS (SELECT community, unnest(children) AS child FROM communities) "
        "SELECT community, parent, 'member is not in the parent' AS problem FROM "
        "(SELECT DISTINCT c.community, c.parent FROM members m JOIN communities c USING (community) "
        "ANTI JOIN members p ON p.community = c.parent AND p.member = m.member WHERE c.parent <> -1) "
        "UNION ALL SELECT community, parent, 'parent does not list it' FROM communities c "
        "ANTI JOIN children k ON k.community = c.parent AND k.child = c.community WHERE c.parent <> -1 "
        "UNION ALL SELECT k.child, k.community, 'child names another parent' FROM children k "
        "ANTI JOIN communities c ON c.community = k.child AND c.parent = k.community",
        _REFRESH,
    ),
    Check(
        "communities_have_the_members_listed",
        "community_members",
        ("communities", "community_members"),
        True,
        "A community's entity_ids are its rows in community_members.",
        "WITH listed AS (SELECT community, unnest(entity_ids) AS entity_id FROM communities) "
        "SELECT community, entity_id, 'not in community_members' AS problem FROM "
        "(SELECT community, level, unnest(entity_ids) AS entity_id FROM communities) "
        "ANTI JOIN community_members USING (community, level, entity_id) "
        "UNION ALL SELECT community, entity_id, 'not in entity_ids' FROM community_members "
        "ANTI JOIN listed USING (community, entity_id)",
        _REFRESH,
    ),
    Check(
        "nothing_stems_from_a_gone_document",
        "embeddings",
        (
            "documents",
            "text_units",
            "entity_mentions",
            "relationship_mentions",
            "covariates",
            "entities",
            "communities",
            "community_reports",
            "citations",
            "embeddings",
            "index_errors",
            "batch_state",
        ),
        True,
        "Every row belongs to an existing document.",
        "SELECT 'documents' AS table_name, id FROM documents ANTI JOIN batch_state USING (batch) "
        "UNION ALL SELECT 'text_units', t.id FROM text_units t ANTI JOIN documents d ON d.id = t.document_id "
        + "".join(
            f"UNION ALL SELECT '{name}', m.id FROM {name} m ANTI JOIN text_units t ON t.id = m.text_unit_id "
            for name in ("entity_mentions", "relationship_mentions", "covariates")
        )
        + "UNION ALL SELECT 'community_reports', id FROM community_reports ANTI JOIN communities USING (community) "
        "UNION ALL SELECT 'citations', c.report_id FROM citations c "
        "ANTI JOIN community_reports r ON r.id = c.report_id "
        "UNION ALL SELECT 'index_errors', source FROM index_errors "
        "WHERE stage <> 'scan' AND batch NOT IN (SELECT batch FROM batch_state) "
        "UNION ALL SELECT 'embeddings', id FROM embeddings ANTI JOIN text_units USING (id) "
        "ANTI JOIN entities USING (id) ANTI JOIN community_reports USING (id)",
        _REINDEX,
    ),
    Check(
        "everything_searchable_has_an_embedding",
        "embeddings",
        ("text_units", "entities", "community_reports", "embeddings", "index_errors"),
        True,
        "Every text unit, every entity with a relationship and every community report has a vector, or a row of "
        "index_errors, if there are any vectors: without an embedding model there are none.",
        "SELECT kind, id FROM (SELECT 'text_unit' AS kind, id FROM text_units "
        "UNION ALL SELECT 'entity', id FROM entities WHERE degree > 0 "
        "UNION ALL SELECT 'community_report', id FROM community_reports) ANTI JOIN embeddings USING (kind, id) "
        "ANTI JOIN (SELECT source AS id FROM index_errors WHERE stage = 'embed') USING (id) "
        "WHERE EXISTS (FROM embeddings)",
        _REFRESH,
    ),
    Check(
        "vectors_are_comparable",
        "embeddings",
        ("embeddings",),
        True,
        "All vectors are of one model and one length.",
        "WITH kinds AS (SELECT model, len(vector) AS dimensions, count(*) AS vectors, min(id) AS example "
        "FROM embeddings GROUP BY ALL) FROM kinds WHERE (SELECT count(*) FROM kinds) > 1",
        "Launch the job update_index. If the check still fails, delete these rows from embeddings in working.duckdb "
        "first: the next refresh makes them again.",
    ),
    Check(
        "text_units_are_extracted",
        "entities",
        ("text_units",),
        False,
        "Every text unit has been extracted.",
        "SELECT id, batch, document_id, ordinal FROM text_units WHERE extractor IS NULL",
        "Materialize entity_mentions of the batches named: only their open text units are extracted.",
    ),
    Check(
        "every_community_has_a_report",
        "community_reports",
        ("communities", "community_reports"),
        True,
        "There is exactly one report per community of two or more members.",
        "SELECT c.community, count(r.id) AS reports FROM communities c "
        "LEFT JOIN community_reports r USING (community) "
        "WHERE c.size > 1 OR r.id IS NOT NULL GROUP BY ALL HAVING reports <> 1",
        _REFRESH,
    ),
    Check(
        "text_units_have_mentions",
        "entity_mentions",
        ("text_units", "entity_mentions"),
        False,
        "Every text unit names at least one entity.",
        "SELECT t.id, t.batch, t.document_id, t.ordinal FROM text_units t "
        "WHERE t.id NOT IN (SELECT text_unit_id FROM entity_mentions)",
        "Check these text units: tables of numbers and boilerplate contain no names; other text may need a model.",
    ),
    Check(
        "entities_have_descriptions",
        "entities",
        ("entities",),
        False,
        "Every entity has a description.",
        "SELECT id, title FROM entities WHERE coalesce(description, '') = ''",
        "Usually these names occur only in tables or lists; they can be ignored.",
    ),
    Check(
        "no_hub_dominates",
        "entities",
        ("entities", "text_units"),
        False,
        "No entity is named in more than 30 % of the text units.",
        "SELECT id, title, frequency FROM entities, (SELECT count(*) AS n FROM text_units) "
        "WHERE n >= 100 AND frequency > 0.3 * n",
        "This is expected for the subject of the whole corpus; if it is boilerplate, remove it from the input.",
    ),
    Check(
        "titles_are_distinct",
        "entities",
        ("entities",),
        False,
        "No two titles differ in punctuation, spaces and accents only.",
        "SELECT regexp_replace(strip_accents(title_key), '[^\\p{L}\\p{N}]', '', 'g') AS letters, "
        "list(title ORDER BY title) AS titles "
        "FROM entities GROUP BY 1 HAVING count(*) > 1 AND letters <> ''",
        "Decide with `graphrag-assets resolve accept` whether they are one, then run `graphrag-assets index`.",
    ),
    Check(
        "claims_are_about_entities",
        "covariates",
        ("covariates", "entities", "entity_aliases"),
        False,
        "The subject of every claim is an entity.",
        "SELECT c.id, c.subject_id FROM covariates c JOIN resolved_claims r USING (id) "
        "WHERE r.subject_entity_id IS NULL AND EXISTS (FROM entities)",
        "Such claims are searchable by text, but not through their subject. An alias may connect them.",
    ),
    Check(
        "citations_resolve",
        "citations",
        ("citations", "text_units", "covariates", "entities", "relationships", "community_reports"),
        False,
        "Every citation of a report refers to a row that it was written from.",
        "SELECT report_id, table_name, human_readable_id FROM citations WHERE cited_id IS NULL "
        "OR cited_id NOT IN (SELECT id FROM entities UNION ALL SELECT id FROM relationships "
        "UNION ALL SELECT id FROM covariates UNION ALL SELECT id FROM community_reports "
        "UNION ALL SELECT id FROM text_units)",
        "Such citations are marked [unresolved: …] in the report. Launch the job update_index; to request all reports "
        "again, with rerun: REPORTS and bypass_cache: true.",
    ),
    Check(
        "documents_have_a_yield",
        "entities",
        ("documents", "text_units", "entity_mentions"),
        False,
        "Every document yields text units, and an entity for every 500 tokens.",
        "SELECT d.id, d.source, d.title, d.n_tokens, count(DISTINCT t.id) AS text_units, "
        "count(DISTINCT m.title_key) AS entities FROM documents d LEFT JOIN text_units t ON t.document_id = d.id "
        "LEFT JOIN entity_mentions m ON m.document_id = d.id GROUP BY ALL "
        "HAVING text_units = 0 OR entities < d.n_tokens // 500",
        "Check these documents: lists, tables and other languages yield little without a language model.",
    ),
)
