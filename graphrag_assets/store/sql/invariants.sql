-- What must hold of the index: a query for offending rows for each check. Above it: its name, its asset, whether it blocks
-- publication, what must hold, and what to do when there are such rows.

-- relationship_ends_are_entities of relationships, blocking: Source and target of every relationship are entities.
-- Launch the job update_index.
SELECT r.id, source, target FROM relationships r
LEFT JOIN entities s ON s.id = source_id AND s.title = source
LEFT JOIN entities t ON t.id = target_id AND t.title = target
WHERE s.id IS NULL OR t.id IS NULL

-- references_exist of communities, blocking: Every id in a list column is the id of a row.
-- Launch the job update_index.
WITH listed AS (
    SELECT 'entities' AS table_name, id, unnest(text_unit_ids) AS missing, 'text_unit' AS kind FROM entities
    UNION ALL SELECT 'relationships', id, unnest(text_unit_ids), 'text_unit' FROM relationships
    UNION ALL SELECT 'communities', id, unnest(text_unit_ids), 'text_unit' FROM communities
    UNION ALL SELECT 'communities', id, unnest(entity_ids), 'entity' FROM communities
    UNION ALL SELECT 'communities', id, unnest(relationship_ids), 'relationship' FROM communities
), present AS (
    SELECT id AS missing, 'text_unit' AS kind FROM text_units
    UNION ALL SELECT id, 'entity' FROM entities
    UNION ALL SELECT id, 'relationship' FROM relationships
)
SELECT table_name, id, missing FROM listed ANTI JOIN present USING (missing, kind)

-- entities_and_relationships_stand_in_text_units of relationships, blocking: Every entity and every relationship is mentioned in at least one text unit.
-- Launch the job update_index.
SELECT 'entities' AS table_name, id, title FROM entities WHERE len(coalesce(text_unit_ids, [])) = 0
UNION ALL SELECT 'relationships', id, source || ' – ' || target FROM relationships
WHERE len(coalesce(text_unit_ids, [])) = 0

-- one_community_per_entity_and_level of community_members, blocking: Every entity is in exactly one community at each level.
-- Launch the job update_index.
SELECT e.id AS entity_id, l.level, count(m.community) AS n
FROM entities e CROSS JOIN (SELECT DISTINCT level FROM community_members) l
LEFT JOIN community_members m ON m.entity_id = e.id AND m.level = l.level GROUP BY ALL HAVING n <> 1
UNION ALL SELECT m.entity_id, m.level, 0 FROM community_members m ANTI JOIN entities e ON e.id = m.entity_id
UNION ALL SELECT id, 0, 0 FROM entities WHERE NOT EXISTS (FROM community_members)

-- children_lie_within_parents of communities, blocking: Members of a child are members of its parent; parents and children name each other.
-- Launch the job update_index.
WITH members AS (SELECT community, unnest(entity_ids) AS member FROM communities),  -- list_has_all would read them again
children AS (SELECT community, unnest(children) AS child FROM communities)
SELECT DISTINCT c.community, c.parent, 'member is not in the parent' AS problem
FROM members m JOIN communities c USING (community)
ANTI JOIN members p ON p.community = c.parent AND p.member = m.member WHERE c.parent <> -1
UNION ALL SELECT community, parent, 'parent does not list it' FROM communities c
ANTI JOIN children k ON k.community = c.parent AND k.child = c.community WHERE c.parent <> -1
UNION ALL SELECT k.child, k.community, 'child names another parent' FROM children k
ANTI JOIN communities c ON c.community = k.child AND c.parent = k.community

-- communities_have_the_members_listed of community_members, blocking: A community's entity_ids are its rows in community_members.
-- Launch the job update_index.
WITH listed AS (SELECT community, level, unnest(entity_ids) AS entity_id FROM communities)
SELECT community, entity_id, 'not in community_members' AS problem
FROM listed ANTI JOIN community_members USING (community, level, entity_id)
UNION ALL SELECT community, entity_id, 'not in entity_ids'
FROM community_members ANTI JOIN listed USING (community, entity_id)

