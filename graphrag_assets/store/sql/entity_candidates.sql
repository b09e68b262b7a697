-- Pairs of names that may be one thing. Input: names (n, key, type, frequency), edges (a, b, in both directions), vectors
-- (n, vector). Output: pairs (a, b, kind, score), a < b; blocked (a, b).
-- A block is what two names must have in common to be compared; one with more than $most names says nothing.

CREATE OR REPLACE TEMP TABLE forms AS
SELECT n, key, type, frequency, folded, string_split(folded, ' ') AS words, replace(folded, ' ', '') AS solid,
       regexp_replace(folded, '[^0-9]+', ' ', 'g') AS digits, length(folded) AS size
FROM (SELECT *, trim(regexp_replace(strip_accents(key), '[\s\p{Pd}_.,;:/''’"()&]+', ' ', 'g')) AS folded FROM names)
WHERE folded <> '';

CREATE OR REPLACE TEMP TABLE pairs (a INTEGER, b INTEGER, kind VARCHAR, score DOUBLE);

-- The same words in another order, without accents, or with other spaces.
INSERT INTO pairs
WITH blocks AS (
    SELECT n, hash(list_sort(words)) AS block FROM forms UNION SELECT n, hash(solid) FROM forms
), few AS (SELECT block FROM blocks GROUP BY block HAVING count(*) BETWEEN 2 AND $most)
SELECT DISTINCT a.n, b.n, 'spelling', 0.9
FROM (FROM blocks SEMI JOIN few USING (block)) a JOIN (FROM blocks SEMI JOIN few USING (block)) b USING (block)
WHERE a.n < b.n;

-- Multi-word names that differ in one word, by an abbreviation or a misspelling of it.
INSERT INTO pairs
WITH places AS (SELECT n, words, unnest(range(1, len(words) + 1)) AS i FROM forms WHERE len(words) BETWEEN 2 AND 8),
blocks AS (
    SELECT n, words[i] AS word, length(words[i]) AS size,
           hash(array_to_string(words[:i - 1], ' '), i, array_to_string(words[i + 1:], ' ')) AS block
    FROM places
), few AS (SELECT block FROM blocks GROUP BY block HAVING count(*) BETWEEN 2 AND $most),
compared AS (FROM blocks SEMI JOIN few USING (block)),
differing AS (
    SELECT a.n AS a, b.n AS b, least(a.size, b.size) AS size, jaro_winkler_similarity(a.word, b.word) AS similarity,
           least(a.size, b.size) >= 3 AND (starts_with(a.word, b.word) OR starts_with(b.word, a.word)) AS starts,
           left(a.word, 1) = left(b.word, 1) AS same_start
    FROM compared a JOIN compared b USING (block)
    WHERE a.n < b.n AND a.word <> b.word AND NOT regexp_matches(a.word || b.word, '[0-9]')
)
SELECT a, b, 'word', max(0.7 * greatest(similarity, 0.9 * starts::INT)) FROM differing
WHERE starts OR (size >= 4 AND same_start AND similarity >= 0.85) GROUP BY ALL;

-- An abbreviation, and a name with these initials; where many have them, only with a common neighbor.
CREATE OR REPLACE TEMP TABLE longer AS
WITH initials AS (
    SELECT DISTINCT n, unnest([
        array_to_string(list_transform(words, lambda w: left(w, 1)), ''),
        array_to_string(list_transform(list_filter(words, lambda w: NOT list_contains($small, w)), lambda w: left(w, 1)), ''),
        array_to_string(list_transform(string_split(key, ' '), lambda w: left(w, 1)), '')
    ]) AS letters
    FROM forms WHERE len(words) BETWEEN 2 AND 10
)
SELECT 'abbreviation' AS kind, s.n AS short, f.n AS long, if(s.size > 2, 0.6, 0.4) AS score
FROM initials f JOIN forms s ON s.solid = f.letters AND s.n <> f.n  -- "u.s." has its own initials
WHERE s.size BETWEEN 2 AND 12 AND NOT contains(s.key, ' ');

-- A name that begins or ends a longer one.
INSERT INTO longer
WITH places AS (
    SELECT n, words, unnest(range(1, len(words))) AS i FROM forms WHERE len(words) BETWEEN 2 AND 10
), parts AS (
    SELECT n, array_to_string(words[:i], ' ') AS part FROM places
    UNION SELECT n, array_to_string(words[i + 1:], ' ') FROM places
)
SELECT 'short form', s.n, p.n, 0.55 FROM parts p JOIN forms s ON s.folded = p.part WHERE s.size >= 3;

INSERT INTO pairs
WITH counted AS (SELECT *, count(*) OVER (PARTITION BY kind, short) AS several FROM longer),
many AS (
    SELECT DISTINCT kind, short, long FROM counted JOIN edges x ON x.a = long JOIN edges y ON y.a = short AND y.b = x.b
    WHERE several BETWEEN $few + 1 AND $most * $most
)
SELECT least(short, long), greatest(short, long), kind, max(score * (0.6 + 0.4 / several))
FROM counted LEFT JOIN (SELECT *, true AS related FROM many) USING (kind, short, long)
WHERE several <= $few OR related GROUP BY ALL;

-- Names whose vectors are compared: both have a word or a neighbor that few others have.
CREATE OR REPLACE TEMP TABLE blocked AS
WITH blocks AS (
    SELECT n, unnest(list_transform(words, lambda w: hash(w))) AS block FROM forms SEMI JOIN vectors USING (n)
    UNION SELECT a, hash(b) FROM edges SEMI JOIN vectors ON n = a
), few AS (SELECT block FROM blocks GROUP BY block HAVING count(*) BETWEEN 2 AND $few),
compared AS (SELECT block, n, type FROM blocks SEMI JOIN few USING (block) JOIN forms USING (n))
SELECT DISTINCT a.n AS a, b.n AS b FROM compared a JOIN compared b USING (block)
WHERE a.n < b.n AND (a.type = b.type OR a.type IN ('', 'NAME', 'UNKNOWN') OR b.type IN ('', 'NAME', 'UNKNOWN'));

-- Names with the same neighbors, which are not related to each other. A neighbor of many says nothing.
INSERT INTO pairs
WITH degrees AS (SELECT a AS n, count(*) AS degree FROM edges GROUP BY a),
telling AS (SELECT a, b FROM edges JOIN degrees d ON d.n = b WHERE degree BETWEEN 2 AND $few),
shared AS (SELECT x.a, y.a AS b, count(*) AS n FROM telling x JOIN telling y USING (b) WHERE x.a < y.a GROUP BY ALL)
SELECT a, b, 'neighbors', 0.4 * s.n / (p.degree + q.degree - s.n)
FROM shared s JOIN degrees p ON p.n = a JOIN degrees q ON q.n = b
WHERE s.n >= 3 AND 2 * s.n >= p.degree + q.degree - s.n AND NOT EXISTS (FROM edges e WHERE e.a = s.a AND e.b = s.b);
