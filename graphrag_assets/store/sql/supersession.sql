-- The rows of `facts` (id, slot, value, valid_from, stated_on, ends) that a later statement supersedes: one that says so,
-- or one in the same slot that has another value, the earliest after the last repetition. Of several on one day, the one
-- with the least id.
WITH said AS (
    SELECT id, slot, value, valid_from,
           dense_rank() OVER (PARTITION BY slot ORDER BY valid_from, stated_on NULLS FIRST) AS place
    FROM facts WHERE slot IS NOT NULL AND valid_from IS NOT NULL
), repeated AS (
    SELECT DISTINCT slot, value, place, place - dense_rank() OVER (PARTITION BY slot, value ORDER BY place) AS turn
    FROM said
), turns AS (
    SELECT *, max(place) OVER (PARTITION BY slot, value, turn) AS last FROM repeated
), following AS (
    SELECT slot, place, min(id) AS id, any_value(valid_from) AS since FROM said GROUP BY ALL
)
SELECT id, min(valid_until) AS valid_until, arg_min(superseded_by, (valid_until, superseded_by)) AS superseded_by
FROM (
    SELECT s.id, f.since AS valid_until, f.id AS superseded_by
    FROM said s
    JOIN turns t ON t.slot = s.slot AND t.value = s.value AND t.place = s.place
    JOIN following f ON f.slot = s.slot AND f.place = t.last + 1
    UNION ALL SELECT unnest(ends), valid_from, id FROM facts
) GROUP BY id
