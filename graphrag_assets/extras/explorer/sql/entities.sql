-- The entities of the page, those with most neighbors first.
SELECT human_readable_id AS number, title, type, description, degree, frequency
FROM entities
ORDER BY coalesce(degree, 0) DESC, human_readable_id
LIMIT $entities
