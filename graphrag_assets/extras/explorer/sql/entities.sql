-- The entities of the page, those with most neighbors first.
SELECT human_readable_id AS number, title, type, description, degree, frequency,
       round(x::DOUBLE, 4) AS x, round(y::DOUBLE, 4) AS y
FROM entities
ORDER BY coalesce(degree, 0) DESC, human_readable_id
LIMIT $entities
