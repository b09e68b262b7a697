-- The pairs of the same or an unknown type, with what else they share; the more evidence, the higher the score.
WITH united AS (
    SELECT a, b, 1 - product(1 - score) AS score, string_agg(kind, ', ' ORDER BY kind) AS kinds
    FROM (SELECT a, b, kind, max(score) AS score FROM pairs GROUP BY ALL) GROUP BY a, b
), typed AS (
    SELECT u.*, x.key AS a_key, y.key AS b_key FROM united u JOIN names x ON x.n = a JOIN names y ON y.n = b
    WHERE x.type = y.type OR x.type IN ('', 'NAME', 'UNKNOWN') OR y.type IN ('', 'NAME', 'UNKNOWN')
), degrees AS (SELECT a AS n, count(*) AS degree FROM edges GROUP BY a),
shared_neighbors AS (
    SELECT t.a, t.b, count(*) AS n FROM typed t JOIN edges x ON x.a = t.a JOIN edges y ON y.a = t.b AND y.b = x.b GROUP BY ALL
), shared_documents AS (
    SELECT t.a, t.b, count(*) AS n
    FROM typed t JOIN named_in x ON x.n = t.a JOIN named_in y ON y.n = t.b AND y.document = x.document GROUP BY ALL
), evident AS (
    SELECT t.*, coalesce(s.n, 0) AS neighbors, coalesce(d.n, 0) AS documents,
           coalesce(s.n / (p.degree + q.degree - s.n), 0) AS overlap, least(p.degree, q.degree) AS degree
    FROM typed t LEFT JOIN shared_neighbors s USING (a, b) LEFT JOIN shared_documents d USING (a, b)
    LEFT JOIN degrees p ON p.n = a LEFT JOIN degrees q ON q.n = b
)
SELECT a, b, kinds, documents, neighbors,
       round(CASE WHEN neighbors + documents > 0
                  THEN score + (1 - score) * (0.4 * least(1, 2 * overlap) + 0.1 * (documents > 0)::INT)
                  WHEN degree >= 3 THEN 0.8 * score ELSE score END, 3) AS score
FROM evident ORDER BY a, b
