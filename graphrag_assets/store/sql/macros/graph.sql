-- Traversal of relationships, one hop after the other. The columns of the recursive tables are qualified: an argument may
-- have their names.

CREATE OR REPLACE MACRO neighbors(title, hops := 1) AS TABLE
WITH RECURSIVE _g_neighbors AS MATERIALIZED (SELECT title AS _g_title, hops AS _g_hops),
met(entity, hop, via, relationship, weight) USING KEY (entity) AS (
    SELECT c.entity, 0::BIGINT, NULL::BIGINT, NULL::BIGINT, NULL::DOUBLE
    FROM this.entities_called((SELECT CASE WHEN g._g_hops BETWEEN 1 AND 4 THEN g._g_title
                                     ELSE error('neighbors: hops must be 1 to 4.') END FROM _g_neighbors g)) c
    UNION ALL
    SELECT n.entity, n.hop, n.via, n.relationship, n.weight FROM (
        SELECT e.neighbor AS entity, m.hop + 1 AS hop, m.entity AS via, e.relationship, e.weight, row_number() OVER (
                   PARTITION BY e.neighbor ORDER BY e.weight DESC, e.relationship) AS place
        FROM met m JOIN this.edges e ON e.entity = m.entity
        WHERE m.hop < (SELECT g._g_hops FROM _g_neighbors g)
          AND e.neighbor NOT IN (SELECT b.entity FROM recurring.met b)
    ) n WHERE n.place = 1
), named AS MATERIALIZED (
    SELECT n.human_readable_id, n.title, n.type, n.degree
    FROM (SELECT m.entity FROM met m) m JOIN this.entities n ON n.human_readable_id = m.entity
)
SELECT m.hop, e.title, e.type, e.degree, v.title AS via, r.type AS relationship_type, m.weight, r.description,
       e.human_readable_id, m.relationship AS relationship_number
FROM met m
JOIN named e ON e.human_readable_id = m.entity
JOIN named v ON v.human_readable_id = m.via
JOIN this.relationships r ON r.human_readable_id = m.relationship
ORDER BY m.hop, m.weight DESC, e.human_readable_id;
COMMENT ON MACRO TABLE neighbors IS
    'The entities up to so many hops (1 to 4) away, nearest first, each with the strongest relationship that leads there from one hop nearer (via).';

