-- Searching: entities by name, texts and entities by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009).

CREATE OR REPLACE MACRO entities_called(title) AS TABLE
    SELECT n.entity FROM entity_names n WHERE n.name = (SELECT md5_number_lower(title_key(title)));
COMMENT ON MACRO TABLE entities_called IS
    'human_readable_id of the entities of that title or accepted alias, however it is written; none if there is none.';

CREATE OR REPLACE MACRO bm25(text_kind, query, k) AS TABLE
WITH terms AS MATERIALIZED (
    SELECT t.term, ln(1 + (s.texts - t.texts + 0.5) / (t.texts + 0.5)) AS rarity, s.mean_length
    FROM posting_terms t, posting_statistics s
    WHERE s.kind = text_kind
      AND t.term IN (SELECT md5_number_lower(text_kind || ' ' || unnest(search_words(query))))
)
SELECT p.number, sum(t.rarity * p.n * 2.2 / (p.n + 1.2 * (0.25 + 0.75 * p.length / t.mean_length))) AS score
FROM postings p JOIN terms t ON t.term = p.term
GROUP BY p.number ORDER BY round(score, 9) DESC, p.number LIMIT greatest(coalesce(k, 10), 0);
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
