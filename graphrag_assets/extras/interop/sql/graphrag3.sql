-- The tables of GraphRAG 3 of the rows selected by select.sql; imported rows have their original ids.

CREATE OR REPLACE TEMP TABLE names AS
WITH rows AS (
    SELECT 'documents' AS table_name, human_readable_id AS number, id FROM documents
    UNION ALL SELECT 'text_units', human_readable_id, id FROM text_units
    UNION ALL SELECT 'entities', human_readable_id, id FROM entities
    UNION ALL SELECT 'relationships', human_readable_id, id FROM relationships
    UNION ALL SELECT 'covariates', human_readable_id, id FROM covariates
    UNION ALL SELECT 'communities', community, id FROM communities
    UNION ALL SELECT 'community_reports', community, id FROM community_reports
)
SELECT r.table_name, r.number, r.id AS own_id, coalesce(i.original_id, r.id) AS id
FROM rows r LEFT JOIN operations.imported_ids i ON i.table_name = r.table_name AND i.id = r.id;

-- Dates as GraphRAG asks its models for them.
CREATE OR REPLACE TEMP MACRO stated_date(d) AS
CASE WHEN d IS NULL THEN 'NONE' WHEN length(d) = 10 THEN d || 'T00:00:00' ELSE d END;

CREATE OR REPLACE TEMP VIEW unit_names AS
SELECT n.number, n.id FROM names n JOIN kept_units USING (number) WHERE table_name = 'text_units';
CREATE OR REPLACE TEMP VIEW entity_names_of AS
SELECT n.number, n.id FROM names n JOIN kept_entities USING (number) WHERE table_name = 'entities';
CREATE OR REPLACE TEMP VIEW relationship_names AS
SELECT n.number, n.id, n.own_id FROM names n JOIN kept_relationships USING (number) WHERE table_name = 'relationships';

CREATE OR REPLACE TEMP VIEW v3_documents AS
WITH units AS (
    SELECT t.document_id, list(n.id ORDER BY t.ordinal) AS text_unit_ids
    FROM text_units t JOIN unit_names n ON n.number = t.human_readable_id GROUP BY ALL
)
SELECT n.id, d.human_readable_id, d.title, d.text, coalesce(u.text_unit_ids, []) AS text_unit_ids, d.creation_date,
       d.raw_data::VARCHAR AS raw_data, d.document_date::VARCHAR AS document_date
FROM documents d
JOIN kept_documents k ON k.number = d.human_readable_id
JOIN names n ON n.table_name = 'documents' AND n.number = d.human_readable_id
LEFT JOIN units u ON u.document_id = d.id
ORDER BY d.human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_text_units AS
WITH entities_of AS (
    SELECT b.text_unit AS number, list(n.id ORDER BY n.number) AS ids
    FROM search.entity_text_units b JOIN entity_names_of n ON n.number = b.entity GROUP BY ALL
), relationships_of AS (
    SELECT b.text_unit AS number, list(n.id ORDER BY n.number) AS ids
    FROM search.relationship_text_units b JOIN relationship_names n ON n.number = b.relationship GROUP BY ALL
), covariates_of AS (
    SELECT c.text_unit_number AS number, list(n.id ORDER BY n.number) AS ids
    FROM covariates c JOIN kept_covariates k ON k.number = c.human_readable_id
    JOIN names n ON n.table_name = 'covariates' AND n.number = c.human_readable_id GROUP BY ALL
)
SELECT n.id, t.human_readable_id, t.text, t.n_tokens, d.id AS document_id, coalesce(e.ids, []) AS entity_ids,
       coalesce(r.ids, []) AS relationship_ids, coalesce(c.ids, []) AS covariate_ids
FROM text_units t
JOIN unit_names n ON n.number = t.human_readable_id
JOIN names d ON d.table_name = 'documents' AND d.own_id = t.document_id
LEFT JOIN entities_of e ON e.number = n.number
LEFT JOIN relationships_of r ON r.number = n.number
LEFT JOIN covariates_of c ON c.number = n.number
ORDER BY t.human_readable_id;

CREATE OR REPLACE TEMP VIEW degrees AS
SELECT e.entity AS number, count(DISTINCT e.neighbor) AS degree
FROM search.edges e JOIN kept_relationships r ON r.number = e.relationship GROUP BY ALL;

CREATE OR REPLACE TEMP VIEW v3_entities AS
WITH units AS (
    SELECT b.entity AS number, list(n.id ORDER BY n.number) AS text_unit_ids
    FROM search.entity_text_units b JOIN unit_names n ON n.number = b.text_unit GROUP BY ALL
)
SELECT n.id, e.human_readable_id, upper(e.title) AS title, e.type, e.description, u.text_unit_ids,
       len(u.text_unit_ids)::BIGINT AS frequency, coalesce(d.degree, 0) AS degree
