"""Writes the inverted index for BM25, and the word forms through which questions find its terms.

The index keeps the words of each text by the hash of the text, and the stem of each word by the hash of the word: a
publication reads new texts only.

A term is the stem of a word in its text's language, without diacritics. SQL has no stemmer: questions find terms
through the table `word_forms`, in Python as in the macros.
"""

import duckdb
import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.store.connections import ArrowStream, execute_in_order, execute_with
from graphrag_assets.store.schema import literal
from graphrag_assets.text.languages import UNKNOWN, language_of, stems, stop_words
from graphrag_assets.text.references import CHECKED_PATTERN
from graphrag_assets.text.words import UNSPACED, fold, search_words, spell_out

COUNTED_WITH = "1"
"""Incremented when the words or the stems of the same text differ."""
_TEXTS_PER_PART = 2_500  # bounds the memory, whatever the corpus

# All texts, with their languages: of a report, if there are several, it is detected when its words are counted.
_TEXTS = f"""
CREATE OR REPLACE TEMP TABLE indexed AS
WITH texts AS (
    -- With its context: a passage often says "it" for what only the title or a heading names.
    SELECT 'text_unit' AS kind, human_readable_id AS number, concat_ws(' ', context, text) AS text FROM text_units
    UNION ALL SELECT 'entity', human_readable_id, title || ' ' || description FROM entities
    UNION ALL SELECT 'community_report', human_readable_id,
                     regexp_replace(full_content, {literal(CHECKED_PATTERN)}, '', 'g') FROM community_reports
), languages AS (
    SELECT 'text_unit' AS kind, t.human_readable_id AS number, d.language
    FROM text_units t JOIN documents d ON d.id = t.document_id
    UNION ALL
    SELECT 'entity', number, max_by(language, (n, language)) FROM (  -- that of most of its text units
        SELECT e.entity AS number, d.language, count(*) AS n
        FROM search.entity_text_units e JOIN text_units t ON t.human_readable_id = e.text_unit
        JOIN documents d ON d.id = t.document_id GROUP BY ALL
    ) GROUP BY number
), in_languages AS (
    SELECT kind, number, coalesce(text, '') AS text, CASE
        WHEN len($languages) > 1 AND kind = 'community_report' THEN array_to_string($languages, ',')
        WHEN list_contains($languages, language) THEN language
        ELSE coalesce($languages[1], {literal(UNKNOWN)}) END AS language
    FROM texts LEFT JOIN languages USING (kind, number)
)
SELECT *, md5_number_lower(row({literal(COUNTED_WITH)}, language, text)::VARCHAR) AS hash FROM in_languages
"""
_FORGET = """
DELETE FROM working.indexed_texts WHERE text NOT IN (SELECT hash FROM indexed);
DELETE FROM working.postings WHERE text NOT IN (SELECT text FROM working.indexed_texts);
DELETE FROM working.words WHERE word NOT IN (SELECT word FROM working.postings);
"""
_NEW = "SELECT DISTINCT hash FROM indexed WHERE hash NOT IN (SELECT text FROM working.indexed_texts) ORDER BY hash"
_TEXTS_OF = "SELECT DISTINCT hash, language, text FROM indexed WHERE hash IN (FROM new)"
_WRITE = """
INSERT INTO search.postings
WITH terms AS (
    SELECT kind, word, md5_number_lower(kind || ' ' || term) AS term
    FROM working.words, (SELECT DISTINCT kind FROM indexed)
)
SELECT kind, w.term AS term, t.number AS number, sum(p.n)::BIGINT AS n, any_value(i.n_words) AS length
FROM indexed t JOIN working.indexed_texts i ON i.text = t.hash JOIN working.postings p ON p.text = t.hash
JOIN terms w USING (kind, word)
GROUP BY kind, w.term, t.number;

INSERT INTO search.posting_terms SELECT term, count(*) FROM search.postings GROUP BY term;

INSERT INTO search.posting_statistics
SELECT kind, count(*), sum(i.n_words) / count(*)
FROM indexed t JOIN working.indexed_texts i ON i.text = t.hash GROUP BY kind;

INSERT INTO search.word_forms
WITH uses AS (
    SELECT word, count(*) AS n FROM indexed t JOIN working.postings p ON p.text = t.hash GROUP BY word
), forms AS (
    SELECT unnest(forms) AS form, term, n FROM uses JOIN working.words USING (word)
)
SELECT left(form, 3) AS beginning, form, term, sum(n)::BIGINT AS uses FROM forms GROUP BY form, term;

DROP TABLE indexed;
"""


