-- Fills a publication, which is in use, from the index, attached as `working`: each table in its reading order, so that
-- zone maps serve as indexes. The tables with token counts are views here, named …_now.

CREATE TEMP TABLE unit_numbers AS
SELECT id, human_readable_id AS number FROM working.numbers WHERE table_name = 'text_units';

INSERT INTO documents BY NAME
WITH units AS (
    SELECT document_id, list(id ORDER BY ordinal) AS text_unit_ids FROM working.text_units GROUP BY ALL
)
SELECT d.*, n.human_readable_id, coalesce(u.text_unit_ids, []) AS text_unit_ids
FROM working.documents d
JOIN working.numbers n ON n.table_name = 'documents' AND n.id = d.id
LEFT JOIN units u ON u.document_id = d.id;

-- The entity of each name: by an alias of the document, else by an alias for all documents, else by its name.
CREATE TEMP TABLE entity_of_name AS
WITH names AS (
    SELECT document_id, title_key AS key FROM working.entity_mentions
    UNION SELECT document_id, unnest([source_key, target_key]) FROM working.relationship_mentions
    UNION SELECT document_id, unnest([subject_key, object_key]) FROM working.covariates
)
SELECT n.document_id, n.key, e.human_readable_id AS number
FROM names n
LEFT JOIN working.entity_aliases here ON here.document_id = n.document_id AND here.alias_key = n.key
LEFT JOIN working.entity_aliases everywhere ON everywhere.document_id IS NULL AND everywhere.alias_key = n.key
JOIN working.entities e ON e.title_key = coalesce(here.title_key, everywhere.title_key, n.key);

INSERT INTO entity_mentions BY NAME
SELECT m.*, e.number AS entity_number, u.number AS text_unit_number
FROM working.entity_mentions m
LEFT JOIN entity_of_name e ON e.document_id = m.document_id AND e.key = m.title_key
LEFT JOIN unit_numbers u ON u.id = m.text_unit_id;

CREATE TEMP TABLE ends AS
SELECT r.id, r.human_readable_id, r.weight, s.human_readable_id AS source_number, t.human_readable_id AS target_number,
       s.degree + t.degree AS combined_degree
FROM working.relationships r
JOIN working.entities s ON s.id = r.source_id
JOIN working.entities t ON t.id = r.target_id;

INSERT INTO relationship_mentions BY NAME
SELECT m.*, r.human_readable_id AS relationship_number, s.number AS source_number, t.number AS target_number,
       u.number AS text_unit_number
FROM working.relationship_mentions m
LEFT JOIN entity_of_name s ON s.document_id = m.document_id AND s.key = m.source_key
LEFT JOIN entity_of_name t ON t.document_id = m.document_id AND t.key = m.target_key
LEFT JOIN ends r ON least(r.source_number, r.target_number) = least(s.number, t.number)
                AND greatest(r.source_number, r.target_number) = greatest(s.number, t.number)
LEFT JOIN unit_numbers u ON u.id = m.text_unit_id;

CREATE TEMP TABLE claims AS
WITH numbered AS (
    SELECT c.* REPLACE (
               -- What extraction and imports write for a text that there is not.
               nullif(c.object_id, 'NONE') AS object_id, CASE WHEN c.object_id <> 'NONE' THEN c.object_key END AS object_key,
               nullif(c.type, 'NONE') AS type, nullif(c.source_text, 'NONE') AS source_text
           ), n.human_readable_id, u.number AS text_unit_number, d.document_date,
           -- Dates are as precise as known: 1866, 1866-07 or 1866-07-27.
           try_cast(CASE length(start_date) WHEN 4 THEN start_date || '-01-01' WHEN 7 THEN start_date || '-01'
                    ELSE start_date END AS DATE) AS starts_on,
           CASE length(end_date) WHEN 4 THEN try_cast(end_date || '-12-31' AS DATE)
                WHEN 7 THEN last_day(try_cast(end_date || '-01' AS DATE)) ELSE try_cast(end_date AS DATE) END AS ends_on,
           s.number AS subject_number, o.number AS object_number
    FROM working.covariates c ANTI JOIN working.claims_taken_back USING (id)
    JOIN working.numbers n ON n.table_name = 'covariates' AND n.id = c.id
    JOIN unit_numbers u ON u.id = c.text_unit_id
    LEFT JOIN entity_of_name s ON s.document_id = c.document_id AND s.key = c.subject_key
    LEFT JOIN entity_of_name o ON o.document_id = c.document_id AND o.key = c.object_key AND c.object_id <> 'NONE'
    LEFT JOIN working.documents d ON d.id = c.document_id
)
SELECT * EXCLUDE (document_date), coalesce(document_date, starts_on, ends_on) AS stated_on,
       -- Of what held until a day it is not known since when.
       CASE WHEN starts_on IS NULL AND ends_on IS NOT NULL THEN NULL ELSE coalesce(starts_on, document_date) END AS valid_from,
       -- The day after a period or an end that a text states; a day, month or year is no period.
       CASE WHEN coalesce(end_date <> start_date, end_date IS NOT NULL) THEN ends_on + 1 END AS stated_end
