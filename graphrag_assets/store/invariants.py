"""What must hold of the working database, as queries for the rows that break it.

Each invariant names the asset it belongs to, whether it blocks publication, and what to do when it fails.
"""

from dataclasses import dataclass

from graphrag_assets.store.schema import WORKING


@dataclass(frozen=True, slots=True)
class Invariant:
    """`query` returns the offending rows; none means that it holds.

    It is checked right after `asset` is written, so it must not look at tables that come later.
    """

    name: str
    asset: str
    blocking: bool
    statement: str
    query: str
    cure: str


_REINDEX = "Materialise the batches named, then everything downstream."
_REFRESH = "Materialise entities and everything downstream."


def _duplicates(name: str, key: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{column}"' for column in key)
    shown = ", ".join(f'"{column}"::VARCHAR' for column in key)
    return (
        f"SELECT '{name}' AS table_name, concat_ws(' · ', {shown}) AS key, count(*) AS n "
        f'FROM "{name}" GROUP BY {columns} HAVING n > 1'
    )


_LISTED = """
SELECT '{table}' AS table_name, t.id, u.ref AS missing FROM (SELECT id, unnest({column}) AS ref FROM {table}) u
JOIN {table} t USING (id) WHERE u.ref NOT IN (SELECT id FROM {target})
"""

INVARIANTS = (
    Invariant(
        "keys_are_unique",
        "embeddings",
        True,
        "No table has two rows of one key.",
        " UNION ALL ".join(_duplicates(t.name, t.key) for t in WORKING if t.name != "index_runs"),
        _REINDEX,
    ),
    Invariant(
        "relationship_ends_are_entities",
        "relationships",
        True,
        "Source and target of every relationship are entities.",
        "SELECT id, source, target FROM relationships WHERE source_id NOT IN (SELECT id FROM entities) "
        "OR target_id NOT IN (SELECT id FROM entities)",
        _REFRESH,
    ),
    Invariant(
        "references_exist",
        "communities",
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
    Invariant(
        "one_community_per_entity_and_level",
        "community_members",
        True,
        "Every entity is in exactly one community at each level.",
        "SELECT e.id AS entity_id, l.level, count(m.community) AS n FROM entities e "
        "CROSS JOIN (SELECT DISTINCT level FROM community_members) l "
        "LEFT JOIN community_members m ON m.entity_id = e.id AND m.level = l.level GROUP BY ALL HAVING n <> 1 "
        "UNION ALL SELECT entity_id, level, 0 FROM community_members "
        "WHERE entity_id NOT IN (SELECT id FROM entities) "
        "UNION ALL SELECT id, 0, 0 FROM entities WHERE NOT EXISTS (FROM community_members)",
        _REFRESH,
    ),
    Invariant(
        "children_lie_within_parents",
        "communities",
        True,
        "Members of a child are members of its parent; parents and children name each other.",
        "SELECT c.community, c.parent, 'member is not in the parent' AS problem FROM communities c "
        "JOIN communities p ON p.community = c.parent WHERE NOT list_has_all(p.entity_ids, c.entity_ids) "
        "UNION ALL SELECT c.community, c.parent, 'parent does not list it' FROM communities c "
        "LEFT JOIN communities p ON p.community = c.parent "
        "WHERE c.parent <> -1 AND NOT coalesce(list_contains(p.children, c.community), false) "
        "UNION ALL SELECT k.child, k.community, 'child names another parent' "
        "FROM (SELECT community, unnest(children) AS child FROM communities) k "
        "LEFT JOIN communities c ON c.community = k.child WHERE c.parent IS DISTINCT FROM k.community",
        _REFRESH,
    ),
    Invariant(
        "nothing_stems_from_a_gone_document",
        "embeddings",
        True,
        "Every row goes back to a document that exists.",
        "SELECT 'text_units' AS table_name, id FROM text_units WHERE document_id NOT IN (SELECT id FROM documents) "
        + "".join(
            f"UNION ALL SELECT '{name}', id FROM {name} WHERE text_unit_id NOT IN (SELECT id FROM text_units) "
            for name in ("entity_mentions", "relationship_mentions", "covariates")
        )
        + "UNION ALL SELECT 'community_reports', id FROM community_reports "
        "WHERE community NOT IN (SELECT community FROM communities) "
        "UNION ALL SELECT 'embeddings', id FROM embeddings WHERE id NOT IN (SELECT id FROM text_units "
        "UNION ALL SELECT id FROM entities UNION ALL SELECT id FROM community_reports)",
        _REINDEX,
    ),
    Invariant(
        "every_community_has_a_report",
        "community_reports",
        True,
        "There is exactly one report per community.",
        "SELECT c.community, count(r.id) AS reports FROM communities c LEFT JOIN community_reports r USING (community) "
        "GROUP BY ALL HAVING reports <> 1",
        "Materialise community_reports.",
    ),
    Invariant(
        "text_units_have_mentions",
        "entity_mentions",
        False,
        "Every text unit names at least one entity.",
        "SELECT t.id, t.batch, t.document_id, t.ordinal FROM text_units t "
        "WHERE t.id NOT IN (SELECT text_unit_id FROM entity_mentions)",
        "Look at these text units: tables of numbers and boilerplate name nothing; other text may need a model.",
    ),
    Invariant(
        "entities_have_descriptions",
        "entities",
        False,
        "Every entity has a description.",
        "SELECT id, title FROM entities WHERE coalesce(description, '') = ''",
        "Usually names that only tables or lists mention; nothing is lost but context.",
    ),
    Invariant(
        "no_hub_dominates",
        "entities",
        False,
        "No entity is named in more than 30 % of the text units.",
        "SELECT id, title, frequency FROM entities, (SELECT count(*) AS n FROM text_units) "
        "WHERE n >= 50 AND frequency > 0.3 * n",
        "If it is the subject of the whole corpus, this is right; if it is boilerplate, remove it from the input.",
    ),
    Invariant(
        "titles_are_distinct",
        "entities",
        False,
        "No two titles differ in punctuation and spaces only.",
        "SELECT regexp_replace(title_key, '[^\\p{L}\\p{N}]', '', 'g') AS letters, list(title ORDER BY title) AS titles "
        "FROM entities GROUP BY 1 HAVING count(*) > 1 AND letters <> ''",
        "Add an alias to entity_aliases (rule 'user') and materialise entities.",
    ),
    Invariant(
        "claims_are_about_entities",
        "covariates",
        False,
        "The subject of every claim is an entity.",
        "SELECT c.id, c.subject_id FROM covariates c JOIN resolved_claims r USING (id) "
        "WHERE r.subject_entity_id IS NULL AND EXISTS (FROM entities)",
        "Such claims are searchable by text, but not through their subject. An alias may connect them.",
    ),
    Invariant(
        "citations_resolve",
        "citations",
        False,
        "Everything a report cites exists.",
        "SELECT report_id, table_name, human_readable_id FROM citations WHERE cited_id IS NULL",
        "Materialise community_reports.",
    ),
    Invariant(
        "documents_yield_text_units",
        "documents",
        False,
        "Every document yields at least one text unit.",
        "SELECT id, source, title FROM documents WHERE id NOT IN (SELECT document_id FROM text_units)",
        "Look at these documents: they hold no words.",
    ),
)
