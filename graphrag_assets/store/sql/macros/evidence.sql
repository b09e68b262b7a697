-- Evidence in the documents. SQL counts characters from 1: a passage is documents.text[start_char + 1:end_char].

CREATE OR REPLACE MACRO report_sources(community) AS TABLE
WITH RECURSIVE _g_report_sources AS MATERIALIZED (SELECT community AS _g_community),
cited AS (  -- for a report of a sub-community, what that one cites
    SELECT c.table_name, c.human_readable_id AS number, c.cited_id
    FROM _g_report_sources g JOIN this.community_reports r ON r.community = g._g_community
    JOIN this.citations c ON c.report_id = r.id
    UNION
    SELECT c.table_name, c.human_readable_id, c.cited_id
    FROM cited r JOIN this.citations c ON c.report_id = r.cited_id AND r.table_name = 'community_reports'
), passages AS MATERIALIZED (
    SELECT c.table_name, c.cited_id, e.title AS says, u.text_unit, split_part(m.description, ' … ', 1) AS quoted
    FROM cited c JOIN this.entities e ON e.id = c.cited_id AND c.table_name = 'entities'
    JOIN this.entity_text_units u ON u.entity = e.human_readable_id
    LEFT JOIN this.entity_mentions m ON m.entity_number = u.entity AND m.text_unit_number = u.text_unit
    UNION ALL
    SELECT c.table_name, c.cited_id, s.source || ' – ' || s.target, m.text_unit_number, split_part(m.description, ' … ', 1)
    FROM cited c JOIN this.relationships s ON s.id = c.cited_id AND c.table_name = 'relationships'
    JOIN this.relationship_mentions m ON m.relationship_number = s.human_readable_id
    UNION ALL
    SELECT c.table_name, c.cited_id, v.description, v.text_unit_number, v.source_text
    FROM cited c JOIN this.covariates v ON v.id = c.cited_id AND c.table_name = 'covariates'
    UNION ALL
    SELECT c.table_name, c.cited_id, NULL, t.human_readable_id, NULL
    FROM cited c JOIN this.text_units t ON t.id = c.cited_id AND c.table_name = 'text_units'
), units AS MATERIALIZED (
    SELECT t.human_readable_id AS number, t.document_id, t.start_char, t.text, t.ordinal
    FROM this.text_units t WHERE t.human_readable_id IN (SELECT p.text_unit FROM passages p)
), placed AS (
    SELECT c.table_name, c.number, CASE WHEN c.cited_id IS NULL THEN 'no such row' ELSE p.says END AS says, p.text_unit,
           CASE WHEN p.quoted <> '' AND contains(u.text, p.quoted) THEN p.quoted ELSE u.text END AS passage
    FROM cited c
    LEFT JOIN passages p ON p.table_name = c.table_name AND p.cited_id = c.cited_id
    LEFT JOIN units u ON u.number = p.text_unit
    WHERE c.table_name <> 'community_reports' OR c.cited_id IS NULL
)
SELECT DISTINCT p.table_name, p.number AS human_readable_id, p.says, d.title AS document, d.id AS document_id, d.source,
       u.start_char + strpos(u.text, p.passage) - 1 AS start_char,
       u.start_char + strpos(u.text, p.passage) - 1 + length(p.passage) AS end_char, p.passage,
       p.text_unit AS text_unit_number
FROM placed p LEFT JOIN units u ON u.number = p.text_unit LEFT JOIN this.documents d ON d.id = u.document_id
ORDER BY p.table_name, p.number, d.source, start_char;
COMMENT ON MACRO TABLE report_sources IS
    'What the report of a community cites, and the characters of the passages behind it: the quotation of a claim, a description that the text unit has word for word, or all of the text unit. Recursive: one step for each level of reports that cite others.';

-- Facts with their time. A later statement does not delete an earlier one: it ends the time in which that one held.