-- nothing_stems_from_a_gone_document of embeddings, blocking: Every row belongs to an existing document.
-- Launch the job update_index with which: ALL: paid answers come from the ledger.
SELECT 'documents' AS table_name, id FROM documents ANTI JOIN batch_state USING (batch)
UNION ALL SELECT 'text_units', t.id FROM text_units t ANTI JOIN documents d ON d.id = t.document_id
UNION ALL SELECT 'entity_mentions', m.id FROM entity_mentions m ANTI JOIN text_units t ON t.id = m.text_unit_id
UNION ALL SELECT 'relationship_mentions', m.id
FROM relationship_mentions m ANTI JOIN text_units t ON t.id = m.text_unit_id
UNION ALL SELECT 'covariates', m.id FROM covariates m ANTI JOIN text_units t ON t.id = m.text_unit_id
UNION ALL SELECT 'community_reports', id FROM community_reports ANTI JOIN communities USING (community)
UNION ALL SELECT 'citations', c.report_id FROM citations c ANTI JOIN community_reports r ON r.id = c.report_id
UNION ALL SELECT 'index_errors', source FROM index_errors
WHERE stage <> 'scan' AND batch NOT IN (SELECT batch FROM batch_state)
UNION ALL SELECT 'embeddings', id
FROM embeddings ANTI JOIN text_units USING (id) ANTI JOIN entities USING (id) ANTI JOIN community_reports USING (id)

-- everything_searchable_has_an_embedding of embeddings, blocking: Every text unit, every entity with a relationship and every community report has a vector, or a row of index_errors, if there are any vectors: without an embedding model there are none.
-- Launch the job update_index.
SELECT kind, id FROM (
    SELECT 'text_unit' AS kind, id FROM text_units UNION ALL SELECT 'entity', id FROM entities WHERE degree > 0
    UNION ALL SELECT 'community_report', id FROM community_reports
) ANTI JOIN embeddings USING (kind, id)
ANTI JOIN (SELECT source AS id FROM index_errors WHERE stage = 'embed') USING (id) WHERE EXISTS (FROM embeddings)

-- vectors_are_comparable of embeddings, blocking: All vectors are of one model and one length.
-- Launch the job update_index. If the check still fails, delete these rows from embeddings in working.duckdb first: the next refresh makes them again.
WITH kinds AS (
    SELECT model, len(vector) AS dimensions, count(*) AS vectors, min(id) AS example FROM embeddings GROUP BY ALL
)
FROM kinds WHERE (SELECT count(*) FROM kinds) > 1

-- text_units_are_extracted of entities: Every text unit has been extracted.
-- Launch the job update_index: only open text units are extracted.
SELECT id, batch, document_id, ordinal FROM text_units WHERE extractor IS NULL

-- every_community_has_a_report of community_reports, blocking: There is exactly one report per community of two or more members.
-- Launch the job update_index.
SELECT c.community, count(r.id) AS reports FROM communities c LEFT JOIN community_reports r USING (community)
WHERE c.size > 1 OR r.id IS NOT NULL GROUP BY ALL HAVING reports <> 1

-- claims_are_about_entities of covariates: The subject of every claim is an entity.
-- Such claims are searchable by text, but not through their subject. An alias may connect them.
SELECT c.id, c.subject_id FROM covariates c JOIN resolved_claims r USING (id)
WHERE r.subject_entity_id IS NULL AND EXISTS (FROM entities)

-- citations_resolve of citations: Every citation of a report refers to a row that it was written from.
-- Such citations are marked [unresolved: …] in the report. The next change of the community requests its report again.
SELECT report_id, table_name, human_readable_id FROM citations WHERE cited_id IS NULL OR cited_id NOT IN (
    SELECT id FROM entities UNION ALL SELECT id FROM relationships UNION ALL SELECT id FROM covariates
    UNION ALL SELECT id FROM community_reports UNION ALL SELECT id FROM text_units
)

-- documents_have_a_yield of entities: Every document yields text units, and an entity for every 500 tokens.
-- Check these documents: lists, tables and other languages yield little without a language model.
SELECT d.id, d.source, d.title, d.n_tokens, count(DISTINCT t.id) AS text_units, count(DISTINCT m.title_key) AS entities
FROM documents d LEFT JOIN text_units t ON t.document_id = d.id LEFT JOIN entity_mentions m ON m.document_id = d.id
GROUP BY ALL HAVING text_units = 0 OR entities < d.n_tokens // 500
