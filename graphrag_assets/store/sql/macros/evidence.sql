-- Evidence in the documents. SQL counts characters from 1: a passage is documents.text[start_char + 1:end_char].

CREATE OR REPLACE MACRO entity_evidence(title) AS TABLE
WITH _g_entity_evidence AS MATERIALIZED (SELECT title AS _g_title),
called AS MATERIALIZED (FROM own.entities_called((SELECT g._g_title FROM _g_entity_evidence g))),
mentions AS MATERIALIZED (
    SELECT m.title AS name, m.type, m.description, m.n_sentences, m.text_unit_number, m.id
    FROM called c JOIN own.entity_mentions m ON m.entity_number = c.entity
)
SELECT m.name, m.type, m.description, m.n_sentences, d.title AS document, d.id AS document_id, d.source, t.start_char,
       t.end_char, t.start_char + nullif(strpos(t.text, m.name), 0) - 1 AS name_at, t.text,
       t.human_readable_id AS text_unit_number, m.id AS mention_id
FROM mentions m
JOIN own.text_units t ON t.human_readable_id = m.text_unit_number
LEFT JOIN own.documents d ON d.id = t.document_id
WHERE t.human_readable_id IN (SELECT o.text_unit_number FROM mentions o)
ORDER BY d.source, d.row_number, t.ordinal, m.name, m.id;
COMMENT ON MACRO TABLE entity_evidence IS
    'Every mention of the entity, in the order of the documents: what was extracted, from which text unit, document and characters. name_at: where the name first stands there literally.';

-- For entity_timeline and claims_between: the claims of these numbers with the characters of their passages.
CREATE MACRO own.quoted_claims(claims) AS TABLE
WITH _g_quoted_claims AS MATERIALIZED (SELECT claims AS _g_claims),
chosen AS MATERIALIZED (SELECT unnest(g._g_claims) AS claim FROM _g_quoted_claims g)
SELECT c.start_date, c.end_date, c.status, c.type, c.subject_id AS subject, c.object_id AS object, c.description,
       c.source_text, d.title AS document, d.id AS document_id, d.source,
       t.start_char + coalesce(nullif(strpos(t.text, c.source_text), 0) - 1, 0) AS start_char,
       CASE WHEN strpos(t.text, c.source_text) > 0
            THEN t.start_char + strpos(t.text, c.source_text) - 1 + length(c.source_text)
            ELSE t.end_char END AS end_char,
       c.human_readable_id, c.starts_on, c.ends_on, c.text_unit_number
FROM chosen n
JOIN own.covariates c ON c.human_readable_id = n.claim
LEFT JOIN own.text_units t ON t.human_readable_id = c.text_unit_number
LEFT JOIN own.documents d ON d.id = c.document_id;

CREATE OR REPLACE MACRO search.stated_end(start_date, end_date, ends_on) AS
    CASE WHEN end_date <> start_date THEN ends_on + 1 END;
COMMENT ON MACRO search.stated_end IS 'Helper: the day after a period that a text states; a day, month or year is no period.';

CREATE OR REPLACE MACRO entity_timeline(title) AS TABLE
WITH _g_entity_timeline AS MATERIALIZED (SELECT title AS _g_title),
called AS MATERIALIZED (FROM own.entities_called((SELECT g._g_title FROM _g_entity_timeline g))),
numbers AS MATERIALIZED (  -- one scan of numbers for either end; a condition with OR would read all claims
    SELECT c.human_readable_id FROM called e JOIN own.covariates c ON c.subject_number = e.entity
    UNION SELECT c.human_readable_id FROM called e JOIN own.covariates c ON c.object_number = e.entity
)
SELECT q.* EXCLUDE (starts_on, ends_on)
FROM own.quoted_claims((SELECT list(n.human_readable_id) FROM numbers n)) q
ORDER BY q.start_date NULLS LAST, q.end_date NULLS LAST, q.human_readable_id;
COMMENT ON MACRO TABLE entity_timeline IS
    'The claims that have the entity for subject or object, by date, undated ones last, with document and the characters of the quoted passage.';

