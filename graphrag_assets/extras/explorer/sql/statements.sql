-- The text units that state each relationship of the page.
WITH shown AS (
    SELECT human_readable_id FROM entities ORDER BY coalesce(degree, 0) DESC, human_readable_id LIMIT $entities
), kept AS (
    SELECT human_readable_id FROM relationships
    WHERE source_number IN (FROM shown) AND target_number IN (FROM shown)
    ORDER BY weight DESC, human_readable_id LIMIT $relationships
)
SELECT relationship, text_unit AS unit FROM search.relationship_text_units WHERE relationship IN (FROM kept) ORDER BY ALL
