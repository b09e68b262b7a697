-- Searching: entities by name, texts and entities by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009).

CREATE OR REPLACE MACRO entities_called(title) AS TABLE
    SELECT n.entity FROM search.entity_names n WHERE n.name = (SELECT md5_number_lower(title_key(title)));
COMMENT ON MACRO TABLE entities_called IS
    'human_readable_id of the entities of that title or accepted alias, however it is written; none if there is none.';

CREATE OR REPLACE MACRO word_terms(words) AS TABLE
WITH spelled AS (
    SELECT unnest(g.words) AS word,
           unnest(string_split(search.fold_letters(g.text), ' ')) AS form,
           unnest(string_split(search.fold_letters(search.spell_out(g.text)), ' ')) AS long_form
    FROM (SELECT words AS words, array_to_string(words, ' ') AS text) g
), asked AS MATERIALIZED (
    SELECT DISTINCT word, unnest([form, long_form]) AS form FROM spelled WHERE word IS NOT NULL
), near AS MATERIALIZED (
    SELECT DISTINCT a.word, a.form = f.form AS same, f.term, f.texts
    FROM asked a JOIN search.word_forms f ON f.beginning = left(a.form, 3)
    WHERE f.beginning IN (SELECT left(form, 3) FROM asked)
), own AS MATERIALIZED (
    SELECT DISTINCT word, term, texts FROM near WHERE same
), stripped AS MATERIALIZED (
    SELECT a.word, a.form[:-length(e.ending) - 1] || e.replacement AS term, e.forms
    FROM asked a JOIN search.word_endings e ON ends_with(a.form, e.ending)
    WHERE length(term) > 2 AND a.word NOT IN (SELECT word FROM own)
), stems AS MATERIALIZED (
    FROM own
    UNION ALL
    SELECT s.word, arg_max(s.term, {forms: s.forms, term: s.term}), arg_max(n.texts, {forms: s.forms, term: s.term})
    FROM stripped s JOIN near n ON n.word = s.word AND n.term = s.term GROUP BY s.word
), rare AS MATERIALIZED (
    SELECT word, term, texts FROM stems WHERE word NOT IN (SELECT word FROM stems WHERE texts > 2)
    UNION ALL
    SELECT s.word, s.term, 0 FROM (SELECT word, term FROM stripped UNION SELECT word, form FROM asked) s
    WHERE s.word NOT IN (SELECT word FROM stems)
), related AS (
    SELECT DISTINCT r.word, n.term, n.texts
    FROM rare r JOIN near n ON n.word = r.word AND n.texts >= greatest(r.texts, 1)
    WHERE abs(length(n.term) - length(r.term)) BETWEEN 1 AND 3 AND least(length(n.term), length(r.term)) > 4
      AND (starts_with(n.term, r.term) OR starts_with(r.term, n.term))
      AND regexp_full_match(CASE WHEN length(n.term) > length(r.term) THEN n.term ELSE r.term END, '\p{L}+')
    QUALIFY dense_rank() OVER (PARTITION BY r.word ORDER BY n.texts DESC, n.term) <= 4
), found AS MATERIALIZED (
    SELECT word, term, 1::DOUBLE AS weight FROM stems
    UNION ALL
    SELECT word, form, 1 FROM asked WHERE word NOT IN (SELECT word FROM stems)
    UNION ALL
    SELECT word, term, 0.5 FROM related
), concepts AS (
    SELECT word, min(term) FILTER (weight = 1) AS concept FROM found GROUP BY word
)
SELECT c.concept, f.term, max(f.weight) AS weight
FROM found f JOIN concepts c USING (word) GROUP BY ALL ORDER BY ALL;
COMMENT ON MACRO TABLE word_terms IS
    'The terms by which the words of a question are found. Of several with one concept the best counts in a text, by its weight.';