CREATE OR REPLACE MACRO claims_between(since, until, entities := NULL) AS TABLE
WITH _g_claims_between AS MATERIALIZED (SELECT since AS _g_since, until AS _g_until, entities AS _g_entities),
chosen AS MATERIALIZED (SELECT unnest(g._g_entities::BIGINT[]) AS entity FROM _g_claims_between g),
numbers AS MATERIALIZED (
    SELECT c.human_readable_id
    FROM _g_claims_between g JOIN own.covariates c
      ON c.starts_on >= g._g_since::DATE AND coalesce(c.ends_on, c.starts_on) <= g._g_until::DATE
    WHERE g._g_entities IS NULL OR c.subject_number IN (SELECT o.entity FROM chosen o)
       OR c.object_number IN (SELECT o.entity FROM chosen o)
)
FROM own.quoted_claims((SELECT list(n.human_readable_id) FROM numbers n)) q
ORDER BY q.starts_on, q.ends_on, q.human_readable_id;
COMMENT ON MACRO TABLE claims_between IS
    'The claims dated between two days, both included, in order of time, with document and the characters of the quoted passage. entities: only claims with one of these human_readable_ids for subject or object.';

CREATE OR REPLACE MACRO report_sources(community) AS TABLE
WITH RECURSIVE _g_report_sources AS MATERIALIZED (SELECT community AS _g_community),
reports AS (  -- a report may cite those of its sub-communities
    SELECT r.id, r.human_readable_id FROM _g_report_sources g JOIN own.community_reports r ON r.community = g._g_community
    UNION
    SELECT s.id, s.human_readable_id
    FROM reports p JOIN own.citations c ON c.report_id = p.id AND c.table_name = 'community_reports'
    JOIN own.community_reports s ON s.id = c.cited_id
), cited AS (
    SELECT DISTINCT c.table_name, c.human_readable_id AS number, c.cited_id
    FROM own.citations c JOIN reports r ON r.id = c.report_id
), passages AS (
    SELECT c.table_name, c.number, e.title AS says, u.text_unit
    FROM cited c JOIN own.entities e ON e.id = c.cited_id AND c.table_name = 'entities'
    JOIN own.entity_text_units u ON u.entity = e.human_readable_id
    UNION ALL
    SELECT c.table_name, c.number, s.source || ' – ' || s.target, u.text_unit
    FROM cited c JOIN own.relationships s ON s.id = c.cited_id AND c.table_name = 'relationships'
    JOIN own.relationship_text_units u ON u.relationship = s.human_readable_id
    UNION ALL
    SELECT c.table_name, c.number, v.description, v.text_unit_number
    FROM cited c JOIN own.covariates v ON v.id = c.cited_id AND c.table_name = 'covariates'
    UNION ALL
    SELECT c.table_name, c.number, NULL, t.human_readable_id
    FROM cited c JOIN own.text_units t ON t.id = c.cited_id AND c.table_name = 'text_units'
    UNION ALL
    SELECT c.table_name, c.number, 'no such row', NULL FROM cited c WHERE c.cited_id IS NULL
)
SELECT p.table_name, p.number AS human_readable_id, p.says, d.title AS document, d.id AS document_id, d.source,
       t.start_char, t.end_char, t.human_readable_id AS text_unit_number, t.text
FROM passages p
LEFT JOIN own.text_units t ON t.human_readable_id = p.text_unit
LEFT JOIN own.documents d ON d.id = t.document_id
ORDER BY d.source, d.row_number, t.ordinal, p.table_name, p.number;
COMMENT ON MACRO TABLE report_sources IS
    'What the report of a community cites, and the passages behind it: one row for each cited row and text unit, in the order of the documents. Recursive: one step for each level of reports that cite others.';

