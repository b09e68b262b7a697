-- The graph that passages are ranked through: text units, the names in them, and the text units about what is named.
-- Input, from Python: `heading_forms`, what titles and headings name (heading, form, name, words, is_name), and `spellings`,
-- how a question may spell titles (title_key, spelling).

INSERT INTO search.entity_names
WITH names AS (
    SELECT title_key AS name, title_key FROM entities
    UNION SELECT alias_key, title_key FROM entity_aliases
    UNION SELECT spelling, title_key FROM spellings
)
SELECT md5_number_lower(n.name) AS hashed, e.human_readable_id, e.frequency, md5_number_lower(e.title_key)
FROM names n JOIN entities e USING (title_key);

CREATE TEMP TABLE headings AS
SELECT u.text_unit, h.name, h.form, h.words, h.is_name
FROM (SELECT human_readable_id AS text_unit, unnest(headings) AS heading FROM text_units) u
JOIN heading_forms h USING (heading);

-- An entity has one name here, for all of its aliases.
CREATE TEMP TABLE main_names AS
SELECT name AS written, arg_max(subject, (frequency, -entity)) AS name FROM search.entity_names GROUP BY name;

-- "The squadron" stands at the beginning of sentences too: a heading in lower case is a name only if it is an entity's.
DELETE FROM headings WHERE NOT is_name AND name NOT IN (SELECT written FROM main_names);

CREATE TEMP TABLE headed AS
SELECT DISTINCT h.text_unit, coalesce(m.name, h.name) AS name, h.form
FROM headings h LEFT JOIN main_names m ON m.written = h.name;

-- The two rarest terms of each title and heading; a text that contains it contains both.
CREATE TEMP TABLE title_terms AS
WITH forms AS (
    SELECT row_number() OVER () AS number, * FROM (
        SELECT DISTINCT coalesce(m.name, h.name) AS name, h.form, h.words
        FROM headings h LEFT JOIN main_names m ON m.written = h.name
    )
), words AS (
    SELECT number, unnest(words) AS word FROM forms
), terms AS (
    SELECT w.number,
           md5_number_lower('text_unit ' || coalesce(arg_max(f.term, (f.uses, f.term)), any_value(w.word))) AS term
    FROM words w LEFT JOIN search.word_forms f ON f.form = w.word GROUP BY w.number, w.word
), ranked AS (
    SELECT s.number, min(t.texts) AS texts, arg_min(t.term, (t.texts, t.term), 2) AS rarest
    FROM terms s JOIN search.posting_terms t USING (term) GROUP BY s.number
)
SELECT f.name, f.form, r.texts, r.rarest[1] AS rarest, r.rarest[2] AS second FROM forms f JOIN ranked r USING (number);

-- Titles and headings in the text of others: no extraction is needed to see them.
CREATE TEMP TABLE sought AS
SELECT DISTINCT form, rarest, second FROM title_terms WHERE texts <= $max_texts;

CREATE TEMP TABLE titles_in_text AS
WITH with_rarest AS (
    SELECT DISTINCT t.form, t.second, p.number AS text_unit
    FROM sought t JOIN search.postings p ON p.term = t.rarest
), candidates AS (
    SELECT form, text_unit FROM with_rarest WHERE second IS NULL
    UNION ALL
    SELECT form, text_unit FROM with_rarest w
    SEMI JOIN search.postings p ON p.term = w.second AND p.number = w.text_unit
), texts AS (
    SELECT human_readable_id AS text_unit, ' ' || regexp_replace(text, '\s+', ' ', 'g') || ' ' AS text
    FROM text_units WHERE human_readable_id IN (SELECT text_unit FROM candidates)
), placed AS (
    SELECT c.*, t.text, instr(t.text, c.form) AS place FROM candidates c JOIN texts t USING (text_unit)
)
SELECT form, text_unit FROM placed
WHERE CASE
    WHEN place = 0 THEN false
    -- A name is no part of a longer word; scripts without spaces do not show where words end.
    WHEN NOT regexp_matches(
        regexp_replace(text[place - 1] || text[place + length(form)], $unspaced, '', 'g'), '[\p{L}\p{N}]'
    ) THEN true
    ELSE regexp_matches(text, '([^\p{L}\p{N}]|' || $unspaced || ')' || regexp_escape(form)
                              || '([^\p{L}\p{N}]|' || $unspaced || ')')
