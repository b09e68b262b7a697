-- After publish_mentions.sql, and with its temporary tables: the statements of which one supersedes another. They have
-- the same slot: what can have one value at a time, such as the commander of a ship or the price of a thing. A slot is a
-- hash of normalized names and words; nothing is compared by similarity.

CREATE TEMP TABLE touched_statements AS
FROM touched_covariates UNION FROM touched_relationship_mentions
UNION SELECT id FROM covariates SEMI JOIN units ON units.text_unit = text_unit_number
UNION SELECT id FROM relationship_mentions SEMI JOIN units ON units.text_unit = text_unit_number;

CREATE TEMP TABLE facts_before AS FROM search.facts SEMI JOIN touched_statements USING (id);
CREATE TEMP TABLE touched_slots AS SELECT DISTINCT slot FROM facts_before;
DELETE FROM search.facts WHERE id IN (FROM touched_statements);

INSERT INTO search.facts BY NAME
WITH kinds(type, family, has_object) AS (
    -- Kinds of claims of which a subject has one value: the object (false), or a number for each object (true).
    VALUES ('ROLE', 'ROLE', false), ('POSITION', 'ROLE', false), ('OFFICE', 'ROLE', false),
           ('RESIDENCE', 'RESIDENCE', false),
           ('LOCATION', 'LOCATION', false), ('HEADQUARTERS', 'HEADQUARTERS', false), ('ADDRESS', 'ADDRESS', false),
           ('LEADER', 'LEADER', false),
           ('LEADERSHIP', 'LEADER', false), ('STATUS', 'STATUS', false),
           ('PRICE', 'PRICE', true), ('TARIFF', 'PRICE', true), ('FEE', 'PRICE', true), ('RATE', 'RATE', true),
           ('SALARY', 'PAY', true), ('WAGE', 'PAY', true), ('RENT', 'RENT', true), ('HEADCOUNT', 'SIZE', true),
           ('POPULATION', 'SIZE', true), ('CAPACITY', 'CAPACITY', true), ('LIMIT', 'LIMIT', true),
           ('VERSION', 'VERSION', true)
), claims AS (
    SELECT c.id, c.human_readable_id AS number, c.text_unit_number AS text_unit, c.valid_from, c.stated_on,
           search.stated_end(c.start_date, c.end_date, c.ends_on) AS stated_end,
           coalesce(s.title_key, c.subject_key) AS subject, c.type, k.family, k.has_object,
           coalesce(o.title_key, c.object_key) AS object,
           regexp_matches(c.object_id, '\d') AS is_value,
           -- What is measured, in words; dates and the other numbers are not part of it.
           list_filter(regexp_extract_all(lower(c.description), '[\p{L}\p{M}]+'), lambda w: NOT regexp_full_match(w,
               'in|on|at|from|since|until|of|as|per|now|then|an?|the|and|is|are|was|were|january|february|march|april|may|june|july|august|september|october|november|december'
           )) AS words,
           list_filter(regexp_extract_all(c.description, '\d+(?:[.,]\d+)*'), lambda n: NOT regexp_full_match(n, '[12]\d{3}')) AS numbers
    FROM covariates c SEMI JOIN touched_statements USING (id)
    LEFT JOIN entities s ON s.human_readable_id = c.subject_number
    LEFT JOIN entities o ON o.human_readable_id = c.object_number
    LEFT JOIN kinds k ON k.type = regexp_replace(c.type, '[ _-]+', '_', 'g')
    WHERE c.valid_from IS NOT NULL AND c.status = 'TRUE'
), of_claims AS (
    SELECT id, number, text_unit, valid_from, stated_on, stated_end,
           CASE WHEN is_value OR has_object AND object IS NULL
                THEN concat_ws(chr(31), 'measure', subject, coalesce(family, type), array_to_string(words, ' '))
                WHEN has_object THEN concat_ws(chr(31), 'measure of', subject, family, object)
                WHEN NOT has_object AND object IS NOT NULL THEN concat_ws(chr(31), 'object', subject, family) END AS slot,
           CASE WHEN is_value OR NOT has_object THEN object ELSE nullif(array_to_string(numbers, ' '), '') END AS value
    FROM claims
), predicates(type, family, holder) AS (
    -- Predicates with one holder at a time: of the target (source), or of the source (target). Not what several may
    -- be or have at once: directors, owners, members, partners, employees.
    VALUES ('LED', 'LEAD', 'source'), ('LEADS', 'LEAD', 'source'), ('LEADER_OF', 'LEAD', 'source'),
           ('HEADED', 'LEAD', 'source'), ('HEADS', 'LEAD', 'source'), ('HEAD_OF', 'LEAD', 'source'),
           ('LED_BY', 'LEAD', 'target'), ('HEADED_BY', 'LEAD', 'target'),
           ('CHAIRED', 'CHAIR', 'source'), ('CHAIRS', 'CHAIR', 'source'), ('CHAIR_OF', 'CHAIR', 'source'),
           ('CHAIRMAN_OF', 'CHAIR', 'source'), ('CHAIRWOMAN_OF', 'CHAIR', 'source'), ('CHAIRED_BY', 'CHAIR', 'target'),
           ('CEO_OF', 'CEO', 'source'), ('PRESIDENT_OF', 'PRESIDENT', 'source'), ('MAYOR_OF', 'MAYOR', 'source'),
           ('GOVERNOR_OF', 'GOVERNOR', 'source'),
           ('CHIEF_EXECUTIVE_OF', 'CEO', 'source'), ('CHIEF_EXECUTIVE_OFFICER_OF', 'CEO', 'source'),
           ('MANAGING_DIRECTOR_OF', 'MANAGING DIRECTOR', 'source'), ('GENERAL_MANAGER_OF', 'GENERAL MANAGER', 'source'),
           ('SITE_MANAGER_OF', 'SITE MANAGER', 'source'), ('PLANT_MANAGER_OF', 'PLANT MANAGER', 'source'),
           ('COMMANDED', 'COMMAND', 'source'), ('COMMANDS', 'COMMAND', 'source'),
           ('COMMANDER_OF', 'COMMAND', 'source'), ('CAPTAIN_OF', 'COMMAND', 'source'),
           ('COMMANDED_BY', 'COMMAND', 'target'), ('MANAGED', 'MANAGE', 'source'), ('MANAGES', 'MANAGE', 'source'),
           ('MANAGER_OF', 'MANAGE', 'source'), ('MANAGED_BY', 'MANAGE', 'target'),
           ('HEADQUARTERED_IN', 'SEAT', 'target'), ('LIVES_IN', 'LIVE', 'target'), ('LIVED_IN', 'LIVE', 'target'),
           ('RESIDES_IN', 'LIVE', 'target'), ('REPORTS_TO', 'REPORT', 'target')
), dated AS (  -- the dates of claims on the same two in the same text unit
    SELECT text_unit_number AS text_unit, least(subject_number, object_number) AS low,
           greatest(subject_number, object_number) AS high, min(starts_on) AS starts_on,
           max(search.stated_end(start_date, end_date, ends_on)) AS stated_end
    FROM covariates WHERE text_unit_number IN (
        SELECT m.text_unit_number FROM relationship_mentions m SEMI JOIN touched_statements USING (id)
    ) AND object_number IS NOT NULL GROUP BY ALL
), of_relationships AS (
    SELECT m.id, m.relationship_number AS number, m.text_unit_number AS text_unit,
           CASE WHEN c.starts_on IS NULL AND c.stated_end IS NOT NULL THEN NULL
                ELSE coalesce(c.starts_on, d.document_date) END AS valid_from,
           coalesce(d.document_date, c.starts_on, c.stated_end) AS stated_on, c.stated_end,
           p.family || chr(31) || CASE p.holder WHEN 'source' THEN t.title_key ELSE s.title_key END AS slot,
           CASE p.holder WHEN 'source' THEN s.title_key ELSE t.title_key END AS value
    FROM relationship_mentions m SEMI JOIN touched_statements USING (id)
    LEFT JOIN predicates p ON p.type = regexp_replace(regexp_replace(m.type, '[ _-]+', '_', 'g'), '^(IS|WAS|ARE|WERE|BECAME)_', '')
    JOIN entities s ON s.human_readable_id = m.source_number
    JOIN entities t ON t.human_readable_id = m.target_number
    LEFT JOIN documents d ON d.id = m.document_id
    LEFT JOIN dated c ON c.text_unit = m.text_unit_number AND c.low = least(m.source_number, m.target_number)
        AND c.high = greatest(m.source_number, m.target_number)
    WHERE m.relationship_number IS NOT NULL AND m.type <> ''
)
SELECT id, kind, number, text_unit, md5_number_lower(kind || chr(31) || slot) AS slot, md5_number_lower(value) AS value,
       stated_end, valid_from, stated_on
