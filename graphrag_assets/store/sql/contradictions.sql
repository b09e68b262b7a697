-- Claims that contradict each other: alike but for a status, number, date or object. Two descriptions that say different
-- things are no contradiction, and neither are two passages of one text unit, which tell things apart.
-- Input: the temporary table touched_covariates (id): only pairs with one of these are compared.

CREATE TEMP TABLE chosen_claims AS
SELECT human_readable_id AS claim, coalesce(subject_number::VARCHAR, subject_key) AS about, type
FROM covariates SEMI JOIN touched_covariates USING (id);

DELETE FROM search.contradicting_claims
WHERE a IN (SELECT claim FROM chosen_claims) OR b IN (SELECT claim FROM chosen_claims)
   OR a NOT IN (SELECT human_readable_id FROM covariates) OR b NOT IN (SELECT human_readable_id FROM covariates);

INSERT INTO search.contradicting_claims
WITH alike AS (  -- on one subject, of one type, in several text units
    SELECT about, type FROM (SELECT coalesce(subject_number::VARCHAR, subject_key) AS about, type, text_unit_number FROM covariates)
    SEMI JOIN chosen_claims USING (about, type)
    GROUP BY ALL HAVING min(text_unit_number) < max(text_unit_number)
), given AS MATERIALIZED (
    SELECT c.human_readable_id AS claim, about, c.type, c.text_unit_number, c.status, c.starts_on,
           coalesce(c.ends_on, c.starts_on) AS ends_on, c.description, c.document_id,
           -- An object may also be none, or a value such as £600,000.
           CASE WHEN NOT regexp_matches(c.object_id, '\d') THEN coalesce(c.object_number::VARCHAR, c.object_key) END AS object,
           list_distinct(list_transform(
               regexp_extract_all(
                   regexp_replace(  -- 1962-63 are two years
                       c.description, '\b(\d\d)(\d\d)[-–](\d\d)\b', '\1\2 \1\3', 'g'),
                   '[£$€¥]?\d+(?:[.,]\d+)*%?'),
               lambda n: replace(n, ',', ''))) AS numbers,
           regexp_extract_all(lower(c.description), '[\p{L}\p{M}\p{N}]+') AS words,
           regexp_extract_all(lower(concat_ws(' ', c.subject_id, c.object_id)), '[\p{L}\p{M}\p{N}]+') AS names
    FROM (SELECT *, coalesce(subject_number::VARCHAR, subject_key) AS about FROM covariates) c SEMI JOIN alike USING (about, type)
), content_words AS MATERIALIZED (
    SELECT DISTINCT claim, about, type, word FROM (SELECT claim, about, type, unnest(words) AS word, names FROM given)
    WHERE NOT list_contains(names, word) AND NOT regexp_full_match(word, '\d+')
      AND word NOT IN (SELECT unnest(l.stop_words) FROM search.languages l)
), wording AS MATERIALIZED (
    SELECT claim, list(word) AS words FROM content_words GROUP BY claim
), rarest AS (  -- Two claims that share half of their words share one of the rarer half of each.
    FROM (
        SELECT *, count(*) OVER (PARTITION BY about, type, word) AS uses FROM content_words
    ) QUALIFY row_number() OVER (PARTITION BY claim ORDER BY uses, word) <= count(*) OVER (PARTITION BY claim) // 2 + 1
), candidates AS MATERIALIZED (
    SELECT DISTINCT least(x.claim, y.claim) AS a, greatest(x.claim, y.claim) AS b
    FROM rarest x JOIN rarest y USING (about, type, word)
    WHERE x.claim <> y.claim AND x.claim IN (SELECT claim FROM chosen_claims)
      AND x.uses <= {most_claims}
), pairs AS (
    SELECT a.claim AS a, b.claim AS b, a.object IS NOT DISTINCT FROM b.object AS on_same,
           a.starts_on <= b.ends_on AND b.starts_on <= a.ends_on AS same_time,  -- null: unknown
           a.document_id = b.document_id AS one_document,
           a.numbers AS of_a, b.numbers AS of_b,
           list_has_all(b.numbers, a.numbers) AS b_has_all, list_has_all(a.numbers, b.numbers) AS a_has_all,
           a.status <> b.status AND 'SUSPECTED' NOT IN (a.status, b.status) AS opposite,
           a.object IS NOT NULL AND b.object IS NOT NULL AS have_objects
    FROM candidates c JOIN given a ON a.claim = c.a JOIN given b ON b.claim = c.b
    WHERE a.text_unit_number <> b.text_unit_number AND a.description <> b.description
), differing AS (
    SELECT *, CASE
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
)
SELECT p.a, p.b, p.differs,
       -- The share of common words, less where these are few, as a rule of succession would have it: a claim of two words
       -- is a label. A document seldom contradicts itself; what looks so are the items of a list.
       round(p.common / p.distinct_words * p.common / (p.common + 2) * CASE WHEN p.one_document THEN 0.5 ELSE 1 END, 4) AS likeness
FROM (
    SELECT d.*, len(list_intersect(v.words, w.words)) AS common, len(list_distinct(list_concat(v.words, w.words))) AS distinct_words
    FROM differing d JOIN wording v ON v.claim = d.a JOIN wording w ON w.claim = d.b WHERE d.differs IS NOT NULL
) p
WHERE p.common > 0
  AND p.common >= p.distinct_words * CASE WHEN p.differs IN ('status', 'number') THEN 0.5 ELSE 0.75 END
ORDER BY ALL;
