-- How titles and questions are compared: what graphrag_assets/text/words.py does, but for compatibility forms other than
-- full-width ones and the Thai am (ligatures, half-width kana) and inflected forms that no text has.

CREATE MACRO own.lower_letters(text) AS translate(replace(replace(lower(replace(translate(
    replace(nfc_normalize(text), 'ำ', 'ํา'), {wide}, {narrow}), 'İ', 'i')), 'i̇', 'i'), 'ß', 'ss'), 'ς', 'σ');

CREATE MACRO own.title_key(title) AS (
    SELECT CASE WHEN regexp_matches(f.written, '^__[A-Za-z0-9][A-Za-z0-9_]*__$') THEN lower(f.written) ELSE
           trim(translate(regexp_replace(regexp_replace(trim(
               regexp_replace(regexp_replace(
                   trim(regexp_replace(f.folded, '[\s\x0b\x1c-\x1f\x85\x{2028}\x{2029}\x{1680}]+', ' ', 'g')),
                   '(^|[^\p{L}\p{N}_*])\*{1,3}([^ *](?:[^*]*[^ *])?)\*{1,3}', '\1\2', 'g'),
                   '(^|[^\p{L}\p{N}_*])\*+', '\1', 'g'),
               '"''`´‘’‚‛“”„‟«»‹›_ '), '(["”“»«*])[''’]s$', '\1'), '’s$', '''s'), '"“”„«»', ''), '"''`´‘’‚‛“”„‟«»‹›_ ') END
    FROM (SELECT own.lower_letters(translate(regexp_replace(
              regexp_replace(g._g_titled::VARCHAR, '[{invisible}]', '', 'g'),
              '([\p{L}\p{N}_])([⁰¹²³⁴-⁹]+)', '\1^\2', 'g'), '⁰¹²³⁴⁵⁶⁷⁸⁹', '0123456789')) AS folded, g._g_titled::VARCHAR AS written
          FROM (SELECT title AS _g_titled) g) f
);
CREATE OR REPLACE MACRO title_key(title) AS own.title_key(title);
COMMENT ON MACRO title_key IS
    'The key under which titles are compared: case-folded, spaces and quotes trimmed, no invisible characters.';

-- Scripts that are written without spaces as overlapping pairs of characters with spaces between.
CREATE MACRO own.space_bigrams(text) AS (
    array_to_string(list_transform(
        regexp_extract_all(text, '[{unspaced}]+|[^{unspaced}]+'),
        lambda part: CASE WHEN regexp_matches(part, '^[{unspaced}]') THEN
            ' ' || array_to_string(list_transform(
                range(1, greatest(length(part), 2)), lambda place: part[place:place + 1]), ' ') || ' '
        ELSE part END
    ), '')
);

-- Lower-case text without diacritics.
CREATE MACRO own.fold_letters(text) AS replace(replace(replace(regexp_replace(
    translate(text, '{accented}', '{plain}'), '[\x{300}-\x{36f}]', '', 'g'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');

-- The distinct words of a query as the index has them: lower case, no diacritics, no possessives. Without the stop words of
-- the language of most documents, unless there are no others.
CREATE MACRO own.search_words(query) AS (
    SELECT CASE WHEN len(w.kept) > 0 THEN w.kept ELSE w.words END
    FROM (
        SELECT v.words, list_filter(v.words, lambda word: NOT list_contains(coalesce(s.stop_words, []), word)) AS kept
        FROM (SELECT arg_max(l.stop_words, l.documents) AS stop_words FROM own.languages l) s, (
            SELECT list_distinct(regexp_extract_all(own.fold_letters(own.space_bigrams(p.plain)), '[\p{L}\p{M}\p{N}]+')) AS words
            FROM (
                SELECT regexp_replace(regexp_replace(own.lower_letters(g._g_searched), '[{optional_marks}\x{ad}]', '', 'g'),
                                      {possessive}, '\1', 'g') AS plain
                FROM (SELECT query AS _g_searched) g
            ) p
        ) v
    ) w
);
