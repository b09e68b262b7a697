-- Traversal of relationships. A recursive query reads all edges at each step; one join per step reads only those met.

CREATE OR REPLACE MACRO neighbors(title, hops := 1) AS TABLE
WITH _g_neighbors AS MATERIALIZED (SELECT title AS _g_title, hops AS _g_hops),
h0 AS MATERIALIZED (
    FROM own.entities_called((SELECT CASE WHEN g._g_hops BETWEEN 1 AND 4 THEN g._g_title
                                      ELSE error('neighbors: hops must be 1 to 4.') END FROM _g_neighbors g))
),
{hops}
met AS MATERIALIZED (
    FROM h1 UNION ALL FROM h2 UNION ALL FROM h3 UNION ALL FROM h4
), named AS MATERIALIZED (
    SELECT n.human_readable_id, n.title, n.type, n.degree
    FROM (SELECT m.entity FROM met m UNION SELECT m.best.via FROM met m) m JOIN own.entities n ON n.human_readable_id = m.entity
)
SELECT m.hop, e.title, e.type, e.degree, v.title AS via, r.type AS relationship_type, m.best.weight AS weight, r.description,
       e.human_readable_id, m.best.relationship AS relationship_number
FROM met m
JOIN named e ON e.human_readable_id = m.entity
JOIN named v ON v.human_readable_id = m.best.via
JOIN own.relationships r ON r.human_readable_id = m.best.relationship
ORDER BY m.hop, m.best.weight DESC, e.human_readable_id;
COMMENT ON MACRO TABLE neighbors IS
    'The entities up to so many hops (1 to 4) away, nearest first, each with the strongest relationship that leads there from one hop nearer (via).';

-- For path_between: the way with one step more.
CREATE MACRO own.longer_way(way, node, relationship, weight) AS {
    'nodes': list_append(way.nodes, node),
    'relationships': list_append(way.relationships, relationship),
    'weight': way.weight + weight
};

-- From both ends in turn, until they meet: f1, g1, f2, … are the entities n hops from a and from b, each with the
-- heaviest of the shortest ways to it. The search stops where they meet (m1, m2, …).
CREATE OR REPLACE MACRO path_between(a, b, max_hops := 4) AS TABLE
WITH _g_path AS MATERIALIZED (SELECT a AS _g_a, b AS _g_b, max_hops AS _g_hops),
f0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::BIGINT[], 'weight': 0::DOUBLE} AS way
    FROM own.entities_called((SELECT CASE WHEN p._g_hops BETWEEN 1 AND 6 THEN p._g_a
                                      ELSE error('path_between: max_hops must be 1 to 6.') END FROM _g_path p)) c
), g0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::BIGINT[], 'weight': 0::DOUBLE} AS way
    FROM own.entities_called((SELECT p._g_b FROM _g_path p)) c
), m0 AS MATERIALIZED (
    SELECT f.way AS there, g.way AS back FROM f0 f JOIN g0 g ON g.entity = f.entity
),
{steps}
steps AS MATERIALIZED (
    SELECT unnest(list_concat(m.there.relationships, list_reverse(m.back.relationships))) AS relationship,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[:-2]) AS near,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[2:]) AS far,
           unnest(range(1, len(m.there.relationships) + len(m.back.relationships) + 1)) AS step
    FROM m6 m
)
SELECT s.step, n.title AS "from", r.type AS relationship_type, r.description, t.title AS "to", r.weight, s.relationship AS relationship_number
FROM steps s
JOIN own.relationships r ON r.human_readable_id = s.relationship
JOIN own.entities n ON n.human_readable_id = s.near
JOIN own.entities t ON t.human_readable_id = s.far
WHERE r.human_readable_id IN (SELECT o.relationship FROM steps o)
  AND n.human_readable_id IN (SELECT o.near FROM steps o) AND t.human_readable_id IN (SELECT o.far FROM steps o)
ORDER BY s.step;
COMMENT ON MACRO TABLE path_between IS
    'The shortest way from one entity to another, step by step; of several the one with the greatest weight. No rows: none within max_hops (1 to 6). A call for each row of a table costs a search for each: take a few.';

-- The lineage of any row, down to the documents.