FROM (
    SELECT 'claim' AS kind, * FROM of_claims UNION ALL BY NAME SELECT 'relationship' AS kind, * FROM of_relationships
)
WHERE slot IS NOT NULL AND value IS NOT NULL AND valid_from IS NOT NULL OR kind = 'relationship' AND stated_end IS NOT NULL
ORDER BY slot, valid_from, id;

INSERT INTO touched_slots SELECT DISTINCT slot FROM search.facts SEMI JOIN touched_statements USING (id) EXCEPT FROM touched_slots;

CREATE TEMP TABLE times AS
WITH facts AS (
    FROM search.facts WHERE slot IN (SELECT slot FROM touched_slots) OR id IN (FROM touched_statements)
), superseded AS ({supersession})
SELECT f.id, f.kind, f.number, least(f.stated_end, s.valid_until) AS valid_until, s.superseded_by
FROM facts f LEFT JOIN superseded s USING (id);

UPDATE search.facts f SET valid_until = t.valid_until, superseded_by = t.superseded_by FROM times t
WHERE t.id = f.id AND (t.valid_until, t.superseded_by) IS DISTINCT FROM (f.valid_until, f.superseded_by);

UPDATE covariates c SET valid_until = least(search.stated_end(start_date, end_date, ends_on), t.valid_until),
       superseded_by = t.superseded_by, line_tokens = NULL