FROM numbered;

-- Predicates with one holder at a time: of the target (source), or of the source (target). Offices are told by their last
-- words, as in GROUP_CEO_OF. Not what several may be or have at once: directors, owners, members, partners, employees.
CREATE TEMP TABLE predicates AS
WITH patterns(pattern, family, holder) AS (
    VALUES ('(.+_)?(CEO|CHIEF_EXECUTIVE(_OFFICER)?)', 'CEO', 'source'), ('(.+_)?MANAGING_DIRECTOR', 'MANAGING DIRECTOR', 'source'),
           ('GENERAL_MANAGER', 'GENERAL MANAGER', 'source'), ('(.+_)?PRESIDENT', 'PRESIDENT', 'source'),
           ('(.+_)?CHAIR(MAN|WOMAN|PERSON|ED|S)?', 'CHAIR', 'source'), ('CHAIRED_BY', 'CHAIR', 'target'),
           ('(.+_)?MAYOR', 'MAYOR', 'source'), ('(.+_)?GOVERNOR', 'GOVERNOR', 'source'),
           ('(.+_)?(COMMANDER|CAPTAIN|COMMAND(ED|S))', 'COMMAND', 'source'), ('COMMANDED_BY', 'COMMAND', 'target'),
           ('(LEADER|LED|LEADS|HEAD|HEADED|HEADS)', 'LEAD', 'source'), ('(LED|HEADED)_BY', 'LEAD', 'target'),
           ('(SITE|PLANT|STATION|STORE|SHOP|BRANCH|OFFICE|WAREHOUSE|FACTORY|HARBOU?R|HOTEL)_MANAGER', 'SITE MANAGER', 'source'),
           ('(MANAGER|MANAGED|MANAGES)', 'MANAGE', 'source'), ('MANAGED_BY', 'MANAGE', 'target'),
           ('HEADQUARTERED_IN', 'SEAT', 'target'), ('(LIVE[SD]|RESIDES)_IN', 'LIVE', 'target'),
           ('REPORTS_TO', 'REPORT', 'target')
), types AS (
    SELECT type, regexp_replace(regexp_replace(upper(type), '[ _-]+', '_', 'g'), '_(OF|AT|FOR|IN)$', '') AS words
    FROM (SELECT DISTINCT type FROM working.relationship_mentions WHERE type <> '')
)
SELECT type, family, holder FROM types JOIN patterns
ON regexp_full_match(words, '((IS|WAS|ARE|WERE|BECAME|SERVES_AS|SERVED_AS|NEW|ACTING|INTERIM)_)*' || regexp_replace(pattern, '_IN$', ''))
WHERE NOT regexp_matches(words, '(^|_)(VICE|DEPUTY|ASSISTANT|CO|JOINT|FORMER|EX|PAST|HONORARY)_');

