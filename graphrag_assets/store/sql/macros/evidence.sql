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
    CASE WHEN coalesce(end_date <> start_date, end_date IS NOT NULL) THEN ends_on + 1 END;
COMMENT ON MACRO search.stated_end IS 'Helper: the day after a period or an end that a text states; a day, month or year is no period.';

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

-- A text as a pattern for regexp_extract: with any white space, and with the signs of emphasis that a document may have.
-- The beginning of a long one: DuckDB takes no pattern of 200,000 characters.
CREATE MACRO own.loosely(text) AS array_to_string(list_transform(
    regexp_extract_all(left(text, 5000), '[\p{L}\p{N}]+|[^\p{L}\p{N}\s]'), lambda part: regexp_escape(part)), '[\s*_]*');

CREATE OR REPLACE MACRO report_sources(community) AS TABLE
WITH RECURSIVE _g_report_sources AS MATERIALIZED (SELECT community AS _g_community),
report AS MATERIALIZED (
    SELECT r.id, r.summary, r.findings FROM _g_report_sources g JOIN own.community_reports r ON r.community = g._g_community
), parts AS (
    SELECT 0::BIGINT AS finding, r.summary AS text FROM report r
    UNION ALL SELECT generate_subscripts(r.findings, 1), unnest(r.findings).explanation FROM report r
), blocks AS (  -- what is said before each [Data: …]; of consecutive ones, before the first
    SELECT b.finding, b.place, b.block, coalesce(
               b.said, lag(b.said IGNORE NULLS) OVER (PARTITION BY b.finding ORDER BY b.place)) AS statement
    FROM (
        SELECT s.finding, unnest(s.found) AS block, generate_subscripts(s.found, 1) AS place,
               nullif(trim(unnest(s.texts[:len(s.found)]), e' \n'), '') AS said
        FROM (SELECT p.finding, regexp_extract_all(p.text, '\[Data:[^\]]*\]') AS found,
                     string_split_regex(p.text, '\[Data:[^\]]*\]') AS texts FROM parts p) s
    ) b
), numbers AS (  -- Sources (3, 4.2, 7-9): the second sentence of 4, and 7 to 9
    SELECT l.finding, l.place, l.statement, l.cited_as,
           unnest(range(l.first, least(greatest(l.first, coalesce(l.last, l.first)), l.first + 50) + 1)) AS number
    FROM (
        SELECT n.finding, n.place, n.statement, n.cited_as,
               try_cast(unnest(regexp_extract_all(n.listed, '(\d+)(?:\.\d+(?:[-–]\d+)?)?(?:[-–](\d+))?', 1)) AS BIGINT) AS first,
               try_cast(unnest(regexp_extract_all(n.listed, '(\d+)(?:\.\d+(?:[-–]\d+)?)?(?:[-–](\d+))?', 2)) AS BIGINT) AS last
        FROM (
            SELECT b.finding, b.place, b.statement, unnest(regexp_extract_all(b.block, '(\w+) \(([^)]*)\)', 1)) AS cited_as,
                   unnest(regexp_extract_all(b.block, '(\w+) \(([^)]*)\)', 2)) AS listed FROM blocks b
        ) n
    ) l
), cited AS (  -- for a report of a sub-community, what that one cites
    SELECT n.finding, n.place, n.statement, c.table_name, c.human_readable_id AS number, c.cited_id
    FROM report r JOIN own.citations c ON c.report_id = r.id
    LEFT JOIN (
        SELECT o.*, k.table_name FROM numbers o JOIN (
            VALUES ('Entities', 'entities'), ('Relationships', 'relationships'), ('Claims', 'covariates'),
                   ('Reports', 'community_reports'), ('Sources', 'text_units')) k(cited_as, table_name) USING (cited_as)
    ) n ON n.table_name = c.table_name AND n.number = c.human_readable_id
    UNION
    SELECT r.finding, r.place, r.statement, c.table_name, c.human_readable_id, c.cited_id
    FROM cited r JOIN own.citations c ON c.report_id = r.cited_id AND r.table_name = 'community_reports'
), rows_cited AS MATERIALIZED (SELECT DISTINCT c.table_name, c.number, c.cited_id FROM cited c),
entities_cited AS MATERIALIZED (
    SELECT e.human_readable_id AS number, e.title, c.cited_id
    FROM rows_cited c JOIN own.entities e ON e.id = c.cited_id AND c.table_name = 'entities'
), relationships_cited AS MATERIALIZED (
    SELECT s.human_readable_id AS number, s.source || ' – ' || s.target AS title, c.cited_id
    FROM rows_cited c JOIN own.relationships s ON s.id = c.cited_id AND c.table_name = 'relationships'
), passages AS MATERIALIZED (
    SELECT 'entities' AS table_name, e.cited_id, e.title AS says, u.text_unit
    FROM entities_cited e JOIN own.entity_text_units u ON u.entity = e.number
    UNION ALL
    SELECT 'relationships', s.cited_id, s.title, u.text_unit
    FROM relationships_cited s JOIN own.relationship_text_units u ON u.relationship = s.number
    UNION ALL
    SELECT c.table_name, c.cited_id, v.description, v.text_unit_number
    FROM rows_cited c JOIN own.covariates v ON v.id = c.cited_id AND c.table_name = 'covariates'
    UNION ALL
    SELECT c.table_name, c.cited_id, NULL, t.human_readable_id
    FROM rows_cited c JOIN own.text_units t ON t.id = c.cited_id AND c.table_name = 'text_units'
), units AS MATERIALIZED (
    SELECT t.human_readable_id AS text_unit, t.document_id, t.start_char, t.end_char, t.text, t.ordinal
    FROM own.text_units t WHERE t.human_readable_id IN (SELECT p.text_unit FROM passages p)
), statements AS (
    SELECT c.statement, own.loosely(c.statement) AS pattern, list_reduce(
               string_split_regex(c.statement, '[^\p{L}\p{N}]+'),
               lambda longest, word: CASE WHEN length(word) > length(longest) THEN word ELSE longest END) AS word
    FROM cited c WHERE c.statement IS NOT NULL GROUP BY c.statement
), stated AS (
    SELECT f.statement, f.text_unit, f.passage FROM (
        SELECT o.statement, o.text_unit, regexp_extract(u.text, s.pattern) AS passage
        FROM (SELECT DISTINCT c.statement, p.text_unit FROM cited c
              JOIN passages p ON p.table_name = c.table_name AND p.cited_id = c.cited_id) o
        JOIN statements s ON s.statement = o.statement
        JOIN units u ON u.text_unit = o.text_unit AND contains(u.text, s.word)  -- most have not, which is sooner seen
    ) f WHERE f.passage <> ''
), placed AS MATERIALIZED (
    SELECT c.finding, c.place, c.statement, c.table_name, c.number, c.cited_id,
           CASE WHEN c.cited_id IS NULL THEN 'no such row' ELSE p.says END AS says, p.text_unit, s.passage AS stated
    FROM cited c
    LEFT JOIN passages p ON p.table_name = c.table_name AND p.cited_id = c.cited_id
    LEFT JOIN stated s ON s.statement = c.statement AND s.text_unit = p.text_unit
    WHERE c.table_name <> 'community_reports' OR c.cited_id IS NULL
    -- Where a passage says what the report says, the others that name the same are not behind it.
    QUALIFY s.passage IS NOT NULL OR count(s.passage) OVER (
        PARTITION BY c.finding, c.place, c.table_name, c.number) = 0
), unstated AS (
    SELECT DISTINCT p.table_name, p.cited_id, p.text_unit FROM placed p WHERE p.stated IS NULL
), texts AS (  -- what was extracted from these text units
    SELECT o.table_name, o.cited_id, o.text_unit, 'description' AS matched, split_part(m.description, ' … ', 1) AS text
    FROM unstated o JOIN entities_cited e ON e.cited_id = o.cited_id
    JOIN own.entity_mentions m ON m.entity_number = e.number AND m.text_unit_number = o.text_unit
    WHERE m.entity_number IN (SELECT e.number FROM entities_cited e)
    UNION ALL
    SELECT o.table_name, o.cited_id, o.text_unit, 'name', m.title
    FROM unstated o JOIN entities_cited e ON e.cited_id = o.cited_id
    JOIN own.entity_mentions m ON m.entity_number = e.number AND m.text_unit_number = o.text_unit
    WHERE m.entity_number IN (SELECT e.number FROM entities_cited e)
    UNION ALL
    SELECT o.table_name, o.cited_id, o.text_unit, 'description', split_part(m.description, ' … ', 1)
    FROM unstated o JOIN relationships_cited s ON s.cited_id = o.cited_id
    JOIN own.relationship_mentions m ON m.relationship_number = s.number AND m.text_unit_number = o.text_unit
    WHERE m.relationship_number IN (SELECT s.number FROM relationships_cited s)
    UNION ALL
    SELECT o.table_name, o.cited_id, o.text_unit, 'quotation', v.source_text
    FROM unstated o JOIN own.covariates v ON v.id = o.cited_id
), extracted AS (
    SELECT f.table_name, f.cited_id, f.text_unit,
           min_by({'matched': f.matched, 'passage': f.passage}, (f.matched = 'name', -length(f.passage))) AS found
    FROM (
        SELECT x.table_name, x.cited_id, x.text_unit, x.matched, CASE
                   WHEN contains(u.text, x.text) THEN x.text
                   ELSE regexp_extract(u.text, CASE WHEN x.matched = 'name' THEN '(?i)' ELSE '' END || own.loosely(x.text))
               END AS passage
        FROM texts x JOIN units u ON u.text_unit = x.text_unit
    ) f WHERE f.passage <> '' GROUP BY ALL
), quoted AS (
    SELECT p.*, coalesce(p.stated, x.found.passage) AS passage,
           CASE WHEN p.stated IS NOT NULL THEN 'statement' ELSE x.found.matched END AS matched
    FROM placed p
    LEFT JOIN extracted x ON x.table_name = p.table_name AND x.cited_id = p.cited_id AND x.text_unit = p.text_unit
)
SELECT q.finding, q.statement, q.table_name, q.number AS human_readable_id, q.says, d.title AS document, d.id AS document_id,
       d.source, u.start_char + coalesce(strpos(u.text, q.passage) - 1, 0) AS start_char,
       coalesce(u.start_char + strpos(u.text, q.passage) - 1 + length(q.passage), u.end_char) AS end_char,
       coalesce(q.matched, CASE WHEN u.text IS NOT NULL THEN 'text unit' END) AS matched,
       coalesce(q.passage, u.text) AS passage, q.text_unit AS text_unit_number
FROM quoted q LEFT JOIN units u ON u.text_unit = q.text_unit LEFT JOIN own.documents d ON d.id = u.document_id
ORDER BY q.finding NULLS LAST, q.place, q.table_name, q.number, d.source, d.row_number, u.ordinal;
COMMENT ON MACRO TABLE report_sources IS
    'What the report of a community cites, statement by statement (finding: its number, 0 in the summary), and the characters of the passages behind it: one row for each reference and text unit. matched: the passage is the statement itself, the quotation of a claim, what was extracted (description), a name, or all of the text unit. Of text units of which some have the statement, only these. Recursive: one step for each level of reports that cite others.';

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
