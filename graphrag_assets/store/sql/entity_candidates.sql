-- Pairs of names that may be one thing, as the table candidates. Input: the working tables; vectors (n, vector), n being
-- the number of an entity.
-- A block is what two names must have in common to be compared; one with more than $most names says nothing. So a name is
-- compared only with those in its blocks, and a million names take minutes.

CREATE OR REPLACE TEMP TABLE names AS
SELECT human_readable_id::INTEGER AS n, id, title_key AS key, type, frequency, text_unit_ids FROM entities;

CREATE OR REPLACE TEMP TABLE edges AS  -- in both directions
WITH ends AS (
    SELECT s.human_readable_id::INTEGER AS a, t.human_readable_id::INTEGER AS b
    FROM relationships r JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
)
FROM ends UNION ALL SELECT b, a FROM ends;

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
INSERT INTO pairs
WITH blocks AS (
    SELECT n, unnest(list_transform(words, lambda w: hash(w))) AS block FROM forms SEMI JOIN vectors USING (n)
    UNION SELECT a, hash(b) FROM edges SEMI JOIN vectors ON n = a
), few AS (SELECT block FROM blocks GROUP BY block HAVING count(*) BETWEEN 2 AND $few),
compared AS (SELECT block, n, type FROM blocks SEMI JOIN few USING (block) JOIN forms USING (n)),
blocked AS (
    SELECT DISTINCT a.n AS a, b.n AS b FROM compared a JOIN compared b USING (block)
    WHERE a.n < b.n AND (a.type = b.type OR a.type IN ('', 'NAME', 'UNKNOWN') OR b.type IN ('', 'NAME', 'UNKNOWN'))
)
SELECT a, b, 'vectors', 0.6 * array_cosine_similarity(v.vector, w.vector)
FROM blocked JOIN vectors v ON v.n = a JOIN vectors w ON w.n = b
WHERE array_cosine_similarity(v.vector, w.vector) >= 0.85;

-- Names with the same neighbors, which are not related to each other. A neighbor of many says nothing.
INSERT INTO pairs
WITH degrees AS (SELECT a AS n, count(*) AS degree FROM edges GROUP BY a),
telling AS (SELECT a, b FROM edges JOIN degrees d ON d.n = b WHERE degree BETWEEN 2 AND $few),
shared AS (SELECT x.a, y.a AS b, count(*) AS n FROM telling x JOIN telling y USING (b) WHERE x.a < y.a GROUP BY ALL)
SELECT a, b, 'neighbors', 0.4 * s.n / (p.degree + q.degree - s.n)
FROM shared s JOIN degrees p ON p.n = a JOIN degrees q ON q.n = b
WHERE s.n >= 3 AND 2 * s.n >= p.degree + q.degree - s.n AND NOT EXISTS (FROM edges e WHERE e.a = s.a AND e.b = s.b);

-- Names that a relationship says are one thing's.
INSERT INTO pairs
SELECT DISTINCT least(s.n, t.n), greatest(s.n, t.n), 'stated', 0.99
FROM relationships r JOIN names s ON s.id = r.source_id JOIN names t ON t.id = r.target_id
WHERE len(list_filter(r.types, lambda one: regexp_full_match(one.type,
    '(IS_|WAS_)?(FORMERLY|PREVIOUSLY|NOW|ALSO|BETTER)_(KNOWN|NAMED|CALLED)(_AS)?|IS_(NAMED|CALLED)|(IS_|WAS_)?KNOWN_AS|TRAD(ES|ING)_AS|RENAMED(_TO|_AS|_FROM)?|ALIAS(_OF)?'
))) > 0;

-- The pairs of the same or an unknown type, with what else they share; the more evidence, the higher the score. Names that
-- differ in a number are two things.
CREATE OR REPLACE TEMP TABLE candidates AS
WITH united AS (
    SELECT a, b, 1 - product(1 - score) AS score, string_agg(kind, ', ' ORDER BY kind) AS kinds
    FROM (SELECT a, b, kind, max(score) AS score FROM pairs GROUP BY ALL) GROUP BY a, b
), typed AS (
    SELECT u.* FROM united u JOIN forms x ON x.n = a JOIN forms y ON y.n = b
    WHERE (x.type = y.type OR x.type IN ('', 'NAME', 'UNKNOWN') OR y.type IN ('', 'NAME', 'UNKNOWN'))
      AND (trim(x.digits) = trim(y.digits) OR trim(x.digits) = '' OR trim(y.digits) = '')
), degrees AS (SELECT a AS n, count(*) AS degree FROM edges GROUP BY a),
shared_neighbors AS (
    SELECT t.a, t.b, count(*) AS n FROM typed t JOIN edges x ON x.a = t.a JOIN edges y ON y.a = t.b AND y.b = x.b GROUP BY ALL
), named_in AS (
    SELECT DISTINCT n, document_id FROM (SELECT n, unnest(text_unit_ids) AS id FROM names) JOIN text_units USING (id)
), shared_documents AS (
    SELECT t.a, t.b, count(*) AS n
    FROM typed t JOIN named_in x ON x.n = t.a JOIN named_in y ON y.n = t.b AND y.document_id = x.document_id GROUP BY ALL
), evident AS (
    SELECT t.*, coalesce(s.n, 0) AS neighbors, coalesce(d.n, 0) AS documents,
           coalesce(s.n / (p.degree + q.degree - s.n), 0) AS overlap, least(p.degree, q.degree) AS degree
    FROM typed t LEFT JOIN shared_neighbors s USING (a, b) LEFT JOIN shared_documents d USING (a, b)
    LEFT JOIN degrees p ON p.n = a LEFT JOIN degrees q ON q.n = b
), scored AS (
    SELECT a, b, kinds, documents, neighbors,
           round(CASE WHEN neighbors + documents > 0
                      THEN score + (1 - score) * (0.4 * least(1, 2 * overlap) + 0.1 * (documents > 0)::INT)
                      WHEN degree >= 3 THEN 0.8 * score ELSE score END, 3) AS score
    FROM evident
), ordered AS (  -- the less frequent one would stand for the other; of two that are as frequent, the shorter one
    SELECT s.*, x.key AS a_key, y.key AS b_key,
           (x.frequency, length(x.key), y.key) > (y.frequency, length(y.key), x.key) AS first_stays
    FROM scored s JOIN names x ON x.n = a JOIN names y ON y.n = b WHERE score >= $least
)
SELECT if(first_stays, b_key, a_key) AS name_key, if(first_stays, a_key, b_key) AS other_key, score, kinds AS evidence,
       documents, neighbors
FROM ordered;