-- The statements of which one supersedes another have the same slot: what can have one value at a time, such as the
-- commander of a ship or the price of a thing. A slot is a hash of normalized names and words; nothing is compared by
-- similarity.
CREATE TEMP TABLE statements AS
WITH kinds(type, family, has_object) AS (
    VALUES ('RESIDENCE', 'RESIDENCE', false),
           ('LOCATION', 'LOCATION', false), ('HEADQUARTERS', 'HEADQUARTERS', false), ('ADDRESS', 'ADDRESS', false),
           ('LEADER', 'LEADER', false),
           ('LEADERSHIP', 'LEADER', false), ('STATUS', 'STATUS', false),
           ('PRICE', 'PRICE', true), ('TARIFF', 'PRICE', true), ('FEE', 'PRICE', true), ('RATE', 'RATE', true),
           ('SALARY', 'PAY', true), ('WAGE', 'PAY', true), ('RENT', 'RENT', true), ('HEADCOUNT', 'SIZE', true),
           ('POPULATION', 'SIZE', true), ('CAPACITY', 'CAPACITY', true), ('LIMIT', 'LIMIT', true),
           ('VERSION', 'VERSION', true)
), dated_claims AS (
    SELECT c.id, c.human_readable_id AS number, c.text_unit_number AS text_unit, c.valid_from, c.stated_on, c.stated_end,
           c.status, c.replaces, c.description, coalesce(s.title_key, c.subject_key) AS subject, c.type, k.family, k.has_object,
           coalesce(o.title_key, c.object_key) AS object,
           regexp_matches(c.object_id, '\d') AS is_value,
           -- What is measured, in words; dates and the other numbers are not part of it.
           list_filter(regexp_extract_all(lower(c.description), '[\p{L}\p{M}]+'), lambda w: NOT regexp_full_match(w,
               'in|on|at|from|since|until|of|as|per|now|then|an?|the|and|is|are|was|were|january|february|march|april|may|june|july|august|september|october|november|december'
           )) AS words,
           list_filter(regexp_extract_all(c.description, '\d+(?:[.,]\d+)*'), lambda n: NOT regexp_full_match(n, '[12]\d{3}')) AS numbers
    FROM claims c
    LEFT JOIN working.entities s ON s.human_readable_id = c.subject_number
    LEFT JOIN working.entities o ON o.human_readable_id = c.object_number
    LEFT JOIN kinds k ON k.type = regexp_replace(c.type, '[ _-]+', '_', 'g')
), of_claims AS (
    SELECT id, number, text_unit, valid_from, stated_on, stated_end, type, status, replaces, description, subject, object,
           CASE WHEN status <> 'TRUE' OR valid_from IS NULL THEN NULL WHEN is_value OR has_object AND object IS NULL
                THEN concat_ws(chr(31), 'measure', subject, coalesce(family, type), array_to_string(words, ' '))
                WHEN has_object THEN concat_ws(chr(31), 'measure of', subject, family, object)
                WHEN NOT has_object AND object IS NOT NULL THEN concat_ws(chr(31), 'object', subject, family) END AS slot,
           CASE WHEN is_value OR NOT has_object THEN object ELSE nullif(array_to_string(numbers, ' '), '') END AS value
    FROM dated_claims
), dated AS (  -- the dates of claims that say the same of the same two in the same text unit
    SELECT text_unit_number AS text_unit, least(subject_number, object_number) AS low,
           greatest(subject_number, object_number) AS high, description, min(starts_on) AS starts_on, max(stated_end) AS stated_end
    FROM claims WHERE object_number IS NOT NULL GROUP BY ALL
), of_relationships AS (
    SELECT m.id, m.relationship_number AS number, m.text_unit_number AS text_unit,
           CASE WHEN c.starts_on IS NULL AND c.stated_end IS NOT NULL THEN NULL
                ELSE coalesce(c.starts_on, d.document_date) END AS valid_from,
           coalesce(d.document_date, c.starts_on, c.stated_end) AS stated_on, c.stated_end, m.type, 'TRUE' AS status,
           m.replaces, m.description, s.title_key AS subject, t.title_key AS object, p.family || chr(31) || CASE p.holder WHEN 'source' THEN t.title_key ELSE s.title_key END AS slot,
           CASE p.holder WHEN 'source' THEN s.title_key ELSE t.title_key END AS value
    FROM relationship_mentions m
    LEFT JOIN predicates p USING (type)
    JOIN working.entities s ON s.human_readable_id = m.source_number
    JOIN working.entities t ON t.human_readable_id = m.target_number
    LEFT JOIN documents d ON d.id = m.document_id
    LEFT JOIN dated c ON c.text_unit = m.text_unit_number AND c.low = least(m.source_number, m.target_number)
        AND c.high = greatest(m.source_number, m.target_number) AND c.description = m.description
    WHERE m.relationship_number IS NOT NULL AND m.type <> ''
)
FROM (
    SELECT 'claim' AS kind, * FROM of_claims UNION ALL BY NAME SELECT 'relationship' AS kind, * FROM of_relationships
)
SELECT id, kind, number, text_unit, md5_number_lower(kind || chr(31) || slot) AS slot, md5_number_lower(value) AS value,
       stated_end, CASE WHEN status = 'FALSE' THEN stated_on ELSE valid_from END AS valid_from, stated_on, type, status,
       lower(replaces) AS replaces, lower(description) AS description, subject, object,
       regexp_replace(lower(replace(type, '_', ' ')), ' (of|at|for|in|by|to)$', '') AS kind_in_words;

