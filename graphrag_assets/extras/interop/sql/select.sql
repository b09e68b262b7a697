-- The rows to export: tables kept_* of numbers. $batches and $communities are lists or null.

CREATE OR REPLACE TEMP TABLE asked_communities AS
WITH RECURSIVE below AS (
    SELECT community FROM communities WHERE list_contains($communities::BIGINT[], community)
    UNION
    SELECT c.community FROM communities c JOIN below b ON c.parent = b.community
)
SELECT community FROM below;

CREATE OR REPLACE TEMP TABLE kept_units AS
SELECT human_readable_id AS number FROM text_units
WHERE $batches::VARCHAR[] IS NULL OR list_contains($batches::VARCHAR[], batch);

CREATE OR REPLACE TEMP TABLE kept_entities AS
SELECT DISTINCT b.entity AS number FROM search.entity_text_units b JOIN kept_units u ON u.number = b.text_unit
WHERE $communities::BIGINT[] IS NULL
   OR b.entity IN (SELECT entity_number FROM community_members SEMI JOIN asked_communities USING (community));

DELETE FROM kept_units
WHERE $communities::BIGINT[] IS NOT NULL
  AND number NOT IN (SELECT b.text_unit FROM search.entity_text_units b JOIN kept_entities e ON e.number = b.entity);

CREATE OR REPLACE TEMP TABLE kept_relationships AS
SELECT DISTINCT r.human_readable_id AS number
FROM relationships r
JOIN kept_entities s ON s.number = r.source_number
JOIN kept_entities t ON t.number = r.target_number
JOIN search.relationship_text_units b ON b.relationship = r.human_readable_id
JOIN kept_units u ON u.number = b.text_unit;

CREATE OR REPLACE TEMP TABLE kept_covariates AS
SELECT human_readable_id AS number FROM covariates
WHERE text_unit_number IN (SELECT number FROM kept_units)
  AND ($communities::BIGINT[] IS NULL OR subject_number IN (SELECT number FROM kept_entities));

CREATE OR REPLACE TEMP TABLE kept_documents AS
SELECT human_readable_id AS number FROM documents
WHERE ($batches::VARCHAR[] IS NULL OR list_contains($batches::VARCHAR[], batch))
  AND ($communities::BIGINT[] IS NULL OR id IN (
      SELECT document_id FROM text_units t JOIN kept_units u ON u.number = t.human_readable_id));

CREATE OR REPLACE TEMP TABLE kept_members AS
SELECT c.community, e.human_readable_id AS number
FROM (SELECT community, unnest(entity_ids) AS entity FROM communities) c
JOIN entities e ON e.id = c.entity
JOIN kept_entities k ON k.number = e.human_readable_id
WHERE $communities::BIGINT[] IS NULL OR c.community IN (FROM asked_communities);
