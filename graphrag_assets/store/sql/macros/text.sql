-- How titles and questions are compared, as in graphrag_assets/text/words.py. Keep both the same.

CREATE OR REPLACE MACRO search.replace_characters(text, use) AS (
    SELECT coalesce(string_agg(coalesce(f.replacement, c.character), '' ORDER BY c.place), '')
    FROM (SELECT unnest(string_split(text, '')) AS character, generate_subscripts(string_split(text, ''), 1) AS place) c
    LEFT JOIN search.character_forms f ON f.character = c.character AND f.purpose = use
);
COMMENT ON MACRO search.replace_characters IS
    'Helper: the text with each character replaced by the form that character_forms has of it for the purpose.';

CREATE OR REPLACE MACRO nfkc(text) AS nfc_normalize(search.replace_characters(text, 'nfkc'));
COMMENT ON MACRO nfkc IS 'The text in Unicode''s normal form NFKC: full-width letters, ligatures, … as plain ones.';

CREATE OR REPLACE MACRO title_key(title) AS (
    SELECT trim(translate(regexp_replace(trim(
               regexp_replace(f.folded, '[\s\x0b\x1c-\x1f\x85\x{2028}\x{2029}\x{1680}]+', ' ', 'g'),
               '"''`´‘’‚‛“”„‟«»‹›*_ '), '[''’]s?$', ''), '"“”„«»*', ''), '"''`´‘’‚‛“”„‟«»‹›*_ ')
    FROM (SELECT search.replace_characters(lower(replace(nfkc(title::VARCHAR), 'İ', 'i̇')), 'casefold') AS folded) f
);
COMMENT ON MACRO title_key IS
    'The key under which titles are compared: NFKC, case-folded, spaces and quotes trimmed, no possessive.';

CREATE OR REPLACE MACRO search.space_bigrams(text) AS (
    array_to_string(list_transform(
        regexp_extract_all(text, '[{unspaced}]+|[^{unspaced}]+'),
        lambda part: CASE WHEN regexp_matches(part, '^[{unspaced}]') THEN
            ' ' || array_to_string(list_transform(
                range(1, greatest(length(part), 2)), lambda place: part[place:place + 1]), ' ') || ' '
        ELSE part END
    ), '')
);
COMMENT ON MACRO search.space_bigrams IS
    'Helper: scripts that are written without spaces as overlapping pairs of characters with spaces between.';

CREATE OR REPLACE MACRO search_terms(text) AS (
    SELECT list_concat(
        regexp_extract_all(s.spaced, '[\p{L}\p{M}\p{N}]+'),
        list_transform(regexp_extract_all(s.spaced, {compound}), lambda word: regexp_replace(word, {hyphen}, '', 'g'))
    )
    FROM (
        SELECT CASE WHEN regexp_matches(text, '[{cjk}]') THEN search.space_bigrams(p.plain) ELSE p.plain END AS spaced
        FROM (
            SELECT regexp_replace(replace(regexp_replace(replace(lower(regexp_replace(
                       replace(n.normal, 'İ', 'i̇'),
                       -- a capital sigma at the end of a word
                       '([\p{Lu}\p{Ll}\p{Lt}][\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]*)Σ'
                       || '([\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]*($|[^\p{Lu}\p{Ll}\p{Lt}\p{M}\p{Lm}\p{Sk}\p{Cf}''’.:·]))',
                       '\1ς\2', 'g'
                   )), 'ß', 'ss'), '[{optional_marks}]', '', 'g'), chr(173), ''), {possessive}, '\1', 'g') AS plain
            FROM (SELECT nfkc(text) AS normal) n
        ) p
    ) s
);
COMMENT ON MACRO search_terms IS
    'The words of a text as searches compare them: lower case, no possessives; scripts without spaces as pairs; compounds joined too.';

CREATE OR REPLACE MACRO search.without_stop_words(words) AS (
    SELECT CASE WHEN len(k.kept) > 0 THEN k.kept ELSE k.given END
    FROM (
        SELECT words AS given, list_filter(words, lambda word: NOT list_contains(l.stop_words, word)) AS kept
        FROM (
            SELECT coalesce(arg_max(stop_words, {n: len(list_intersect(words, stop_words)), documents: documents,
                                                 language: language}), []) AS stop_words
            FROM search.languages
        ) l
    ) k
);
COMMENT ON MACRO search.without_stop_words IS
    'Helper: the words without the stop words of the language that has most of them as stop words; all words if no other is left.';

CREATE OR REPLACE MACRO search_words(query) AS search.without_stop_words(list_distinct(search_terms(query)));
COMMENT ON MACRO search_words IS
    'What a question is searched by: its distinct words without stop words; all of them if there are no others.';

CREATE OR REPLACE MACRO search.fold_letters(text) AS search.replace_characters(text, 'fold');
COMMENT ON MACRO search.fold_letters IS 'Helper: lower-case text without diacritics.';

CREATE OR REPLACE MACRO search.spell_out(text) AS search.replace_characters(text, 'spell_out');
COMMENT ON MACRO search.spell_out IS 'Helper: lower-case text with ae for ä, and so on.';

CREATE OR REPLACE MACRO estimated_tokens(text) AS ((strlen(text) + 2) // 3);
COMMENT ON MACRO estimated_tokens IS
    'Tokens of the text, estimated: one for every three bytes of UTF-8. Prose has fewer; rows of single digits have more.';