FROM times t WHERE t.id = c.id AND t.superseded_by IS DISTINCT FROM c.superseded_by;

-- A relationship is over when all its predicates are.
CREATE TEMP TABLE timed_relationships AS
WITH chosen AS (
    SELECT number FROM (FROM facts_before UNION ALL BY NAME FROM times) WHERE kind = 'relationship'
    UNION SELECT number FROM search.facts WHERE kind = 'relationship' AND number IN (FROM touched_links)
), mentions AS (
    SELECT m.relationship_number AS number, d.document_date, f.valid_from, f.valid_until,
           n.relationship_number AS later, m.type <> '' AND f.valid_until IS NULL AS holds
    FROM relationship_mentions m LEFT JOIN search.facts f USING (id)
    LEFT JOIN documents d ON d.id = m.document_id
    LEFT JOIN relationship_mentions n ON n.id = f.superseded_by
    WHERE m.relationship_number IN (FROM chosen)
), said AS (SELECT id FROM relationship_mentions WHERE relationship_number IN (FROM chosen)),
shown AS ({predicates}), totals AS (
    SELECT m.number, coalesce(min(m.valid_from), min(m.document_date)) AS valid_from, count(m.valid_until) > 0 AS has_end, bool_or(m.holds) AS holds,
           max(m.valid_until) AS valid_until, max_by(r.id, (m.valid_until, r.id)) AS superseded_by
    FROM mentions m LEFT JOIN relationships r ON r.human_readable_id = m.later GROUP BY m.number
)
SELECT t.number, t.valid_from, CASE WHEN NOT holds THEN valid_until END AS valid_until,
       CASE WHEN NOT holds THEN superseded_by END AS superseded_by,
       CASE WHEN has_end THEN s.predicates ELSE w.relations END AS relations
FROM totals t LEFT JOIN shown s USING (number) JOIN working.relationships w ON w.human_readable_id = t.number;

UPDATE relationships r SET line_tokens = CASE WHEN r.relations = t.relations THEN line_tokens END, relations = t.relations,
       valid_from = t.valid_from, valid_until = t.valid_until, superseded_by = t.superseded_by
FROM timed_relationships t
WHERE t.number = r.human_readable_id AND (r.relations, r.valid_from, r.valid_until, r.superseded_by)
    IS DISTINCT FROM (t.relations, t.valid_from, t.valid_until, t.superseded_by);