FROM entities e
JOIN entity_names_of n ON n.number = e.human_readable_id
JOIN units u ON u.number = n.number
LEFT JOIN degrees d ON d.number = n.number
ORDER BY e.human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_relationships AS
WITH units AS (
    SELECT b.relationship AS number, list(n.id ORDER BY n.number) AS text_unit_ids
    FROM search.relationship_text_units b JOIN unit_names n ON n.number = b.text_unit GROUP BY ALL
)
SELECT n.id, r.human_readable_id, upper(r.source) AS source, upper(r.target) AS target, r.description, r.weight,
       s.degree + t.degree AS combined_degree, u.text_unit_ids
FROM relationships r
JOIN relationship_names n ON n.number = r.human_readable_id
JOIN units u ON u.number = n.number
JOIN degrees s ON s.number = r.source_number
JOIN degrees t ON t.number = r.target_number
ORDER BY r.human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_covariates AS
SELECT n.id, c.human_readable_id, c.covariate_type, coalesce(c.type, 'NONE') AS type, c.description, upper(c.subject_id) AS subject_id,
       coalesce(upper(c.object_id), 'NONE') AS object_id, c.status, stated_date(c.start_date) AS start_date,
       stated_date(c.end_date) AS end_date, coalesce(c.source_text, 'NONE') AS source_text,
       u.id AS text_unit_id
FROM covariates c
JOIN kept_covariates k ON k.number = c.human_readable_id
JOIN names n ON n.table_name = 'covariates' AND n.number = c.human_readable_id
JOIN unit_names u ON u.number = c.text_unit_number
ORDER BY c.human_readable_id;

-- As in GraphRAG, the text units of a community are those of its relationships.
CREATE OR REPLACE TEMP VIEW v3_communities AS
WITH kept AS (SELECT DISTINCT community FROM kept_members),
members AS (
    SELECT m.community, list(n.id ORDER BY n.number) AS entity_ids
    FROM kept_members m JOIN entity_names_of n USING (number) GROUP BY ALL
), children_of AS (
    SELECT c.parent, list(c.community ORDER BY c.community) AS children
    FROM communities c JOIN kept USING (community) GROUP BY ALL
), inside AS (
    SELECT c.community, n.number, n.id
    FROM (SELECT community, unnest(relationship_ids) AS relationship FROM communities) c
    JOIN relationship_names n ON n.own_id = c.relationship
), relationships_of AS (
    SELECT community, list(id ORDER BY id) AS relationship_ids FROM inside GROUP BY ALL
), units AS (
    SELECT community, list(id ORDER BY id) AS text_unit_ids
    FROM (
        SELECT DISTINCT i.community, u.id
        FROM inside i JOIN search.relationship_text_units b ON b.relationship = i.number
        JOIN unit_names u ON u.number = b.text_unit
    ) GROUP BY ALL
)
SELECT n.id, c.human_readable_id, c.community, c.level,
       CASE WHEN c.parent IN (FROM kept) THEN c.parent ELSE -1 END AS parent,
       coalesce(h.children, []) AS children,
       c.title, m.entity_ids, coalesce(r.relationship_ids, []) AS relationship_ids,
       coalesce(u.text_unit_ids, []) AS text_unit_ids, c.period, len(m.entity_ids)::BIGINT AS size
FROM communities c
JOIN kept USING (community)
JOIN names n ON n.table_name = 'communities' AND n.number = c.community
JOIN members m ON m.community = c.community
LEFT JOIN children_of h ON h.parent = c.community
LEFT JOIN relationships_of r ON r.community = c.community
LEFT JOIN units u ON u.community = c.community
ORDER BY c.community;

CREATE OR REPLACE TEMP VIEW v3_community_reports AS
SELECT n.id, r.human_readable_id, r.community, r.level, c.parent, c.children, r.title, r.summary, r.full_content,
       r.rank, r.rating_explanation,
       list_transform(r.findings, lambda f: {'explanation': f.explanation, 'summary': f.summary}) AS findings,
       r.full_content_json, r.period, c.size
FROM community_reports r
JOIN v3_communities c ON c.community = r.community
JOIN names n ON n.table_name = 'community_reports' AND n.number = r.community
ORDER BY r.community;

CREATE OR REPLACE TEMP VIEW v3_embeddings AS
SELECT e.kind, n.id, e.vector::DOUBLE[] AS embedding
FROM embeddings e
JOIN names n ON n.number = e.number AND n.table_name =
     CASE e.kind WHEN 'text_unit' THEN 'text_units' WHEN 'entity' THEN 'entities' ELSE 'community_reports' END
WHERE CASE e.kind
      WHEN 'text_unit' THEN e.number IN (SELECT number FROM kept_units)
      WHEN 'entity' THEN e.number IN (SELECT number FROM kept_entities)
      ELSE e.number IN (SELECT community FROM kept_members) END
ORDER BY e.kind, e.number;