def write_bm25_index(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill postings, posting_terms, posting_statistics, word_forms and languages.

    Args:
        connection: has the publication in use, with entities, texts and bridge tables in it, and the index attached as
            `working`.
    """
    languages = _write_languages(connection)
    connection.execute(_TEXTS, {"languages": languages})
    connection.execute(_FORGET)
    for new in pl.DataFrame(connection.sql(_NEW))["hash"].to_frame().iter_slices(_TEXTS_PER_PART):
        connection.register("new", ArrowStream(new))
        texts = pl.DataFrame(connection.sql(_TEXTS_OF))
        connection.unregister("new")
        _count_words(connection, texts, languages)
    execute_in_order(connection, _WRITE)


def _count_words(connection: duckdb.DuckDBPyConnection, texts: pl.DataFrame, languages: list[str]) -> None:
    """Keep the words of `texts` (hash, language, text), and the stems of those that are new."""
    detected = [
        (name if (name := language_of(text)) in languages else languages[0]) if "," in language else language
        for language, text in texts.select("language", "text").iter_rows()
    ]
    by_text = texts.select(
        "hash", pl.Series("language", detected, dtype=pl.String), search_words(texts["text"]).alias("word")
    )
    words = by_text.explode("word").drop_nulls("word").group_by("hash", "language", "word").len("n")
    distinct = words.select("language", "word").unique()
    numbers = [number_of(f"{COUNTED_WITH} {language} {word}") for language, word in distinct.iter_rows()]
    distinct = distinct.with_columns(pl.Series("number", numbers, dtype=pl.UInt64))
    stored = pl.DataFrame(connection.sql("SELECT word AS number FROM working.words"))
    written = {
        "words": _stemmed(distinct.join(stored, on="number", how="anti")),
        "postings": words.join(distinct, on=["language", "word"]).select("hash", "number", "n").sort("hash"),
        "indexed_texts": by_text.select("hash", pl.col("word").list.len()),
    }
    connection.begin()
    for table, rows in written.items():
        execute_with(connection, f"INSERT INTO working.{table} FROM rows", rows=rows)
    connection.commit()


def _stemmed(words: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `words` (language, word, number) in the index: number, term, forms."""
    parts = [
        part.with_columns(pl.Series("term", list(map(fold, stems(part["word"].to_list(), str(language)))), pl.String))
        for (language,), part in words.group_by("language")
    ]
    terms = pl.concat([words.clear().with_columns(term=pl.lit(None, pl.String)), *parts])
    # Every spelling that a question may have.
    spelled = [list(dict.fromkeys([fold(word), fold(spell_out(word))])) for word in terms["word"]]
    forms = pl.Series("forms", spelled, pl.List(pl.String))
    # Words of scripts without spaces are found without forms.
    is_unspaced = pl.col("word").str.contains(f"[{UNSPACED}]")
    return terms.select("number", "term", pl.when(~is_unspaced).then(forms).otherwise(pl.lit([], pl.List(pl.String))))


def _write_languages(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Fill languages with those of the documents; return them, the most frequent first.

    If every document is too short to detect its language, it is detected from all of them together.
    """
    counted = connection.execute(
        "SELECT language, count(*) AS n FROM documents WHERE language <> $unknown "
        "GROUP BY ALL ORDER BY n DESC, language",
        {"unknown": UNKNOWN},
    ).fetchall()
    if not counted:
        sample = connection.execute("SELECT text FROM text_units ORDER BY human_readable_id LIMIT 100").fetchall()
        language = language_of("\n".join(text[:100] for (text,) in sample))
        counted = [(language, 0)] if language != UNKNOWN else []
    for language, documents in counted:
        connection.execute(
            "INSERT INTO search.languages VALUES (?, ?, ?)", [language, documents, sorted(stop_words(language))]
        )
    return [language for language, _ in counted]