-- What a statement ends, because its text says so: a fact of the kind that it names, or of its own, whose other end it
-- names, or whose words it repeats. A notice ends when a later statement says that it no longer holds.
CREATE TEMP TABLE ended AS
WITH replacing AS (
    SELECT id, type, subject, object, valid_from, replaces FROM statements
    WHERE replaces <> '' AND valid_from IS NOT NULL AND status <> 'SUSPECTED'
), of_kinds AS (
    SELECT r.*, t.type AS ended_type FROM replacing r JOIN (SELECT DISTINCT type, kind_in_words FROM statements) t
    ON t.type = r.type OR contains(r.replaces, t.kind_in_words)
), named AS (
    SELECT f.id, r.id AS ender, CASE WHEN f.subject IN (r.subject, r.object) THEN 1 ELSE 0 END AS same_subject,
           CASE WHEN f.object IN (r.subject, r.object) THEN 1 ELSE 0 END AS same_object,
           length(f.subject) > 2 AND (contains(r.replaces, f.subject) OR ends_with(f.subject, ' ' || r.replaces)) AS says_subject,
           length(f.object) > 2 AND (contains(r.replaces, f.object) OR ends_with(f.object, ' ' || r.replaces)) AS says_object,
           contains(f.description, r.replaces) AS repeats
    FROM of_kinds r JOIN statements f ON f.type = r.ended_type
    WHERE f.id <> r.id AND f.status = 'TRUE' AND coalesce(f.valid_from < r.valid_from, true)
)
SELECT id, ender FROM named
WHERE CASE WHEN same_subject + same_object = 2 THEN repeats
           WHEN same_subject = 1 THEN coalesce(says_object, false) OR repeats
           ELSE coalesce(says_subject, false) END
UNION
SELECT f.id, w.id FROM statements w JOIN statements f
ON w.kind = 'claim' AND f.kind = 'claim' AND f.type = w.type AND f.subject = w.subject
   AND coalesce(f.object = w.object, true) AND f.stated_on < w.stated_on
WHERE w.status = 'FALSE' AND f.status = 'TRUE'
  AND regexp_matches(f.type, 'NOTICE|TERMINATION|CANCEL|RESIGN|OFFER|ORDER|BAN\b|WARNING|RECALL|ANNOUNCE|INVITATION');

ALTER TABLE statements ADD COLUMN ends VARCHAR[];
UPDATE statements SET ends = e.ends FROM (
    SELECT ender, list(id ORDER BY id) AS ends FROM ended GROUP BY ender
) e WHERE e.ender = statements.id;
DELETE FROM statements WHERE NOT (
    slot IS NOT NULL AND value IS NOT NULL AND valid_from IS NOT NULL OR kind = 'relationship' AND stated_end IS NOT NULL
    OR ends IS NOT NULL OR id IN (SELECT id FROM ended)
);

CREATE TEMP TABLE times AS
WITH facts AS (FROM statements), superseded AS ({supersession})
SELECT f.id, f.kind, f.number, least(f.stated_end, s.valid_until) AS valid_until, s.superseded_by
FROM facts f LEFT JOIN superseded s USING (id);

INSERT INTO search.facts BY NAME
SELECT s.* EXCLUDE (type, status, replaces, description, subject, object, kind_in_words), t.valid_until, t.superseded_by FROM statements s JOIN times t USING (id, kind, number);

CREATE TEMP VIEW covariates_now AS
SELECT c.* EXCLUDE (stated_end), t.superseded_by,
       CASE WHEN t.superseded_by IS NULL THEN c.stated_end ELSE least(c.stated_end, t.valid_until) END AS valid_until
FROM claims c LEFT JOIN times t USING (id);

-- A relationship is over when all its predicates are.
CREATE TEMP TABLE timed_relationships AS
WITH chosen AS (
    SELECT DISTINCT number FROM statements WHERE kind = 'relationship'
), mentions AS (
    SELECT m.relationship_number AS number, d.document_date, f.valid_from, t.valid_until,
           n.relationship_number AS later, m.type <> '' AND t.valid_until IS NULL AS holds
    FROM relationship_mentions m LEFT JOIN statements f USING (id) LEFT JOIN times t USING (id)
    LEFT JOIN documents d ON d.id = m.document_id
    LEFT JOIN relationship_mentions n ON n.id = t.superseded_by
    WHERE m.relationship_number IN (FROM chosen)
), said AS (
    SELECT id FROM relationship_mentions WHERE relationship_number IN (FROM chosen)
), relationships AS (
    FROM ends
), shown AS ({predicates}), totals AS (
    SELECT m.number, coalesce(min(m.valid_from), min(m.document_date)) AS valid_from, count(m.valid_until) > 0 AS has_end,
           bool_or(m.holds) AS holds, max(m.valid_until) AS valid_until,
           max_by(r.id, (m.valid_until, r.id)) AS superseded_by
    FROM mentions m LEFT JOIN ends r ON r.human_readable_id = m.later GROUP BY m.number
)
SELECT t.number, t.valid_from, CASE WHEN NOT holds THEN valid_until END AS valid_until,
       CASE WHEN NOT holds THEN superseded_by END AS superseded_by, CASE WHEN has_end THEN s.predicates END AS relations
