-- The community of each entity of the page, at each level.
WITH shown AS (
    SELECT human_readable_id FROM entities ORDER BY coalesce(degree, 0) DESC, human_readable_id LIMIT $entities
), kept AS (
    SELECT community FROM communities ORDER BY size DESC, level, community LIMIT $communities
)
SELECT entity, level, community
FROM search.entity_communities
WHERE entity IN (FROM shown) AND community IN (FROM kept)
ORDER BY ALL
