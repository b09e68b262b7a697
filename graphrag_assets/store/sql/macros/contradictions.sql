-- The claims that contradict each other; sql/contradictions.sql compares them when they are published.

CREATE OR REPLACE MACRO contradictions(claims := NULL, min_score := 0.0) AS TABLE
WITH _g_contradictions AS MATERIALIZED (SELECT claims AS _g_claims, min_score AS _g_min_score),
chosen AS MATERIALIZED (SELECT unnest(g._g_claims::INT[]) AS claim FROM _g_contradictions g),
pairs AS MATERIALIZED (  -- where both claims have several pairs, they are items of a list or the same words on several things
    SELECT p.a, p.b, p.differs, round(p.likeness / least(x.n, y.n), 4) AS score
    FROM own.contradicting_claims p
    JOIN (SELECT unnest([o.a, o.b]) AS claim, count(*) AS n FROM own.contradicting_claims o GROUP BY claim) x ON x.claim = p.a
    JOIN (SELECT unnest([o.a, o.b]) AS claim, count(*) AS n FROM own.contradicting_claims o GROUP BY claim) y ON y.claim = p.b
), alike AS MATERIALIZED (
    SELECT p.* FROM pairs p
    WHERE ((SELECT g._g_claims IS NULL FROM _g_contradictions g) OR p.a IN (FROM chosen) OR p.b IN (FROM chosen))
      AND p.score >= (SELECT coalesce(g._g_min_score, 0) FROM _g_contradictions g)
), placed AS MATERIALIZED (
    SELECT c.human_readable_id, c.description, c.status, c.object_id AS object, c.start_date, d.document_date,
           d.title AS document, d.source, d.id AS document_id, c.text_unit_number,
           t.start_char + coalesce(nullif(strpos(t.text, c.source_text), 0) - 1, 0) AS start_char,
           CASE WHEN strpos(t.text, c.source_text) > 0
                THEN t.start_char + strpos(t.text, c.source_text) - 1 + length(c.source_text)
                ELSE t.end_char END AS end_char,
           c.starts_on, c.subject_id, c.type
    FROM own.covariates c
    LEFT JOIN own.text_units t ON t.human_readable_id = c.text_unit_number
    LEFT JOIN own.documents d ON d.id = c.document_id
    WHERE c.human_readable_id IN (SELECT a FROM alike UNION SELECT b FROM alike)
), dated AS (
    SELECT p.differs, p.score, v, w,
           CASE WHEN v.document_date <> w.document_date THEN v.document_date > w.document_date
                WHEN v.starts_on <> w.starts_on THEN v.starts_on > w.starts_on END AS v_is_later
    FROM alike p JOIN placed v ON v.human_readable_id = p.a JOIN placed w ON w.human_readable_id = p.b
)
SELECT d.score, d.v.subject_id AS subject, d.v.type AS type, d.differs,
       CASE WHEN d.v_is_later THEN d.w ELSE d.v END AS one, CASE WHEN d.v_is_later THEN d.v ELSE d.w END AS other,
       d.v_is_later IS NOT NULL AS other_is_later
FROM dated d
-- A sentence may be the source of several claims.
QUALIFY row_number() OVER (PARTITION BY d.v.text_unit_number, d.v.start_char, d.w.text_unit_number, d.w.start_char
                           ORDER BY d.score DESC, d.v.human_readable_id, d.w.human_readable_id) = 1
ORDER BY d.score DESC, subject, type, d.v.human_readable_id, d.w.human_readable_id;
COMMENT ON MACRO TABLE contradictions IS
    'Pairs of claims on the same subject and type that are alike but for a status, number, date or object, each with its document and the characters of the quoted passage; the best score first. score: 0 to 1, the words that both share besides what differs, less where these are few, in one document, or where each claim is in several pairs. claims: only pairs with one of these human_readable_ids.';
