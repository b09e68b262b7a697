-- How titles and questions are compared, as in graphrag_assets/text/words.py. Keep both the same.

-- The text with each character replaced by the form that character_forms has of it for the purpose.
CREATE MACRO own.replace_characters(text, use) AS (
    SELECT coalesce(string_agg(coalesce(f.replacement, c.character), '' ORDER BY c.place), '')
    FROM (
        SELECT unnest(string_split(g._g_replaced, '')) AS character,
               generate_subscripts(string_split(g._g_replaced, ''), 1) AS place, g._g_use AS purpose
        FROM (SELECT text AS _g_replaced, use AS _g_use) g
    ) c
    LEFT JOIN own.character_forms f ON f.character = c.character AND f.purpose = c.purpose
);

CREATE MACRO own.nfkc(text) AS nfc_normalize(own.replace_characters(text, 'nfkc'));
CREATE OR REPLACE MACRO search.nfkc(text) AS own.nfkc(text);
COMMENT ON MACRO search.nfkc IS 'The text in Unicode''s normal form NFKC: full-width letters, ligatures, … as plain ones.';

CREATE MACRO own.title_key(title) AS (
    SELECT trim(translate(regexp_replace(trim(
               regexp_replace(regexp_replace(
                   trim(regexp_replace(f.folded, '[\s\x0b\x1c-\x1f\x85\x{2028}\x{2029}\x{1680}]+', ' ', 'g')),
                   '(^|[^\p{L}\p{N}_*])\*{1,3}([^ *](?:[^*]*[^ *])?)\*{1,3}', '\1\2', 'g'),
                   '(^|[^\p{L}\p{N}_*])\*+', '\1', 'g'),
               '"''`´‘’‚‛“”„‟«»‹›_ '), '[''’]s?$', ''), '"“”„«»', ''), '"''`´‘’‚‛“”„‟«»‹›_ ')
    FROM (SELECT own.replace_characters(lower(replace(own.nfkc(regexp_replace(
              regexp_replace(g._g_titled::VARCHAR, '[{invisible}]', '', 'g'),
              '([\p{L}\p{N}_])([⁰¹²³⁴-⁹]+)', '\1^\2', 'g')), 'İ', 'i̇')), 'casefold') AS folded
          FROM (SELECT title AS _g_titled) g) f
);
CREATE OR REPLACE MACRO title_key(title) AS own.title_key(title);
COMMENT ON MACRO title_key IS
    'The key under which titles are compared: NFKC, case-folded, spaces and quotes trimmed, no possessive, no invisible characters.';

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

CREATE MACRO own.search_terms(text) AS (
    SELECT list_concat(
        regexp_extract_all(s.spaced, '[\p{L}\p{M}\p{N}]+'),
        list_transform(regexp_extract_all(s.spaced, {compound}), lambda word: regexp_replace(word, {hyphen}, '', 'g'))
    )
    FROM (
        SELECT CASE WHEN regexp_matches(p.raw, '[{cjk}]') THEN own.space_bigrams(p.plain) ELSE p.plain END AS spaced
        FROM (
            SELECT regexp_replace(replace(regexp_replace(replace(lower(regexp_replace(
                       replace(n.normal, 'İ', 'i̇'),
                       -- a capital sigma at the end of a word
                       '([\p{Lu}\p{Ll}\p{Lt}][\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]*)Σ'
                       || '([\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]*($|[^\p{Lu}\p{Ll}\p{Lt}\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]))',
                       '\1ς\2', 'g'
                   )), 'ß', 'ss'), '[{optional_marks}]', '', 'g'), chr(173), ''), {possessive}, '\1', 'g') AS plain, n.raw
            FROM (SELECT own.nfkc(g._g_searched) AS normal, g._g_searched AS raw FROM (SELECT text AS _g_searched) g) n
        ) p
    ) s
);
CREATE OR REPLACE MACRO search.search_terms(text) AS own.search_terms(text);
COMMENT ON MACRO search.search_terms IS
    'The words of a text as searches compare them: lower case, no possessives; scripts without spaces as pairs; compounds joined too.';

-- The words without the stop words of the language that has most of them as stop words; all words if no other is left.
CREATE MACRO own.without_stop_words(words) AS (
    SELECT CASE WHEN len(k.kept) > 0 THEN k.kept ELSE k.given END
    FROM (
        SELECT l.words AS given, list_filter(l.words, lambda word: NOT list_contains(l.stop_words, word)) AS kept
        FROM (
            SELECT any_value(g._g_words) AS words, coalesce(arg_max(s.stop_words, {
                n: len(list_intersect(g._g_words, s.stop_words)), documents: s.documents, language: s.language
            }), []) AS stop_words
            FROM (SELECT words AS _g_words) g LEFT JOIN own.languages s ON true
        ) l
    ) k
);
CREATE OR REPLACE MACRO search.without_stop_words(words) AS own.without_stop_words(words);
COMMENT ON MACRO search.without_stop_words IS
    'Helper: the words without the stop words of the language that has most of them as stop words; all words if no other is left.';

CREATE MACRO own.search_words(query) AS own.without_stop_words(list_distinct(own.search_terms(query)));
CREATE OR REPLACE MACRO search.search_words(query) AS own.search_words(query);
COMMENT ON MACRO search.search_words IS
    'What a question is searched by: its distinct words without stop words; all of them if there are no others.';

-- Lower-case text without diacritics.
CREATE MACRO own.fold_letters(text) AS own.replace_characters(text, 'fold');

-- Lower-case text with ae for ä, and so on.
CREATE MACRO own.spell_out(text) AS own.replace_characters(text, 'spell_out');

CREATE MACRO own.estimated_tokens(text) AS ((strlen(text) + 2) // 3);
CREATE OR REPLACE MACRO search.estimated_tokens(text) AS own.estimated_tokens(text);
COMMENT ON MACRO search.estimated_tokens IS
    'Tokens of the text, estimated: one for every three bytes of UTF-8. Prose has fewer; rows of single digits have more.';
