-- The same rules as in community_history, but between any two publications:
-- split: at least two communities come mainly (more than half of their members) from one of the same level before;
-- merged: a community contains more than half of the members of at least two of its level;
-- changed: same id, other members or level; renamed: same id, other title of the report.
WITH old AS (
    SELECT c.id, c.level, c.entity_ids, len(c.entity_ids) AS size, coalesce(r.title, c.title) AS title
    FROM before.communities c LEFT JOIN before.community_reports r ON r.community = c.community
), new AS (
    SELECT c.id, c.level, c.entity_ids, len(c.entity_ids) AS size, coalesce(r.title, c.title) AS title
    FROM after.communities c LEFT JOIN after.community_reports r ON r.community = c.community
), shared AS (
    SELECT o.id AS old_id, n.id AS new_id, count(*) AS common
    FROM (SELECT id, unnest(entity_ids) AS entity FROM old) o
    JOIN (SELECT id, unnest(entity_ids) AS entity FROM new) n USING (entity)
    GROUP BY ALL
), pairs AS (
    SELECT o, n, s.common AS shared, s.common / (o.size + n.size - s.common) AS jaccard
    FROM shared s JOIN old o ON o.id = s.old_id JOIN new n ON n.id = s.new_id
), events AS (
    SELECT 'born' AS change, NULL AS o, n, NULL AS jaccard FROM new n WHERE n.id NOT IN (SELECT id FROM old)
    UNION ALL
    SELECT 'died', o, NULL, NULL FROM old o WHERE o.id NOT IN (SELECT id FROM new)
    UNION ALL
    SELECT 'changed', o, n, coalesce(p.jaccard, 0)
    FROM old o JOIN new n ON n.id = o.id LEFT JOIN pairs p ON p.o.id = o.id AND p.n.id = n.id
    WHERE coalesce(p.jaccard, 0) < 1 OR o.level <> n.level
    UNION ALL
    SELECT 'renamed', o, n, NULL FROM old o JOIN new n ON n.id = o.id WHERE o.title <> n.title
    UNION ALL
    SELECT 'split', o, n, jaccard FROM pairs WHERE o.level = n.level AND 2 * shared > n.size
    QUALIFY count(*) OVER (PARTITION BY o.id) > 1
    UNION ALL
    SELECT 'merged', o, n, jaccard FROM pairs WHERE o.level = n.level AND 2 * shared > o.size
    QUALIFY count(*) OVER (PARTITION BY n.id) > 1
)
SELECT change, coalesce(n.id, o.id) AS id, coalesce(n.title, o.title) AS title,
       CASE WHEN change IN ('split', 'merged') THEN o.id END AS other_id,
       o.title AS title_before, n.title AS title_after, o.level AS level_before, n.level AS level_after,
       o.size AS size_before, n.size AS size_after, round(jaccard, 4) AS jaccard
FROM events