END;

-- A text unit that begins with a definition of the first thing it names is about that thing.
CREATE TEMP TABLE definitions AS
WITH openings AS (
    SELECT human_readable_id AS text_unit,
           left(regexp_replace(left(text, 1000), '^(\s*#[^\n]*\n)+\s*', ''), 400) AS opening
    FROM text_units
), written AS (
    SELECT m.text_unit_number AS text_unit, m.title AS form, md5_number_lower(e.title_key) AS name
    FROM entity_mentions m JOIN entities e ON e.human_readable_id = m.entity_number
    WHERE m.text_unit_number IS NOT NULL
    UNION
    SELECT t.text_unit, e.title, md5_number_lower(e.title_key)
    FROM search.entity_text_units t JOIN entities e ON e.human_readable_id = t.entity
), placed AS (
    SELECT text_unit, name, form, opening, instr(opening, form) AS place, length(form) AS length
    FROM written JOIN openings USING (text_unit)
), first_named AS (
    SELECT text_unit, arg_min(name, (place, -length)) AS name, arg_min(form, (place, -length)) AS form,
           arg_min(opening[place + length:place + length + 200], (place, -length)) AS following
    FROM placed WHERE place BETWEEN 1 AND 80 GROUP BY text_unit
)
SELECT text_unit, name, form FROM first_named WHERE regexp_matches(following, $definition);

CREATE TEMP TABLE defined AS
SELECT text_unit, name, form FROM definitions
QUALIFY count(*) OVER (PARTITION BY name) <= $max_definitions;

-- Which text units name what others are about.
CREATE TEMP TABLE mentioned AS
WITH about AS (SELECT name FROM headed UNION SELECT name FROM defined)
SELECT e.subject AS name, t.text_unit
FROM search.entity_text_units t
JOIN (SELECT DISTINCT entity, subject FROM search.entity_names WHERE subject IN (FROM about)) e USING (entity)
UNION SELECT t.name, i.text_unit FROM titles_in_text i JOIN title_terms t USING (form);

INSERT INTO search.passage_subjects
WITH subjects AS (
    SELECT name, text_unit, min(form) AS title FROM (
        FROM (SELECT *, count(DISTINCT text_unit) OVER (PARTITION BY name) AS n FROM headed) SELECT name, text_unit, form
        WHERE n <= $max_headed
        UNION ALL SELECT name, text_unit, form FROM defined
    ) GROUP BY name, text_unit
), frequencies AS (
    SELECT name, count(*) AS frequency FROM (FROM mentioned UNION SELECT name, text_unit FROM subjects)
    WHERE name IN (SELECT name FROM subjects) GROUP BY name
), words AS (
    SELECT name, max(texts) AS texts FROM title_terms WHERE second IS NULL GROUP BY name
)
-- A title of one word, such as "Costs", is as common as the word, which questions have too, not as the capitalized name.
SELECT name, title, text_unit, 1 / count(*) OVER (PARTITION BY name) AS weight,
       1 / log2(1 + greatest(frequency, coalesce(texts, 0))) AS rarity
FROM subjects JOIN frequencies USING (name) LEFT JOIN words USING (name);

INSERT INTO search.passage_names
WITH led AS (
    SELECT m.text_unit, m.name, s.rarity
    FROM mentioned m JOIN (SELECT DISTINCT name, rarity FROM search.passage_subjects) s USING (name)
    ANTI JOIN search.passage_subjects own ON own.name = m.name AND own.text_unit = m.text_unit
)
-- Rounded: sums in another order differ in their last digits.
SELECT text_unit, name, round(rarity / greatest(sum(rarity) OVER (PARTITION BY text_unit), 1), 9) AS weight FROM led;

DROP TABLE headings; DROP TABLE main_names; DROP TABLE headed; DROP TABLE title_terms; DROP TABLE sought; DROP TABLE mentioned; DROP TABLE defined; DROP TABLE titles_in_text; DROP TABLE definitions;
