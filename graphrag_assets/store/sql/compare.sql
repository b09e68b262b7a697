-- Differences between two publications, attached as `before` and `after`. Equal rows are not shown.

-- A document's id is a hash of its path: the same text under another path was moved, not removed and added.
CREATE TEMP VIEW changed_documents AS
WITH gone AS (
    SELECT *, row_number() OVER (PARTITION BY md5(text) ORDER BY source, row_number, id) AS place
    FROM before.documents ANTI JOIN after.documents USING (id)
), come AS (
    SELECT *, row_number() OVER (PARTITION BY md5(text) ORDER BY source, row_number, id) AS place
    FROM after.documents ANTI JOIN before.documents USING (id)
), pairs AS (
    SELECT b, a FROM before.documents b JOIN after.documents a ON a.id = b.id AND a.content_hash <> b.content_hash
    UNION ALL
    SELECT b, a FROM gone b FULL JOIN come a ON md5(a.text) = md5(b.text) AND a.place = b.place
)
SELECT CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed'
            WHEN a.id = b.id THEN 'edited' ELSE 'moved' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title,
       b.source AS source_before, a.source AS source_after,
       b.title AS title_before, a.title AS title_after,
       b.n_tokens AS n_tokens_before, a.n_tokens AS n_tokens_after,
       b.text AS text_before, a.text AS text_after
FROM pairs;

CREATE TEMP VIEW changed_entities AS
SELECT CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title,
       b.title AS title_before, a.title AS title_after, b.type AS type_before, a.type AS type_after,
       b.degree AS degree_before, a.degree AS degree_after,
       b.frequency AS frequency_before, a.frequency AS frequency_after,
       b.description AS description_before, a.description AS description_after
FROM before.entities b FULL JOIN after.entities a ON a.id = b.id
WHERE (b.id, b.title, b.type, b.degree, b.frequency, b.description)
   IS DISTINCT FROM (a.id, a.title, a.type, a.degree, a.frequency, a.description);

CREATE TEMP VIEW changed_relationships AS
SELECT CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
       coalesce(a.id, b.id) AS id,
       coalesce(a.source, b.source) || ' – ' || coalesce(a.target, b.target) AS title,
       b.type AS type_before, a.type AS type_after, b.weight AS weight_before, a.weight AS weight_after,
       b.description AS description_before, a.description AS description_after
FROM before.relationships b FULL JOIN after.relationships a ON a.id = b.id
WHERE (b.id, b.source, b.target, b.type, b.weight, b.description)
   IS DISTINCT FROM (a.id, a.source, a.target, a.type, a.weight, a.description);

CREATE TEMP VIEW changed_communities AS
WITH titled(b, a) AS (
    SELECT b, a FROM (
        SELECT c.id, c.level, c.entity_ids, c.size, coalesce(r.title, c.title) AS title
        FROM before.communities c LEFT JOIN before.community_reports r USING (community)
    ) b FULL JOIN (
        SELECT c.id, c.level, c.entity_ids, c.size, coalesce(r.title, c.title) AS title
        FROM after.communities c LEFT JOIN after.community_reports r USING (community)
    ) a ON a.id = b.id
)
SELECT CASE WHEN b.id IS NULL THEN 'born' WHEN a.id IS NULL THEN 'died'
            WHEN (b.level, b.entity_ids) IS DISTINCT FROM (a.level, a.entity_ids) THEN 'changed' ELSE 'renamed' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title, b.title AS title_before, a.title AS title_after,
       b.level AS level_before, a.level AS level_after, b.size AS size_before, a.size AS size_after
FROM titled
WHERE (b.id, b.level, b.entity_ids, b.title) IS DISTINCT FROM (a.id, a.level, a.entity_ids, a.title);

CREATE TEMP VIEW changed_reports AS
SELECT CASE WHEN b.id IS NULL THEN 'written' WHEN a.id IS NULL THEN 'removed' ELSE 'rewritten' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title,
       b.title AS title_before, a.title AS title_after, b.rank AS rank_before, a.rank AS rank_after,
       b.summary AS summary_before, a.summary AS summary_after,
       b.full_content AS full_content_before, a.full_content AS full_content_after
FROM before.community_reports b FULL JOIN after.community_reports a ON a.id = b.id
WHERE (b.id, b.fingerprint, b.full_content, b.rank) IS DISTINCT FROM (a.id, a.fingerprint, a.full_content, a.rank);

-- The number of each; `kept` rows are equal in both.
CREATE TEMP VIEW change_counts AS
WITH changes AS (
    SELECT 1 AS place, 'documents' AS what, change, id FROM changed_documents
    UNION ALL SELECT 2, 'entities', change, id FROM changed_entities
    UNION ALL SELECT 3, 'relationships', change, id FROM changed_relationships
    UNION ALL SELECT 4, 'communities', change, id FROM changed_communities
    UNION ALL SELECT 5, 'reports', change, id FROM changed_reports
), present AS (
    SELECT 1 AS place, 'documents' AS what, id FROM after.documents
    UNION ALL SELECT 2, 'entities', id FROM after.entities
    UNION ALL SELECT 3, 'relationships', id FROM after.relationships
    UNION ALL SELECT 4, 'communities', id FROM after.communities
    UNION ALL SELECT 5, 'reports', id FROM after.community_reports
)
SELECT place, what, change, count(DISTINCT id) AS n FROM changes GROUP BY ALL
UNION ALL
SELECT place, what, 'kept', count(*) FROM present ANTI JOIN changes USING (what, id) GROUP BY ALL
ORDER BY place, change;
