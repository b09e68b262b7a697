-- Entities by their names.

-- Lower-case letters in their plain forms, x^2 for x², one space between words; without characters that cannot be seen.
CREATE MACRO this.plain_letters(title) AS trim(regexp_replace(replace(translate(lower(replace(nfc_normalize(
    regexp_replace(regexp_replace(title, '[{invisible}]', '', 'g'), '([\p{L}\p{N}_])([⁰¹²³⁴-⁹]+)', '\1^\2', 'g')
), 'İ', 'i')), '{letters}', '{plain}'), 'ß', 'ss'), '[\s\p{Z}]+', ' ', 'g'));

-- Without the stars of Markdown; "A*" keeps its own.
CREATE MACRO this.without_emphasis(title) AS regexp_replace(regexp_replace(title,
    '(^|[^\p{L}\p{N}_*])\*{1,3}([^ *](?:[^*]*[^ *])?)\*{1,3}', '\1\2', 'g'), '(^|[^\p{L}\p{N}_*])\*+', '\1', 'g');

-- The normalized title, as `title_key` in graphrag_assets/text/words.py makes it, but for the rare letters that Unicode
-- takes for several, such as ™.
CREATE MACRO this.title_key(title) AS CASE
    WHEN regexp_full_match(title::VARCHAR, '__[A-Za-z0-9][A-Za-z0-9_]*__') THEN lower(title::VARCHAR)
    ELSE trim(translate(regexp_replace(regexp_replace(
        trim(this.without_emphasis(this.plain_letters(title::VARCHAR)), '{quotes} '),
        '(["”“»«*])[''’]s$', '\1'), '’s$', '''s'), '"“”„«»', ''), '{quotes} ') END;

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
    'human_readable_id of the entity of that title or alias, however it is written; an integer is the number of an entity. No rows: none. A name of several entities is an error that lists them.';
