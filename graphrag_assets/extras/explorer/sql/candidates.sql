-- Pairs of names that may be one thing: undecided ones first, then by score.
SELECT row_number() OVER (ORDER BY decision <> '', score DESC NULLS LAST, name_key, other_key) AS number,
       n.human_readable_id AS "name", coalesce(n.title, name_key) AS name_title,
       o.human_readable_id AS other, coalesce(o.title, other_key) AS other_title,
       round(score, 2) AS score, evidence, documents, neighbors, decision, decided_by
FROM entity_candidates c
LEFT JOIN entities n ON n.title_key = name_key
LEFT JOIN entities o ON o.title_key = other_key
ORDER BY number
LIMIT $candidates
