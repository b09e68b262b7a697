-- All predicates of the relationships in `chosen` (number) by the mentions in `said` (id), dated, with the end of those
-- that are superseded by `times` (id, valid_until): those that hold first, then the newest first.
WITH stated AS (
    SELECT m.relationship_number AS number, m.type, m.source_number = r.source_number AS along,
           max(d.document_date) AS newest,
           CASE WHEN count(*) = count(t.valid_until) THEN max(t.valid_until) END AS until
    FROM relationship_mentions m
    JOIN relationships r ON r.human_readable_id = m.relationship_number
    LEFT JOIN documents d ON d.id = m.document_id
    LEFT JOIN times t ON t.id = m.id
    WHERE m.relationship_number IN (SELECT number FROM chosen) AND m.id IN (SELECT id FROM said) AND m.type <> ''
    GROUP BY ALL
)
SELECT number, count(*) = count(until) AS over, CASE WHEN count(*) = 1 AND count(until) = 0 THEN any_value(type) ELSE string_agg(
    CASE WHEN along THEN '' ELSE '← ' END || type
    || coalesce(' (' || nullif(concat_ws(', ', newest, 'until ' || until), '') || ')', ''),
    '; ' ORDER BY until IS NOT NULL, newest DESC NULLS LAST, type, along DESC) END AS predicates
FROM stated GROUP BY number