-- For facts_as_of and history_of: claims and the predicates of relationships, by their numbers, with their times.
CREATE MACRO this.facts_about(claims, relationships) AS TABLE
WITH _g_facts_about AS MATERIALIZED (SELECT claims AS _g_claims, relationships AS _g_relationships),
claims_of AS (
    SELECT 'claim' AS kind, c.human_readable_id, c.subject_id AS subject, c.type AS predicate,
           c.object_id AS object, c.description, c.status, c.valid_from, c.valid_until, c.stated_on,
           c.superseded_by, c.id, c.text_unit_number AS text_unit
    FROM (SELECT unnest(g._g_claims::INT[]) AS claim FROM _g_facts_about g) n
    JOIN this.covariates c ON c.human_readable_id = n.claim
), said AS MATERIALIZED (
    SELECT m.id, m.relationship_number, m.source_number, m.target_number, m.type, m.description, m.document_id,
           m.text_unit_number
    FROM (SELECT unnest(g._g_relationships::INT[]) AS relationship FROM _g_facts_about g) n
    JOIN this.relationship_mentions m ON m.relationship_number = n.relationship AND m.type <> ''
), stated AS (  -- each predicate once for each time in which it held
    SELECT s.relationship_number AS number, s.type, s.source_number, s.target_number, f.valid_until, f.superseded_by,
           min(CASE WHEN f.stated_end IS NULL THEN coalesce(f.valid_from, d.document_date) ELSE f.valid_from END) AS valid_from, max(d.document_date) AS stated_on,
           max_by({'description': s.description, 'id': s.id, 'text_unit': s.text_unit_number},
                  (coalesce(d.document_date, DATE '0001-01-01'), s.id)) AS newest
    FROM said s
    LEFT JOIN this.facts f ON f.id = s.id
    LEFT JOIN this.documents d ON d.id = s.document_id
    GROUP BY ALL
)
FROM claims_of
UNION ALL
SELECT 'relationship', r.number, s.title, r.type, t.title, r.newest.description, 'TRUE', r.valid_from, r.valid_until,
       r.stated_on, r.superseded_by, r.newest.id, r.newest.text_unit
FROM stated r
JOIN this.entities s ON s.human_readable_id = r.source_number
JOIN this.entities t ON t.human_readable_id = r.target_number;

CREATE OR REPLACE MACRO facts_as_of(day) AS TABLE
WITH _g_facts_as_of AS MATERIALIZED (SELECT day::DATE AS _g_day)
SELECT f.* EXCLUDE (text_unit), d.title AS document
FROM this.facts_about(
    (SELECT list(c.human_readable_id) FROM _g_facts_as_of g JOIN this.covariates c
     ON coalesce(c.valid_from <= g._g_day, c.valid_until IS NOT NULL) AND coalesce(c.valid_until > g._g_day, true)),
    (SELECT list(r.human_readable_id) FROM this.relationships r)
) f
LEFT JOIN this.text_units u ON u.human_readable_id = f.text_unit
LEFT JOIN this.documents d ON d.id = u.document_id
JOIN _g_facts_as_of g ON coalesce(f.valid_from <= g._g_day, f.valid_until IS NOT NULL) AND coalesce(f.valid_until > g._g_day, true)
ORDER BY f.subject, f.predicate, f.object, f.valid_from, f.id;
COMMENT ON MACRO TABLE facts_as_of IS
    'The claims and the predicates of relationships that hold on a day, by all statements of the index: stated or dated by then, and not over. What held until a later day counts, although nothing says since when.';

CREATE OR REPLACE MACRO history_of(entity) AS TABLE
WITH _g_history_of AS MATERIALIZED (SELECT entity AS _g_entity),
called AS MATERIALIZED (FROM this.entities_called((SELECT g._g_entity FROM _g_history_of g))),
claims AS MATERIALIZED (
    SELECT c.human_readable_id FROM called e JOIN this.covariates c ON c.subject_number = e.entity
    UNION SELECT c.human_readable_id FROM called e JOIN this.covariates c ON c.object_number = e.entity
)
SELECT f.* EXCLUDE (text_unit), d.title AS document
FROM this.facts_about(
    (SELECT list(c.human_readable_id) FROM claims c),
    (SELECT list(DISTINCT e.relationship) FROM called c JOIN this.edges e ON e.entity = c.entity)
) f
LEFT JOIN this.text_units u ON u.human_readable_id = f.text_unit
LEFT JOIN this.documents d ON d.id = u.document_id
ORDER BY f.valid_from NULLS LAST, f.valid_until NULLS LAST, f.predicate, f.id;
COMMENT ON MACRO TABLE history_of IS
    'The claims on an entity and the predicates of its relationships, with the time in which each holds, the oldest first.';
