-- Titles and questions are compared without what rarely differs: what graphrag_assets/text/words.py does, but for rare
-- characters.

CREATE MACRO this.lower_letters(text) AS replace(replace(lower(replace(nfc_normalize(text), 'İ', 'i')), 'ß', 'ss'), 'ς', 'σ');

CREATE MACRO this.title_key(title) AS trim(regexp_replace(
    translate(this.lower_letters(title::VARCHAR), '’‘"“”„«»', ''''''), '\s+', ' ', 'g'), ' ''');

-- Scripts that are written without spaces as overlapping pairs of characters with spaces between.
CREATE MACRO this.space_bigrams(text) AS (
    array_to_string(list_transform(
        regexp_extract_all(text, '[{unspaced}]+|[^{unspaced}]+'),
        lambda part: CASE WHEN regexp_matches(part, '^[{unspaced}]') THEN
            ' ' || array_to_string(list_transform(
                range(1, greatest(length(part), 2)), lambda place: part[place:place + 1]), ' ') || ' '
        ELSE part END
    ), '')
);

-- Lower-case text without diacritics.
CREATE MACRO this.fold_letters(text) AS replace(replace(replace(regexp_replace(
    translate(text, '{accented}', '{plain}'), '[\x{300}-\x{36f}]', '', 'g'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');

-- The distinct words of a query as the index has them: lower case, no diacritics, no possessives. Without the stop words of
-- the language of most documents, unless there are no others.
CREATE MACRO this.search_words(query) AS (
    SELECT CASE WHEN len(w.kept) > 0 THEN w.kept ELSE w.words END
    FROM (
        SELECT v.words, list_filter(v.words, lambda word: NOT list_contains(coalesce(s.stop_words, []), word)) AS kept
        FROM (SELECT arg_max(l.stop_words, l.documents) AS stop_words FROM this.languages l) s, (
            SELECT list_distinct(regexp_extract_all(this.fold_letters(this.space_bigrams(p.plain)), '[\p{L}\p{M}\p{N}]+')) AS words
            FROM (
                SELECT regexp_replace(regexp_replace(this.lower_letters(g._g_searched), '[{optional_marks}\x{ad}]', '', 'g'),
                                      {possessive}, '\1', 'g') AS plain
                FROM (SELECT query AS _g_searched) g
            ) p
        ) v
    ) w
);

-- Searching: entities by name, texts and entities by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009).

-- The number by which an entity is called; null for a name, also for one of digits.
CREATE MACRO this.entity_number(title) AS
    try_cast(CASE WHEN typeof(title) LIKE '%INT' OR typeof(title) = 'INTEGER' THEN title::VARCHAR END AS BIGINT);

-- The entity of a name or number. A name of several is an error that lists them: rows of both would look like those of one.
CREATE MACRO this.entities_called(title) AS TABLE
WITH _g_called AS MATERIALIZED (SELECT title AS _g_title),
wanted AS MATERIALIZED (
    SELECT this.title_key(g._g_title) AS key, this.entity_number(g._g_title) AS number FROM _g_called g
), called AS MATERIALIZED (
    SELECT e.human_readable_id AS entity, e.title, e.type, e.title_key, w.key
    FROM wanted w JOIN this.entity_names n ON n.name = md5_number_lower(w.key)
    JOIN this.entities e ON e.human_readable_id = n.entity WHERE w.number IS NULL
    UNION SELECT e.human_readable_id, e.title, e.type, e.title_key, e.title_key
    FROM this.entities e WHERE e.title = (SELECT g._g_title::VARCHAR FROM _g_called g)
), exact AS MATERIALIZED (  -- a spelling without accents or hyphens counts where nothing is called so exactly
    SELECT c.entity, c.title, c.type FROM called c
    WHERE c.title_key = c.key OR EXISTS (
        FROM this.entity_aliases a WHERE a.alias_key = c.key AND a.title_key = c.title_key)
), meant AS MATERIALIZED (
    SELECT x.entity, x.title, x.type FROM exact x
    UNION ALL SELECT c.entity, c.title, c.type FROM called c WHERE NOT EXISTS (FROM exact)
), several AS (
    SELECT count(*) AS n, string_agg(m.title || ' (' || m.type || ', number ' || m.entity || ')', ', ' ORDER BY m.entity) AS listed
    FROM meant m
)
SELECT CASE WHEN s.n = 1 THEN m.entity ELSE error(
           (SELECT g._g_title::VARCHAR FROM _g_called g) || ' may be any of ' || s.n || ' entities: ' || s.listed
           || '. Give the number in place of the name.') END AS entity
FROM meant m, several s
UNION ALL
SELECT e.human_readable_id FROM wanted w JOIN this.entities e ON e.human_readable_id = w.number;
CREATE OR REPLACE MACRO entities_called(title) AS TABLE
WITH _g_entities_called AS MATERIALIZED (SELECT title AS _g_title)
SELECT c.entity AS human_readable_id FROM this.entities_called((SELECT g._g_title FROM _g_entities_called g)) c;
COMMENT ON MACRO TABLE entities_called IS
    'human_readable_id of the entity of that title or alias, however it is written; an integer is the number of an entity. No rows: none, see find_entity. A name of several entities is an error that lists them.';

-- A normalized title without accents, and with one form of hyphens and apostrophes.
CREATE MACRO this.without_marks(key) AS translate(strip_accents(key), '’‘`´‐‑–', '''''''''---');

-- Whether two names have the last word in common and one has the initial of the other's first word: "W. Brandt".
CREATE MACRO this.fit_initials(words, others) AS
    len(words) > 1 AND len(others) > 1 AND words[-1] = others[-1] AND left(words[1], 1) = left(others[1], 1)
    AND (regexp_matches(words[1], '^\p{L}(\.|$)') OR regexp_matches(others[1], '^\p{L}(\.|$)'));

CREATE OR REPLACE MACRO find_entity(text, k := 10) AS TABLE
WITH _g_find_entity AS MATERIALIZED (SELECT text AS _g_text),
wanted AS MATERIALIZED (
    SELECT w.key, this.without_marks(w.key) AS plain, string_split(this.without_marks(w.key), ' ') AS words
    FROM (SELECT this.title_key(g._g_text) AS key FROM _g_find_entity g) w
), names AS (
    SELECT e.human_readable_id AS entity, e.title_key AS key, 'title' AS named FROM this.entities e
    UNION
    SELECT e.human_readable_id, a.alias_key, 'alias'
    FROM this.entity_aliases a JOIN this.entities e ON e.title_key = a.title_key
), plain AS (
    SELECT n.entity, n.key, n.named, this.without_marks(n.key) AS plain FROM names n
), compared AS (
    SELECT p.entity, p.key,
           CASE WHEN p.key = w.key THEN p.named WHEN p.plain = w.plain THEN 'marks'
                WHEN this.fit_initials(w.words, string_split(p.plain, ' ')) THEN 'initials'
                WHEN list_has_all(string_split(p.plain, ' '), w.words) THEN 'part of the name'
                WHEN list_has_all(w.words, string_split(p.plain, ' ')) THEN 'name and more'
                WHEN damerau_levenshtein(p.plain, w.plain) <= 1 + length(w.plain) // 8 THEN 'spelling'
                WHEN jaro_winkler_similarity(p.plain, w.plain) > 0.88 THEN 'alike' END AS match,
           CASE WHEN p.key = w.key THEN 1 WHEN p.plain = w.plain THEN 0.99
                ELSE 0.98 * greatest(jaro_winkler_similarity(p.plain, w.plain),
                                     least(length(p.plain), length(w.plain)) / greatest(length(p.plain), length(w.plain)))
           END AS score
    FROM plain p, wanted w
), best AS (
    SELECT c.entity, max_by({'name': c.key, 'match': c.match, 'score': c.score},
                            (c.score, c.match IN ('title', 'alias'), c.key)) AS found
    FROM compared c WHERE c.match IS NOT NULL GROUP BY c.entity
)
SELECT e.title, e.type, b.found.match AS match, b.found.name AS name, round(b.found.score, 3) AS score, e.degree,
       e.description, e.human_readable_id, e.id
FROM best b JOIN this.entities e ON e.human_readable_id = b.entity
ORDER BY b.found.match IN ('title', 'alias', 'marks') DESC, b.found.match IN ('initials', 'spelling') DESC,
         b.found.score DESC, e.degree DESC, e.human_readable_id
LIMIT greatest(coalesce(k, 10), 0);
COMMENT ON MACRO TABLE find_entity IS
    'The entities that a text may name, best first: by title or alias, without marks (accents, forms of hyphens and apostrophes), by initials, by part of the name, or by spelling (match). name: the normalized title or alias that was compared. Reads all names.';

CREATE MACRO this.bm25(text_kind, query, k) AS TABLE
WITH _g_bm25 AS MATERIALIZED (SELECT text_kind AS _g_given, query AS _g_query),
asked AS MATERIALIZED (
    SELECT CASE WHEN lower(g._g_given) IN ('text_units', 'text_unit') THEN 'text_unit'
                WHEN lower(g._g_given) IN ('entities', 'entity') THEN 'entity'
                WHEN lower(g._g_given) IN ('community_reports', 'community_report') THEN 'community_report'
                ELSE error('bm25: ' || coalesce(g._g_given, 'NULL')
                           || ' is none of text_units, entities, community_reports.') END AS kind, g._g_query AS query
    FROM _g_bm25 g
),
words AS MATERIALIZED (
    SELECT DISTINCT unnest(this.search_words(a.query)) AS word FROM asked a
), stemmed AS MATERIALIZED (
    SELECT w.word, f.term FROM words w JOIN this.word_forms f ON f.beginning = left(w.word, 3) AND f.form = w.word
    WHERE f.beginning IN (SELECT left(o.word, 3) FROM words o)
), known AS MATERIALIZED (  -- pairs of characters are terms themselves
    FROM stemmed UNION ALL SELECT w.word, w.word FROM words w WHERE w.word NOT IN (SELECT o.word FROM stemmed o)
), terms AS MATERIALIZED (  -- a word may have several stems: the best counts in a text
    SELECT m.word, t.term, ln(1 + (s.texts - t.texts + 0.5) / (t.texts + 0.5)) AS rarity, s.mean_length
    FROM asked a, this.posting_terms t JOIN known m
      ON t.term = md5_number_lower((SELECT o.kind FROM asked o) || ' ' || m.term),
         this.posting_statistics s
    WHERE s.kind = a.kind
      AND t.term IN (SELECT md5_number_lower((SELECT o.kind FROM asked o) || ' ' || n.term) FROM known n)
), scores AS (
    SELECT p.number, t.word,
           max(t.rarity * p.n * 2.2 / (p.n + 1.2 * (0.25 + 0.75 * p.length / t.mean_length))) AS score
    FROM this.postings p JOIN terms t ON t.term = p.term
    GROUP BY p.number, t.word
)
SELECT number, round(sum(score), 9) AS score
FROM scores GROUP BY number ORDER BY round(sum(score), 9) DESC, number LIMIT greatest(coalesce(k, 10), 0);
CREATE OR REPLACE MACRO bm25(text_kind, query, k) AS TABLE
WITH _g_bm25_rows AS MATERIALIZED (SELECT text_kind AS _g_kind, query AS _g_query)
SELECT b.number AS human_readable_id, b.score
FROM this.bm25((SELECT g._g_kind FROM _g_bm25_rows g), (SELECT g._g_query FROM _g_bm25_rows g), k) b;
COMMENT ON MACRO TABLE bm25 IS
    'The k rows of a table (text_units, entities, community_reports) whose texts fit the query best by BM25: human_readable_id, score.';

CREATE OR REPLACE MACRO search_text(query, k := 10) AS TABLE
WITH _g_search_text AS MATERIALIZED (SELECT query AS _g_query),
best AS MATERIALIZED (SELECT * FROM this.bm25('text_units', (SELECT g._g_query FROM _g_search_text g), k))
SELECT b.score, t.human_readable_id, d.title AS document, d.id AS document_id, d.source, t.start_char, t.end_char, t.text, t.id
FROM best b
JOIN this.text_units t ON t.human_readable_id = b.number
LEFT JOIN this.documents d ON d.id = t.document_id
WHERE t.human_readable_id IN (SELECT number FROM best)
ORDER BY round(b.score, 9) DESC, t.human_readable_id;
COMMENT ON MACRO TABLE search_text IS
    'The k text units that fit the query best by BM25, best first, with document and characters.';