FROM totals t LEFT JOIN shown s USING (number);

CREATE TEMP VIEW relationships_now AS
WITH stated AS (
    SELECT r.id, min(d.document_date) AS valid_from, max(d.document_date) AS stated_on
    FROM (SELECT id, unnest(text_unit_ids) AS unit FROM working.relationships) r
    JOIN working.text_units u ON u.id = r.unit
    JOIN working.documents d ON d.id = u.document_id AND d.document_date IS NOT NULL
    GROUP BY r.id
)
SELECT r.* REPLACE (coalesce(t.relations, r.relations) AS relations), e.combined_degree, e.source_number, e.target_number, d.stated_on, t.valid_until, t.superseded_by,
       CASE WHEN t.number IS NULL THEN d.valid_from ELSE t.valid_from END AS valid_from
FROM working.relationships r
JOIN ends e USING (id)
LEFT JOIN stated d USING (id)
LEFT JOIN timed_relationships t ON t.number = r.human_readable_id;

INSERT INTO search.relationship_text_units
SELECT r.human_readable_id, n.number
FROM (SELECT human_readable_id, unnest(text_unit_ids) AS unit FROM working.relationships) r
JOIN unit_numbers n ON n.id = r.unit;

INSERT INTO search.edges
SELECT source_number, target_number, human_readable_id, weight, combined_degree FROM ends
UNION ALL
SELECT target_number, source_number, human_readable_id, weight, combined_degree FROM ends;

INSERT INTO search.entity_text_units
WITH stated AS (
    SELECT e.entity, r.text_unit, count(*) AS n
    FROM search.edges e JOIN search.relationship_text_units r USING (relationship) GROUP BY ALL
)
SELECT e.human_readable_id AS entity, n.number AS text_unit, coalesce(s.n, 0)
FROM (SELECT human_readable_id, unnest(text_unit_ids) AS unit FROM working.entities) e
JOIN unit_numbers n ON n.id = e.unit
LEFT JOIN stated s ON s.entity = e.human_readable_id AND s.text_unit = n.number;

CREATE TEMP VIEW text_units_now AS
WITH entities_of AS (
    SELECT b.text_unit, list(e.id ORDER BY e.id) AS entity_ids
    FROM search.entity_text_units b JOIN working.entities e ON e.human_readable_id = b.entity GROUP BY ALL
), relationships_of AS (
    SELECT b.text_unit, list(r.id ORDER BY r.id) AS relationship_ids
    FROM search.relationship_text_units b JOIN ends r ON r.human_readable_id = b.relationship GROUP BY ALL
), covariates_of AS (
    SELECT text_unit_number AS text_unit, list(id ORDER BY id) AS covariate_ids FROM claims GROUP BY ALL
)
-- Rows without a context, such as imported ones, get the title as context.
SELECT t.* REPLACE (coalesce(t.headings, [d.title]) AS headings, coalesce(t.context, d.title, '') AS context),
       n.number AS human_readable_id, coalesce(e.entity_ids, []) AS entity_ids,
       coalesce(r.relationship_ids, []) AS relationship_ids, coalesce(c.covariate_ids, []) AS covariate_ids
FROM working.text_units t
JOIN unit_numbers n USING (id)
LEFT JOIN working.documents d ON d.id = t.document_id
LEFT JOIN entities_of e ON e.text_unit = n.number
LEFT JOIN relationships_of r ON r.text_unit = n.number
LEFT JOIN covariates_of c ON c.text_unit = n.number;

CREATE TEMP VIEW entities_now AS FROM working.entities;

CREATE TEMP VIEW community_reports_now AS FROM working.community_reports;

INSERT INTO communities BY NAME FROM working.communities;

INSERT INTO community_members BY NAME
SELECT m.*, e.human_readable_id AS entity_number
FROM working.community_members m JOIN working.entities e ON e.id = m.entity_id;

INSERT INTO search.entity_communities SELECT entity_number, level, community FROM community_members;