CREATE OR REPLACE MACRO explain_row(table_name, id) AS TABLE
WITH RECURSIVE _g_explain_row AS MATERIALIZED (SELECT lower(table_name) AS _g_table, id::VARCHAR AS _g_id),
kinds(place, kind, one) AS (
    VALUES (0, 'llm_calls', 'llm_call'), (1, 'embeddings', 'embedding'), (2, 'community_reports', 'community_report'),
           (3, 'communities', 'community'), (4, 'entities', 'entity'), (5, 'relationships', 'relationship'),
           (6, 'entity_mentions', 'entity_mention'), (7, 'relationship_mentions', 'relationship_mention'),
           (8, 'covariates', 'covariate'), (9, 'text_units', 'text_unit'), (10, 'documents', 'document')
), lines AS MATERIALIZED (
    SELECT 'documents' AS kind, d.human_readable_id AS number, d.id, d.title || ' (' || d.source || ')' AS says,
           NULL::BIGINT AS start_char, NULL::BIGINT AS end_char FROM own.documents d
    UNION ALL SELECT 'text_units', t.human_readable_id, t.id, t.text, t.start_char, t.end_char FROM own.text_units t
    UNION ALL SELECT 'covariates', c.human_readable_id, c.id, c.description, NULL, NULL FROM own.covariates c
    UNION ALL SELECT 'relationship_mentions', NULL, m.id, m.description, NULL, NULL FROM own.relationship_mentions m
    UNION ALL SELECT 'entity_mentions', NULL, m.id, m.title, NULL, NULL FROM own.entity_mentions m
    UNION ALL SELECT 'relationships', r.human_readable_id, r.id, r.source || ' – ' || r.target, NULL, NULL
              FROM own.relationships r
    UNION ALL SELECT 'entities', e.human_readable_id, e.id, e.title, NULL, NULL FROM own.entities e
    UNION ALL SELECT 'communities', c.human_readable_id, c.id, c.title, NULL, NULL FROM own.communities c
    UNION ALL SELECT 'community_reports', r.human_readable_id, r.id, r.title, NULL, NULL FROM own.community_reports r
    UNION ALL SELECT 'embeddings', e.number, e.id, 'embedded by ' || e.model, NULL, NULL FROM own.embeddings e
    UNION ALL SELECT 'llm_calls', NULL, l.key, l.task || ' by ' || l.model, NULL, NULL FROM own.llm_calls l
), made AS MATERIALIZED (  -- from which row (part, of its table of_kind) each was made directly
    SELECT 'text_units' AS kind, t.id, 'documents' AS of_kind, t.document_id AS part FROM own.text_units t
    UNION ALL SELECT 'covariates', c.id, 'text_units', c.text_unit_id FROM own.covariates c
    UNION ALL SELECT 'relationship_mentions', m.id, 'text_units', m.text_unit_id FROM own.relationship_mentions m
    UNION ALL SELECT 'entity_mentions', m.id, 'text_units', m.text_unit_id FROM own.entity_mentions m
    UNION ALL SELECT 'relationships', r.id, 'relationship_mentions', m.id
              FROM own.relationships r JOIN own.relationship_mentions m ON m.relationship_number = r.human_readable_id
    UNION ALL SELECT 'entities', e.id, 'entity_mentions', m.id
              FROM own.entities e JOIN own.entity_mentions m ON m.entity_number = e.human_readable_id
    UNION ALL SELECT 'communities', c.id, 'entities', unnest(c.entity_ids) FROM own.communities c
    UNION ALL SELECT 'communities', c.id, 'relationships', unnest(c.relationship_ids) FROM own.communities c
    UNION ALL SELECT 'community_reports', r.id, 'communities', c.id
              FROM own.community_reports r JOIN own.communities c ON c.community = r.community
    UNION ALL SELECT 'community_reports', r.id, 'covariates', v.id
              FROM own.community_reports r
              JOIN own.community_members m ON m.community = r.community AND m.level = r.level
              JOIN own.covariates v ON v.subject_number = m.entity_number
    UNION ALL SELECT 'embeddings', e.id, CASE e.kind WHEN 'text_unit' THEN 'text_units' WHEN 'entity' THEN 'entities'
              ELSE 'community_reports' END, e.id FROM own.embeddings e
    UNION ALL SELECT 'llm_calls', l.key, 'text_units', l.text_unit_id FROM own.llm_calls l
), asked AS MATERIALIZED (
    SELECT coalesce(k.kind, error('explain_row: rows of ' || coalesce(g._g_table, 'NULL')
               || ' are not explained. Tables: ' || (SELECT string_agg(o.kind, ', ' ORDER BY o.place DESC) FROM kinds o)
               || '.')) AS kind, g._g_id AS key
    FROM _g_explain_row g LEFT JOIN kinds k ON g._g_table IN (k.kind, k.one)
), chain AS (
    SELECT l.kind, l.id FROM asked a JOIN lines l ON l.kind = a.kind AND a.key IN (l.id, l.number::VARCHAR)
    UNION SELECT m.of_kind, m.part FROM chain c JOIN made m ON m.kind = c.kind AND m.id = c.id
), explained AS (
    SELECT c.kind, c.id, coalesce(list(m.part ORDER BY m.of_kind, m.part) FILTER (m.part IS NOT NULL), []) AS made_from
    FROM chain c LEFT JOIN made m ON m.kind = c.kind AND m.id = c.id GROUP BY c.kind, c.id
)
SELECT dense_rank() OVER (ORDER BY k.place) AS step, l.kind AS table_name, l.number AS human_readable_id, l.id, l.says,
       x.made_from, l.start_char, l.end_char
FROM explained x JOIN lines l ON l.kind = x.kind AND l.id = x.id JOIN kinds k ON k.kind = l.kind
ORDER BY k.place, l.number, l.id;
COMMENT ON MACRO TABLE explain_row IS
    'What a row, given by table and id or human_readable_id, was made from: every row down to the documents, each with the ids of those it was made from directly. Recursive, and reads all rows: for one at a time.';
