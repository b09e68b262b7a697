-- Relationships among the entities of the page, the heaviest first.
WITH shown AS (
    SELECT human_readable_id FROM entities ORDER BY coalesce(degree, 0) DESC, human_readable_id LIMIT $entities
)
SELECT human_readable_id AS number, source_number AS source, target_number AS target, type, description,
       round(weight, 3) AS weight
FROM relationships
WHERE source_number IN (FROM shown) AND target_number IN (FROM shown)
ORDER BY weight DESC, human_readable_id
LIMIT $relationships
