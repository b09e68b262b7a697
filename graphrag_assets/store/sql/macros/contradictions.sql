-- Claims that contradict each other: alike but for a status, number, date or object. Two descriptions that say different
-- things are no contradiction, and neither are two passages of one text unit, which tell things apart.

CREATE OR REPLACE MACRO search.contradicting_pairs(claims := NULL) AS TABLE
WITH chosen AS MATERIALIZED (SELECT unnest(claims::INT[]) AS claim),
given AS MATERIALIZED (
    SELECT c.human_readable_id AS claim, claims IS NULL OR c.human_readable_id IN (SELECT claim FROM chosen) AS is_chosen,
           coalesce(c.subject_number::VARCHAR, c.subject_key) AS about, c.type,
           c.text_unit_number, c.status, c.starts_on, coalesce(c.ends_on, c.starts_on) AS ends_on, c.description,
           -- An object may also be none, or a value such as £600,000.
           CASE WHEN c.object_id <> 'NONE' AND NOT regexp_matches(c.object_id, '\d')
                THEN coalesce(c.object_number::VARCHAR, c.object_key) END AS object,
           list_distinct(list_transform(
               regexp_extract_all(
                   regexp_replace(  -- 1962-63 are two years
                       c.description, '\b(\d\d)(\d\d)[-–](\d\d)\b', '\1\2 \1\3', 'g'),
                   '[£$€¥]?\d+(?:[.,]\d+)*%?'),
               lambda n: replace(n, ',', ''))) AS numbers
    FROM covariates c
    WHERE claims IS NULL OR coalesce(c.subject_number::VARCHAR, c.subject_key) IN (
        SELECT coalesce(s.subject_number::VARCHAR, s.subject_key)
        FROM covariates s WHERE s.human_readable_id IN (SELECT claim FROM chosen)
    )
), pairs AS MATERIALIZED (
    SELECT least(a.claim, b.claim) AS a, greatest(a.claim, b.claim) AS b, a.object IS NOT DISTINCT FROM b.object AS on_same,
           a.starts_on <= b.ends_on AND b.starts_on <= a.ends_on AS same_time,  -- null: unknown
           a.numbers AS of_a, b.numbers AS of_b,
           list_has_all(b.numbers, a.numbers) AS b_has_all, list_has_all(a.numbers, b.numbers) AS a_has_all,
           a.status <> b.status AND 'SUSPECTED' NOT IN (a.status, b.status) AS opposite,
           a.object IS NOT NULL AND b.object IS NOT NULL AS have_objects
    FROM given a JOIN given b USING (about, type)
    -- From the chosen ones: a subject may have thousands of claims.
    WHERE a.is_chosen AND (a.claim < b.claim OR NOT b.is_chosen)
      AND a.text_unit_number <> b.text_unit_number AND a.description <> b.description
), differing AS MATERIALIZED (
    SELECT a, b, CASE
        WHEN opposite THEN CASE WHEN on_same AND same_time IS DISTINCT FROM false AND a_has_all AND b_has_all
                                THEN 'status' END
        WHEN on_same AND same_time IS DISTINCT FROM false AND NOT a_has_all AND NOT b_has_all THEN 'number'
        WHEN on_same AND same_time = false AND len(list_filter(  -- numbers that a date does not have tell events apart
            list_concat(of_a, of_b), lambda n: NOT (list_contains(of_a, n) AND list_contains(of_b, n))
                AND NOT regexp_full_match(n, '0?[1-9]|[12]\d|3[01]|[12]\d{3}|\d{1,2}\.\d{1,2}\.\d{2,4}'))) = 0
            THEN 'date'
        WHEN have_objects AND NOT on_same AND same_time AND a_has_all AND b_has_all THEN 'object'
    END AS differs
    FROM pairs
), compared AS MATERIALIZED (
    SELECT DISTINCT unnest([a, b]) AS claim FROM differing WHERE differs IS NOT NULL
), listed AS MATERIALIZED (
    SELECT c.human_readable_id AS claim, regexp_extract_all(lower(c.description), '[\p{L}\p{M}\p{N}]+') AS words,
           regexp_extract_all(lower(concat_ws(' ', c.subject_id, c.object_id)), '[\p{L}\p{M}\p{N}]+') AS names
    FROM covariates c WHERE c.human_readable_id IN (SELECT claim FROM compared)
), content_words AS (
    SELECT claim, word FROM (SELECT claim, unnest(words) AS word, names FROM listed)
    WHERE NOT list_contains(names, word) AND NOT regexp_full_match(word, '\d+')
      AND word NOT IN (SELECT unnest(l.stop_words) FROM search.languages l)
), wording AS MATERIALIZED (
    SELECT claim, coalesce(list(DISTINCT word) FILTER (word IS NOT NULL), []) AS words
    FROM compared LEFT JOIN content_words USING (claim) GROUP BY claim
)
SELECT p.a, p.b, p.differs
FROM differing p JOIN wording v ON v.claim = p.a JOIN wording w ON w.claim = p.b
WHERE p.differs IS NOT NULL
  AND len(list_intersect(v.words, w.words)) >= len(list_distinct(list_concat(v.words, w.words)))
      * CASE WHEN p.differs IN ('status', 'number') THEN 0.5 ELSE 0.75 END;
COMMENT ON MACRO TABLE search.contradicting_pairs IS
    'Helper of contradictions: the pairs of claims, without their passages.';

CREATE OR REPLACE MACRO contradictions(claims := NULL) AS TABLE
WITH alike AS MATERIALIZED (
    FROM search.contradicting_pairs(claims)
), placed AS MATERIALIZED (
    SELECT c.human_readable_id AS claim, c.description, c.status, c.object_id AS object, c.start_date, d.document_date,
           d.title AS document, d.source, d.id AS document_id, c.text_unit_number AS text_unit,
           t.start_char + coalesce(nullif(strpos(t.text, c.source_text), 0) - 1, 0) AS start_char,
           CASE WHEN strpos(t.text, c.source_text) > 0
                THEN t.start_char + strpos(t.text, c.source_text) - 1 + length(c.source_text)
                ELSE t.end_char END AS end_char,
           c.starts_on, c.subject_id, c.type
    FROM covariates c
    LEFT JOIN text_units t ON t.human_readable_id = c.text_unit_number
    LEFT JOIN documents d ON d.id = c.document_id
    WHERE c.human_readable_id IN (SELECT a FROM alike UNION SELECT b FROM alike)
), dated AS (
    SELECT p.differs, v, w,
           CASE WHEN v.document_date <> w.document_date THEN v.document_date > w.document_date
                WHEN v.starts_on <> w.starts_on THEN v.starts_on > w.starts_on END AS v_is_later
    FROM alike p JOIN placed v ON v.claim = p.a JOIN placed w ON w.claim = p.b
)
SELECT d.v.subject_id AS subject, d.v.type AS type, d.differs,
       CASE WHEN d.v_is_later THEN d.w ELSE d.v END AS one, CASE WHEN d.v_is_later THEN d.v ELSE d.w END AS other,
       d.v_is_later IS NOT NULL AS other_is_later
FROM dated d
-- A sentence may be the source of several claims.
QUALIFY row_number() OVER (PARTITION BY d.v.text_unit, d.v.start_char, d.w.text_unit, d.w.start_char
                           ORDER BY d.v.claim, d.w.claim) = 1
ORDER BY subject, type, d.v.claim, d.w.claim;
COMMENT ON MACRO TABLE contradictions IS
    'Pairs of claims on the same subject and type that are alike but for a status, number, date or object, each with its document and the characters of the quoted passage. claims: only pairs with one of these human_readable_ids.';
