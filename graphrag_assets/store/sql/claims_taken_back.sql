-- The claims that files of facts take back, and the rows that take back: $denied is their extractor. A claim is taken back
-- if it is about the same entity, and has the object, type and description that the row names.
WITH denials AS MATERIALIZED (FROM covariates WHERE extractor = $denied),
of_denials AS (WITH claims AS (FROM denials) FROM ({resolved})),
denied AS (
    SELECT d.*, coalesce(r.subject_entity_id, subject_key) AS about, coalesce(r.object_entity_id, object_key) AS object
    FROM denials d JOIN of_denials r USING (id)
),
named AS (  -- by every name that may lead to their subjects
    SELECT subject_key AS key FROM denied UNION SELECT e.title_key FROM entities e JOIN denied d ON d.about = e.id
    UNION SELECT a.alias_key FROM entity_aliases a JOIN entities e USING (title_key) JOIN denied d ON d.about = e.id
),
claims AS MATERIALIZED (FROM covariates WHERE subject_key IN (FROM named) AND extractor <> $denied)
SELECT c.id
FROM claims c JOIN ({resolved}) r USING (id) JOIN denied d ON d.about = coalesce(r.subject_entity_id, c.subject_key)
WHERE (d.object_id = 'NONE' OR d.object = coalesce(r.object_entity_id, c.object_key))
  AND d.type IN ('', c.type) AND lower(d.description) IN ('', lower(c.description))
UNION SELECT id FROM denials
