-- The text units that name each entity of the page, those that relate it to most others first, and the names they
-- give it; null where that is its title alone.
WITH shown AS (
    SELECT human_readable_id AS entity, title
    FROM entities ORDER BY coalesce(degree, 0) DESC, human_readable_id LIMIT $entities
), named AS (
    SELECT entity_number AS entity, text_unit_number AS text_unit, list(DISTINCT title ORDER BY title) AS names
    FROM entity_mentions WHERE entity_number IN (SELECT entity FROM shown) GROUP BY ALL
)
SELECT entity, text_unit AS unit, CASE WHEN n.names <> [s.title] THEN n.names END AS names
FROM search.entity_text_units u JOIN shown s USING (entity) LEFT JOIN named n USING (entity, text_unit)
ORDER BY entity, n_relationships DESC, text_unit
