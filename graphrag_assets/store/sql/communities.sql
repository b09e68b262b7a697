-- The rows of communities. Input: clusters (level, cluster, parent, entity_id, born_level), and the id of each cluster (key,
-- id), which has a number.
WITH named AS (
    SELECT key, n.id, human_readable_id AS community FROM ids JOIN numbers n ON n.table_name = 'communities' AND n.id = ids.id
), own AS (
    SELECT n.*, level, parent, entity_id FROM clusters JOIN named n ON key = cluster WHERE level = born_level
), born AS (
    SELECT key, id, community, level, parent, list(entity_id ORDER BY entity_id) AS entity_ids, count(*) AS size
    FROM own GROUP BY ALL
), inside AS (
    SELECT a.community, list(r.id ORDER BY r.id) AS relationship_ids
    FROM relationships r JOIN own a ON a.entity_id = source_id
    JOIN own b ON b.entity_id = target_id AND b.community = a.community GROUP BY ALL
), units AS (
    SELECT DISTINCT community, unnest(text_unit_ids) AS unit FROM own JOIN entities ON entities.id = entity_id
), drawn_on AS (
    SELECT community, list(unit ORDER BY unit) AS text_unit_ids, max(left(creation_date, 10)) AS period
    FROM units LEFT JOIN text_units t ON t.id = unit LEFT JOIN documents d ON d.id = t.document_id GROUP BY ALL
), parts AS (
    SELECT parent, list(community ORDER BY community) AS children FROM born GROUP BY ALL
)
SELECT b.id, b.community AS human_readable_id, b.community, level, coalesce(p.community, -1) AS parent,
       coalesce(children, []) AS children, 'Community ' || b.community AS title, entity_ids,
       coalesce(relationship_ids, []) AS relationship_ids, coalesce(text_unit_ids, []) AS text_unit_ids, period, size
FROM born b LEFT JOIN named p ON p.key = b.parent
LEFT JOIN parts ON parts.parent = b.key LEFT JOIN inside i ON i.community = b.community
LEFT JOIN drawn_on d ON d.community = b.community
