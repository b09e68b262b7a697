-- Differences between two publications, attached as `before` and `after`: a view for each table, with the row as it was
-- (before) and as it is (after). Equal rows are not shown.

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
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title, b AS before, a AS after
FROM pairs;

CREATE TEMP VIEW changed_entities AS
SELECT CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title, b AS before, a AS after
FROM before.entities b FULL JOIN after.entities a ON a.id = b.id
WHERE (b.id, b.title, b.type, b.degree, b.frequency, b.description)
   IS DISTINCT FROM (a.id, a.title, a.type, a.degree, a.frequency, a.description);

CREATE TEMP VIEW changed_relationships AS
SELECT CASE WHEN b.id IS NULL THEN 'added' WHEN a.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.source, b.source) || ' – ' || coalesce(a.target, b.target) AS title,
       b AS before, a AS after
FROM before.relationships b FULL JOIN after.relationships a ON a.id = b.id
WHERE (b.id, b.source, b.target, b.type, b.weight, b.description)
   IS DISTINCT FROM (a.id, a.source, a.target, a.type, a.weight, a.description);

CREATE TEMP VIEW changed_communities AS
SELECT CASE WHEN b.id IS NULL THEN 'born' WHEN a.id IS NULL THEN 'died'
            WHEN (b.level, b.entity_ids) IS DISTINCT FROM (a.level, a.entity_ids) THEN 'changed' ELSE 'renamed' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(s.title, r.title, a.title, b.title) AS title, b AS before, a AS after
FROM before.communities b FULL JOIN after.communities a ON a.id = b.id
LEFT JOIN before.community_reports r ON r.community = b.community
LEFT JOIN after.community_reports s ON s.community = a.community
WHERE (b.id, b.level, b.entity_ids, coalesce(r.title, b.title)) IS DISTINCT FROM (a.id, a.level, a.entity_ids, coalesce(s.title, a.title));

CREATE TEMP VIEW changed_reports AS
SELECT CASE WHEN b.id IS NULL THEN 'written' WHEN a.id IS NULL THEN 'removed' ELSE 'rewritten' END AS change,
       coalesce(a.id, b.id) AS id, coalesce(a.title, b.title) AS title, b AS before, a AS after
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