CREATE OR REPLACE MACRO evidence_for(claim, k := 10) AS TABLE
WITH _g_evidence_for AS MATERIALIZED (SELECT claim AS _g_claim),
stated AS MATERIALIZED (
    SELECT c.human_readable_id, c.text_unit_number, c.description, c.subject_key
    FROM _g_evidence_for g JOIN own.covariates c ON c.human_readable_id = try_cast(g._g_claim AS BIGINT)
), best AS MATERIALIZED (
    SELECT s.number, s.score FROM own.bm25('text_units', (
        SELECT coalesce((SELECT c.description FROM stated c), g._g_claim::VARCHAR) FROM _g_evidence_for g), k) s
), claims AS (  -- of the passage, on the same subject
    SELECT c.text_unit_number, list(c.human_readable_id ORDER BY c.human_readable_id) AS numbers
    FROM best b JOIN own.covariates c ON c.text_unit_number = b.number
    WHERE c.subject_key = (SELECT s.subject_key FROM stated s) GROUP BY c.text_unit_number
)
SELECT b.score, b.number IN (SELECT s.text_unit_number FROM stated s) AS is_source, d.title AS document,
       d.id AS document_id, d.source, d.document_date, t.start_char, t.end_char, t.text, t.human_readable_id AS text_unit_number,
       coalesce(c.numbers, []) AS claim_numbers
FROM best b
JOIN own.text_units t ON t.human_readable_id = b.number
LEFT JOIN own.documents d ON d.id = t.document_id
LEFT JOIN claims c ON c.text_unit_number = b.number
ORDER BY round(b.score, 9) DESC, t.human_readable_id;
COMMENT ON MACRO TABLE evidence_for IS
    'The k passages of all documents that fit a claim best by BM25: one of the index, by its number, or any sentence. is_source: the claim was extracted there. claim_numbers: the claims on the same subject there.';

CREATE OR REPLACE MACRO coverage(batch := NULL) AS TABLE
WITH _g_coverage AS MATERIALIZED (SELECT batch AS _g_batch),
chosen AS (
    SELECT d.id, d.batch, d.title, d.source, d.row_number FROM _g_coverage g JOIN own.documents d
      ON g._g_batch IS NULL OR d.batch = g._g_batch
), units AS (
    SELECT t.document_id, count(*) AS text_units, count(*) FILTER (len(t.entity_ids) = 0) AS without_entities,
           sum(len(t.covariate_ids))::BIGINT AS claims, sum(t.n_tokens)::BIGINT AS n_tokens
    FROM own.text_units t GROUP BY t.document_id
), names AS (
    SELECT m.document_id, count(*) AS mentions, count(DISTINCT m.entity_number) AS entities
    FROM own.entity_mentions m GROUP BY m.document_id
), ties AS (
    SELECT m.document_id, count(DISTINCT m.relationship_number) AS relationships
    FROM own.relationship_mentions m GROUP BY m.document_id
), errors AS (
    SELECT e.source, count(*) AS errors FROM own.index_errors e GROUP BY e.source
)
SELECT c.batch, c.title AS document, c.id AS document_id, c.source, coalesce(u.text_units, 0) AS text_units,
       coalesce(u.without_entities, 0) AS without_entities, coalesce(u.n_tokens, 0) AS n_tokens,
       coalesce(n.entities, 0) AS entities, coalesce(n.mentions, 0) AS mentions,
       coalesce(r.relationships, 0) AS relationships, coalesce(u.claims, 0) AS claims, coalesce(x.errors, 0) AS errors
FROM chosen c
LEFT JOIN units u ON u.document_id = c.id
LEFT JOIN names n ON n.document_id = c.id
LEFT JOIN ties r ON r.document_id = c.id
LEFT JOIN errors x ON x.source = c.source
ORDER BY c.batch, c.source, c.row_number;
COMMENT ON MACRO TABLE coverage IS
    'What was found in each document (of a batch): text units, those without an entity, entities, mentions, relationships, claims, and the errors of its file.';
