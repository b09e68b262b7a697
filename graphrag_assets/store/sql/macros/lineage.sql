-- The lineage of any row, down to the documents.

CREATE OR REPLACE MACRO explain_row(table_name, id) AS TABLE
WITH _g_explain_row AS MATERIALIZED (SELECT table_name AS _g_table, id AS _g_id),
asked AS MATERIALIZED (
    SELECT DISTINCT coalesce(k.kind, error(
               'explain_row: rows of ' || coalesce(g._g_table, 'NULL') || ' are not explained. Tables: '
               || 'documents, text_units, entity_mentions, relationship_mentions, covariates, entities, '
               || 'relationships, communities, community_reports, embeddings, llm_calls.')) AS kind,
           g._g_id::VARCHAR AS key
    FROM _g_explain_row g
    LEFT JOIN (VALUES ('documents', 'document'), ('text_units', 'text_unit'), ('entity_mentions', 'entity_mention'),
               ('relationship_mentions', 'relationship_mention'), ('covariates', 'claim'), ('covariates', 'claims'),
               ('covariates', 'covariate'), ('entities', 'entity'), ('relationships', 'relationship'),
               ('communities', 'community'), ('community_reports', 'community_report'), ('embeddings', 'embedding'),
               ('llm_calls', 'llm_call')) k(kind, one) ON lower(g._g_table) IN (k.kind, k.one)
), calls AS MATERIALIZED (
    SELECT l.key, l.task, l.model, l.text_unit_id FROM asked a JOIN own.llm_calls l ON l.key = a.key AND a.kind = 'llm_calls'
), embedded AS MATERIALIZED (
    SELECT e.kind, e.id, e.number, e.model
    FROM asked a JOIN own.embeddings e ON e.id = a.key AND a.kind = 'embeddings'
), wanted AS MATERIALIZED (
    FROM asked
    UNION ALL SELECT 'text_units', c.text_unit_id FROM calls c
    UNION ALL SELECT CASE e.kind WHEN 'text_unit' THEN 'text_units' WHEN 'entity' THEN 'entities'
                     ELSE 'community_reports' END, e.id FROM embedded e
), numbered AS MATERIALIZED (  -- rows are fetched by number alone: that reads a few blocks, ids are found in all
    SELECT w.kind, try_cast(w.key AS BIGINT) AS number FROM wanted w
    {by_ids}
), reports AS MATERIALIZED (
    SELECT r.human_readable_id, r.id, r.title, r.community FROM own.community_reports r
    WHERE r.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'community_reports')
), groups AS MATERIALIZED (
    SELECT c.human_readable_id, c.id, c.title, c.community, c.entity_ids, c.relationship_ids
    FROM own.communities c
    WHERE c.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'communities')
    UNION
    SELECT c.human_readable_id, c.id, c.title, c.community, c.entity_ids, c.relationship_ids
    FROM own.communities c WHERE c.community IN (SELECT r.community FROM reports r)
), things AS MATERIALIZED (
    SELECT e.human_readable_id, e.id, e.title
    FROM own.entities e
    WHERE e.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'entities')
    UNION
    SELECT e.human_readable_id, e.id, e.title FROM own.entities e WHERE e.id IN (SELECT unnest(g.entity_ids) FROM groups g)
), ties AS MATERIALIZED (
    SELECT r.human_readable_id, r.id, r.source || ' – ' || r.target AS title
    FROM own.relationships r
    WHERE r.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'relationships')
    UNION
    SELECT r.human_readable_id, r.id, r.source || ' – ' || r.target
    FROM own.relationships r WHERE r.id IN (SELECT unnest(g.relationship_ids) FROM groups g)
), claims AS MATERIALIZED (
    SELECT c.human_readable_id, c.id, c.description, c.text_unit_id
    FROM own.covariates c
    WHERE c.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'covariates')
    UNION
    SELECT c.human_readable_id, c.id, c.description, c.text_unit_id
    FROM own.covariates c WHERE EXISTS (FROM reports) AND c.subject_number IN (SELECT t.human_readable_id FROM things t)
), names AS MATERIALIZED (
    SELECT m.id, m.title, m.text_unit_id, m.entity_number
    FROM own.entity_mentions m WHERE m.id IN (SELECT w.key FROM wanted w WHERE w.kind = 'entity_mentions')
    UNION
    SELECT m.id, m.title, m.text_unit_id, m.entity_number
    FROM own.entity_mentions m WHERE m.entity_number IN (SELECT t.human_readable_id FROM things t)
), statements AS MATERIALIZED (
    SELECT m.id, m.description, m.text_unit_id, m.relationship_number
    FROM own.relationship_mentions m WHERE m.id IN (SELECT w.key FROM wanted w WHERE w.kind = 'relationship_mentions')
    UNION
    SELECT m.id, m.description, m.text_unit_id, m.relationship_number
    FROM own.relationship_mentions m WHERE m.relationship_number IN (SELECT t.human_readable_id FROM ties t)
), units AS MATERIALIZED (
    SELECT t.human_readable_id, t.id, t.document_id, t.start_char, t.end_char, t.text
    FROM own.text_units t
    WHERE t.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'text_units')
    UNION
    SELECT t.human_readable_id, t.id, t.document_id, t.start_char, t.end_char, t.text
    FROM own.text_units t WHERE t.id IN (
        SELECT n.text_unit_id FROM names n UNION SELECT s.text_unit_id FROM statements s
        UNION SELECT c.text_unit_id FROM claims c)
), papers AS MATERIALIZED (
    SELECT d.human_readable_id, d.id, d.title, d.source
    FROM own.documents d
    WHERE d.human_readable_id IN (SELECT n.number FROM numbered n WHERE n.kind = 'documents')
    UNION
    SELECT d.human_readable_id, d.id, d.title, d.source
    FROM own.documents d WHERE d.id IN (SELECT u.document_id FROM units u)
), explained AS (
    SELECT 0 AS place, 'llm_calls' AS kind, NULL::BIGINT AS number, c.key AS row_id, c.task || ' by ' || c.model AS says,
           [c.text_unit_id] AS made_from, NULL::BIGINT AS start_char, NULL::BIGINT AS end_char FROM calls c
    UNION ALL SELECT 0, 'embeddings', e.number, e.id, 'embedded by ' || e.model, [e.id], NULL, NULL FROM embedded e
    UNION ALL SELECT 1, 'community_reports', r.human_readable_id, r.id, r.title,
           list_concat((SELECT list(g.id) FROM groups g WHERE g.community = r.community),
                       (SELECT list(c.id ORDER BY c.id) FROM claims c)), NULL, NULL FROM reports r
    UNION ALL SELECT 2, 'communities', g.human_readable_id, g.id, g.title,
           list_concat(g.entity_ids, g.relationship_ids), NULL, NULL FROM groups g
    UNION ALL SELECT 3, 'entities', t.human_readable_id, t.id, t.title,
           (SELECT list(n.id ORDER BY n.id) FROM names n WHERE n.entity_number = t.human_readable_id), NULL, NULL
           FROM things t
    UNION ALL SELECT 4, 'relationships', t.human_readable_id, t.id, t.title,
           (SELECT list(s.id ORDER BY s.id) FROM statements s WHERE s.relationship_number = t.human_readable_id),
           NULL, NULL FROM ties t
    UNION ALL SELECT 5, 'entity_mentions', NULL, n.id, n.title, [n.text_unit_id], NULL, NULL FROM names n
    UNION ALL SELECT 6, 'relationship_mentions', NULL, s.id, s.description, [s.text_unit_id], NULL, NULL
           FROM statements s
    UNION ALL SELECT 7, 'covariates', c.human_readable_id, c.id, c.description, [c.text_unit_id], NULL, NULL
           FROM claims c
    UNION ALL SELECT 8, 'text_units', u.human_readable_id, u.id, u.text, [u.document_id], u.start_char, u.end_char
           FROM units u
    UNION ALL SELECT 9, 'documents', p.human_readable_id, p.id, p.title || ' (' || p.source || ')', []::VARCHAR[],
           NULL, NULL FROM papers p
)
SELECT dense_rank() OVER (ORDER BY x.place) AS step, x.kind AS table_name, x.number AS human_readable_id, x.row_id AS id,
       x.says, x.made_from, x.start_char, x.end_char
FROM explained x ORDER BY x.place, x.number, x.row_id;
COMMENT ON MACRO TABLE explain_row IS
    'What a row, given by table and id or human_readable_id, was made from: every row down to the documents, each with the ids of those it was made from directly.';
