-- Facts with their time. A later statement does not delete an earlier one: it ends the time in which that one held.

-- For facts_as_of and history_of: claims and the predicates of relationships, by their numbers, with their times.
CREATE MACRO own.facts_about(claims, relationships) AS TABLE
WITH _g_facts_about AS MATERIALIZED (SELECT claims AS _g_claims, relationships AS _g_relationships),
claims_of AS (
    SELECT 'claim' AS kind, c.human_readable_id, c.subject_id AS subject, c.type AS predicate,
           c.object_id AS object, c.description, c.status, c.valid_from, c.valid_until, c.stated_on,
           c.superseded_by, c.id, c.text_unit_number AS text_unit
    FROM (SELECT unnest(g._g_claims::INT[]) AS claim FROM _g_facts_about g) n
    JOIN own.covariates c ON c.human_readable_id = n.claim
), said AS MATERIALIZED (
    SELECT m.id, m.relationship_number, m.source_number, m.target_number, m.type, m.description, m.document_id,
           m.text_unit_number
    FROM (SELECT unnest(g._g_relationships::INT[]) AS relationship FROM _g_facts_about g) n
    JOIN own.relationship_mentions m ON m.relationship_number = n.relationship AND m.type <> ''
), stated AS (  -- each predicate once for each time in which it held
    SELECT s.relationship_number AS number, s.type, s.source_number, s.target_number, f.valid_until, f.superseded_by,
           min(CASE WHEN f.stated_end IS NULL THEN coalesce(f.valid_from, d.document_date) ELSE f.valid_from END) AS valid_from, max(d.document_date) AS stated_on,
           max_by({'description': s.description, 'id': s.id, 'text_unit': s.text_unit_number},
                  (coalesce(d.document_date, DATE '0001-01-01'), s.id)) AS newest
    FROM said s
    LEFT JOIN own.facts f ON f.id = s.id
    LEFT JOIN own.documents d ON d.id = s.document_id
    GROUP BY ALL
)
FROM claims_of
UNION ALL
SELECT 'relationship', r.number, s.title, r.type, t.title, r.newest.description, 'TRUE', r.valid_from, r.valid_until,
       r.stated_on, r.superseded_by, r.newest.id, r.newest.text_unit
FROM stated r
JOIN own.entities s ON s.human_readable_id = r.source_number
JOIN own.entities t ON t.human_readable_id = r.target_number;

CREATE OR REPLACE MACRO facts_as_of(day) AS TABLE
WITH _g_facts_as_of AS MATERIALIZED (SELECT day::DATE AS _g_day)
SELECT f.* EXCLUDE (text_unit), d.title AS document
FROM own.facts_about(
    (SELECT list(c.human_readable_id) FROM _g_facts_as_of g JOIN own.covariates c
     ON coalesce(c.valid_from <= g._g_day, c.valid_until IS NOT NULL) AND coalesce(c.valid_until > g._g_day, true)),
    (SELECT list(r.human_readable_id) FROM own.relationships r)
) f
LEFT JOIN own.text_units u ON u.human_readable_id = f.text_unit
LEFT JOIN own.documents d ON d.id = u.document_id
JOIN _g_facts_as_of g ON coalesce(f.valid_from <= g._g_day, f.valid_until IS NOT NULL) AND coalesce(f.valid_until > g._g_day, true)
ORDER BY f.subject, f.predicate, f.object, f.valid_from, f.id;
COMMENT ON MACRO TABLE facts_as_of IS
    'The claims and the predicates of relationships that hold on a day, by all statements of the index: stated or dated by then, and not over. What held until a later day counts, although nothing says since when.';

CREATE OR REPLACE MACRO history_of(entity) AS TABLE
WITH _g_history_of AS MATERIALIZED (SELECT entity AS _g_entity),
called AS MATERIALIZED (FROM own.entities_called((SELECT g._g_entity FROM _g_history_of g))),
claims AS MATERIALIZED (
    SELECT c.human_readable_id FROM called e JOIN own.covariates c ON c.subject_number = e.entity
    UNION SELECT c.human_readable_id FROM called e JOIN own.covariates c ON c.object_number = e.entity
)
SELECT f.* EXCLUDE (text_unit), d.title AS document
FROM own.facts_about(
    (SELECT list(c.human_readable_id) FROM claims c),
    (SELECT list(DISTINCT e.relationship) FROM called c JOIN own.edges e ON e.entity = c.entity)
) f
LEFT JOIN own.text_units u ON u.human_readable_id = f.text_unit
LEFT JOIN own.documents d ON d.id = u.document_id
ORDER BY f.valid_from NULLS LAST, f.valid_until NULLS LAST, f.predicate, f.id;
COMMENT ON MACRO TABLE history_of IS
    'The claims on an entity and the predicates of its relationships, with the time in which each holds, the oldest first.';
