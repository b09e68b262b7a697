-- One letter more, less, changed, or two exchanged: names that are the same without one of their letters. Of all blocks
-- those whose hash has the remainder $part, so that memory is bounded.
INSERT INTO pairs
WITH short AS (FROM forms WHERE size BETWEEN 5 AND 60), places AS (
    SELECT n, folded, unnest(range(0, size + 1)) AS i FROM short
), blocks AS MATERIALIZED (
    SELECT DISTINCT n, hash(CASE i WHEN 0 THEN folded ELSE left(folded, i - 1) || substr(folded, i + 1) END) AS block
    FROM places WHERE block % $parts = $part
), few AS (SELECT block FROM blocks GROUP BY block HAVING count(*) BETWEEN 2 AND $most),
compared AS (FROM blocks SEMI JOIN few USING (block)),
near_pairs AS (SELECT DISTINCT a.n AS a, b.n AS b FROM compared a JOIN compared b USING (block) WHERE a.n < b.n),
differing AS (
    SELECT a, b, least(f.size, g.size) AS size, least(f.frequency, g.frequency) AS frequency,
           damerau_levenshtein(f.folded, g.folded) AS distance
    FROM near_pairs JOIN short f ON f.n = a JOIN short g ON g.n = b
    WHERE f.digits = g.digits
      -- Not "model a" and "model b".
      AND (len(f.words) <> len(g.words) OR list_bool_and(list_transform(
            list_zip(f.words, g.words), lambda w: w[1] = w[2] OR least(length(w[1]), length(w[2])) >= 4)))
)
SELECT a, b, 'letters', (1 - 2 * distance / size) * CASE WHEN frequency > 5 THEN 0.7 ELSE 1 END
FROM differing WHERE distance <= CASE WHEN size >= 12 THEN 2 ELSE 1 END;