CREATE OR REPLACE MACRO bm25(text_kind, query, k) AS TABLE
WITH words AS MATERIALIZED (
    SELECT concept, weight, md5_number_lower(text_kind || ' ' || term) AS term FROM word_terms(search_words(query))
), terms AS MATERIALIZED (
    SELECT w.concept, t.term, w.weight * ln(1 + (s.texts - t.texts + 0.5) / (t.texts + 0.5)) AS rarity, s.mean_length
    FROM search.posting_terms t JOIN words w ON w.term = t.term, search.posting_statistics s
    WHERE s.kind = text_kind AND t.term IN (SELECT term FROM words)
), scores AS (
    SELECT p.number, t.concept,
           max(t.rarity * p.n * 2.2 / (p.n + 1.2 * (0.25 + 0.75 * p.length / t.mean_length))) AS score
    FROM search.postings p JOIN terms t ON t.term = p.term
    GROUP BY p.number, t.concept
)
SELECT number, sum(score) AS score
FROM scores GROUP BY number ORDER BY round(sum(score), 9) DESC, number LIMIT greatest(coalesce(k, 10), 0);
COMMENT ON MACRO TABLE bm25 IS
    'The k texts of a kind (text_unit, entity, community_report) that fit the query best by BM25: number, score.';

CREATE OR REPLACE MACRO search_text(query, k := 10) AS TABLE
WITH best AS MATERIALIZED (SELECT * FROM bm25('text_unit', query, k))
SELECT b.score, t.human_readable_id, d.title AS document, d.source, t.start_char, t.end_char, t.text, t.id
FROM best b
JOIN text_units t ON t.human_readable_id = b.number
LEFT JOIN documents d ON d.id = t.document_id
WHERE t.human_readable_id IN (SELECT number FROM best)
ORDER BY round(b.score, 9) DESC, t.human_readable_id;
COMMENT ON MACRO TABLE search_text IS
    'The k text units that fit the query best by BM25, best first, with document and characters.';

CREATE OR REPLACE MACRO search_entities(query, k := 10) AS TABLE
WITH best AS MATERIALIZED (SELECT * FROM bm25('entity', query, k))
SELECT b.score, e.human_readable_id, e.title, e.type, e.description, e.degree, e.frequency, e.id
FROM best b JOIN entities e ON e.human_readable_id = b.number
WHERE e.human_readable_id IN (SELECT number FROM best)
ORDER BY round(b.score, 9) DESC, e.human_readable_id;
COMMENT ON MACRO TABLE search_entities IS
    'The k entities whose title and description fit the query best by BM25, best first.';

CREATE OR REPLACE MACRO search_claims(query, k := 10) AS TABLE
WITH best AS MATERIALIZED (
    SELECT * FROM bm25('text_unit', query, 100)
), claims AS MATERIALIZED (
    SELECT c.human_readable_id, b.score, search_words(concat_ws(' ', c.subject_id, c.object_id, c.description)) AS words
    FROM covariates c JOIN best b ON b.number = c.text_unit_number
), shared AS MATERIALIZED (
    SELECT human_readable_id, word
    FROM (SELECT human_readable_id, unnest(list_distinct(words)) AS word FROM claims)
    WHERE word IN (SELECT unnest(search_words(query)))
), rarity AS (
    SELECT word, ln(1 + (SELECT count(*) FROM claims) / count(*)) AS rarity FROM shared GROUP BY word
), scores AS (
    SELECT s.human_readable_id, sum(r.rarity) AS score FROM shared s JOIN rarity r USING (word) GROUP BY ALL
)
SELECT round(coalesce(s.score, 0), 9) AS score, c.human_readable_id, c.subject_id, c.object_id, c.type, c.status,
       c.start_date, c.end_date, c.description, c.text_unit_number, c.id
FROM claims b
JOIN covariates c USING (human_readable_id)
LEFT JOIN scores s USING (human_readable_id)
ORDER BY 1 DESC, round(b.score, 9) DESC, c.human_readable_id LIMIT greatest(coalesce(k, 10), 0);
COMMENT ON MACRO TABLE search_claims IS
    'The k claims whose words fit the query best, out of those of the 100 text units that fit it best by BM25, best first.';