-- Each entity has the heaviest of the shortest ways to it. The search ends where it meets b.
CREATE OR REPLACE MACRO path_between(a, b, max_hops := 4) AS TABLE
WITH RECURSIVE _g_path AS MATERIALIZED (SELECT a AS _g_a, b AS _g_b, max_hops AS _g_hops),
goal AS MATERIALIZED (SELECT c.entity FROM this.entities_called((SELECT p._g_b FROM _g_path p)) c),
met(entity, nodes, relationships, weight) USING KEY (entity) AS (
    SELECT c.entity, [c.entity], []::BIGINT[], 0::DOUBLE
    FROM this.entities_called((SELECT CASE WHEN p._g_hops BETWEEN 1 AND 6 THEN p._g_a
                                     ELSE error('path_between: max_hops must be 1 to 6.') END FROM _g_path p)) c
    UNION ALL
    SELECT n.entity, n.nodes, n.relationships, n.weight FROM (
        SELECT e.neighbor AS entity, list_append(m.nodes, e.neighbor) AS nodes,
               list_append(m.relationships, e.relationship) AS relationships, m.weight + e.weight AS weight,
               row_number() OVER (PARTITION BY e.neighbor ORDER BY m.weight + e.weight DESC, e.relationship) AS place
        FROM met m JOIN this.edges e ON e.entity = m.entity
        WHERE len(m.relationships) < (SELECT p._g_hops FROM _g_path p)
          AND e.neighbor NOT IN (SELECT b.entity FROM recurring.met b)
          AND NOT EXISTS (SELECT b.entity FROM recurring.met b JOIN goal g ON g.entity = b.entity)
    ) n WHERE n.place = 1
), steps AS MATERIALIZED (
    SELECT unnest(m.relationships) AS relationship, unnest(m.nodes[:-2]) AS near, unnest(m.nodes[2:]) AS far,
           unnest(range(1, len(m.nodes))) AS step
    FROM met m JOIN goal g ON g.entity = m.entity
)
SELECT s.step, n.title AS "from", r.type AS relationship_type, r.description, t.title AS "to", r.weight, s.relationship AS relationship_number
FROM steps s
JOIN this.relationships r ON r.human_readable_id = s.relationship
JOIN this.entities n ON n.human_readable_id = s.near
JOIN this.entities t ON t.human_readable_id = s.far
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
           NULL::BIGINT AS start_char, NULL::BIGINT AS end_char FROM this.documents d
    UNION ALL SELECT 'text_units', t.human_readable_id, t.id, t.text, t.start_char, t.end_char FROM this.text_units t
    UNION ALL SELECT 'covariates', c.human_readable_id, c.id, c.description, NULL, NULL FROM this.covariates c
    UNION ALL SELECT 'relationship_mentions', NULL, m.id, m.description, NULL, NULL FROM this.relationship_mentions m
    UNION ALL SELECT 'entity_mentions', NULL, m.id, m.title, NULL, NULL FROM this.entity_mentions m
    UNION ALL SELECT 'relationships', r.human_readable_id, r.id, r.source || ' – ' || r.target, NULL, NULL
              FROM this.relationships r
    UNION ALL SELECT 'entities', e.human_readable_id, e.id, e.title, NULL, NULL FROM this.entities e
    UNION ALL SELECT 'communities', c.human_readable_id, c.id, c.title, NULL, NULL FROM this.communities c
    UNION ALL SELECT 'community_reports', r.human_readable_id, r.id, r.title, NULL, NULL FROM this.community_reports r
    UNION ALL SELECT 'embeddings', e.number, e.id, 'embedded by ' || e.model, NULL, NULL FROM this.embeddings e
    UNION ALL SELECT 'llm_calls', NULL, l.key, l.task || ' by ' || l.model, NULL, NULL FROM this.llm_calls l
), made AS MATERIALIZED (  -- from which row (part, of its table of_kind) each was made directly
    SELECT 'text_units' AS kind, t.id, 'documents' AS of_kind, t.document_id AS part FROM this.text_units t
    UNION ALL SELECT 'covariates', c.id, 'text_units', c.text_unit_id FROM this.covariates c
    UNION ALL SELECT 'relationship_mentions', m.id, 'text_units', m.text_unit_id FROM this.relationship_mentions m
    UNION ALL SELECT 'entity_mentions', m.id, 'text_units', m.text_unit_id FROM this.entity_mentions m
    UNION ALL SELECT 'relationships', r.id, 'relationship_mentions', m.id
              FROM this.relationships r JOIN this.relationship_mentions m ON m.relationship_number = r.human_readable_id
    UNION ALL SELECT 'entities', e.id, 'entity_mentions', m.id
              FROM this.entities e JOIN this.entity_mentions m ON m.entity_number = e.human_readable_id
    UNION ALL SELECT 'communities', c.id, 'entities', unnest(c.entity_ids) FROM this.communities c
    UNION ALL SELECT 'communities', c.id, 'relationships', unnest(c.relationship_ids) FROM this.communities c
    UNION ALL SELECT 'community_reports', r.id, 'communities', c.id
              FROM this.community_reports r JOIN this.communities c ON c.community = r.community
    UNION ALL SELECT 'community_reports', r.id, 'covariates', v.id
              FROM this.community_reports r
              JOIN this.community_members m ON m.community = r.community AND m.level = r.level
              JOIN this.covariates v ON v.subject_number = m.entity_number
    UNION ALL SELECT 'embeddings', e.id, CASE e.kind WHEN 'text_unit' THEN 'text_units' WHEN 'entity' THEN 'entities'
              ELSE 'community_reports' END, e.id FROM this.embeddings e
    UNION ALL SELECT 'llm_calls', l.key, 'text_units', l.text_unit_id FROM this.llm_calls l
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
