"""Writes the inverted index for BM25, and the word forms through which questions find its terms.

A term is the stem of a word in its text's language, without diacritics. SQL has no stemmer: questions find terms
through the tables `word_forms` and `word_endings`, in Python as in the macros.
"""

from collections.abc import Iterator
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.languages import ENDINGS, UNKNOWN, language_of, stems, stop_words
from graphrag_assets.store.connections import execute_with
from graphrag_assets.text import UNSPACED, fold, name_key, search_words, spell_out

_TEXTS_AT_ONCE = 10_000  # bounds the memory, whatever the corpus

_POSTINGS_AT_ONCE = 10_000_000
_LONGEST_ENDING = 6
_COMMON = 500  # terms that endings are tried with


class Postings(NamedTuple):
    """Term counts of some texts.

    `postings`: term (hashed), number, n, length, in no order. `lengths`: one row per text, its words.
    `forms`: form, term, hashed; one row per distinct word and spelling, words of unspaced scripts left out.
    """

    postings: pl.DataFrame
    lengths: pl.Series
    forms: pl.DataFrame


def count_terms(kind: str, texts: pl.DataFrame) -> Postings:
    """Term counts of `texts` (columns number, text, language)."""
    listed = texts.select(pl.col("number").cast(pl.Int32), "language", search_words(texts["text"]).alias("word"))
    listed = listed.with_columns(pl.col("word").list.len().cast(pl.Int32).alias("length"))
    words = listed.explode("word").drop_nulls("word")
    # Only distinct words are stemmed and hashed; the rows are counted by numbers.
    known = _terms_of(kind, words.select("language", "word").unique())
    counted = words.join(known, on=["language", "word"]).group_by("hashed", "number").agg(pl.len(), pl.first("length"))
    columns = (pl.col("hashed").alias("term"), "number", pl.col("len").cast(pl.Int32).alias("n"), "length")
    return Postings(counted.select(columns), listed["length"], _forms(known))


def _terms_of(kind: str, words: pl.DataFrame) -> pl.DataFrame:
    """`words` (language, word) with the columns term and hashed."""
    parts = []
    for (language,), part in words.group_by("language"):
        stemmed = [fold(stem) for stem in stems(part["word"].to_list(), str(language))]
        parts.append(part.with_columns(pl.Series("term", stemmed, dtype=pl.String)))
    found = pl.concat(parts) if parts else words.with_columns(term=pl.lit(None, pl.String))
    hashed = pl.Series("hashed", [number_of(f"{kind} {term}") for term in found["term"]], dtype=pl.UInt64)
    return found.with_columns(hashed)


def _forms(known: pl.DataFrame) -> pl.DataFrame:
    """form, term, hashed: every spelling of the words of `known` (word, term, hashed) that a question may have."""
    words = known.filter(~pl.col("word").str.contains(f"[{UNSPACED}]"))
    spelled = words.filter(pl.col("word").str.contains(r"[^\x00-\x7f]"))
    folded = words.with_columns(form=pl.Series([fold(word) for word in words["word"]], dtype=pl.String))
    written_out = spelled.with_columns(
        form=pl.Series([fold(spell_out(word)) for word in spelled["word"]], dtype=pl.String)
    )
    return pl.concat([folded, written_out]).select("form", "term", "hashed").unique()


_TEXTS = {
    # With its context: a passage often says "it" for what only the title or a heading names.
    "text_unit": "SELECT human_readable_id AS number, concat_ws(' ', context, text) AS text FROM text_units",
    "entity": "SELECT human_readable_id AS number, title || ' ' || description AS text FROM entities",
    "community_report": (
        "SELECT human_readable_id AS number, regexp_replace(full_content, '\\[Data: [^\\]]*\\]', '', 'g') AS text "
        "FROM community_reports"
    ),
}


_WEIGHTS = """
INSERT INTO search.community_weights
SELECT m.community, count(DISTINCT t.text_unit)
FROM (SELECT DISTINCT entity, community FROM search.entity_communities) m
LEFT JOIN search.entity_text_units t USING (entity)
GROUP BY m.community ORDER BY m.community
"""
_LANGUAGES = {
    "text_unit": (
        "SELECT t.human_readable_id AS number, d.language FROM text_units t JOIN documents d ON d.id = t.document_id"
    ),
    # The language of most of its text units.
    "entity": """
        SELECT number, max_by(language, (n, language)) AS language FROM (
            SELECT e.entity AS number, d.language, count(*) AS n
            FROM search.entity_text_units e JOIN text_units t ON t.human_readable_id = e.text_unit
            JOIN documents d ON d.id = t.document_id
            GROUP BY ALL
        ) GROUP BY number
    """,
}
_FORMS = """
INSERT INTO search.word_forms
SELECT left(f.form, 3), f.form, f.term, coalesce(max(t.texts) FILTER (f.kind = 'text_unit'), 0)
FROM temp.forms f LEFT JOIN search.posting_terms t ON t.term = f.hashed GROUP BY ALL ORDER BY ALL
"""
# What the stemmers do to words, as rules for words that no text has. A stem differs from its word in the last
# letters: "companies" and "compani" share all but "es", "company" all but "y" for "i".
_ENDINGS = r"""
INSERT INTO search.word_endings
WITH cut AS (
    SELECT form, term, CASE
        WHEN starts_with(form, term) THEN length(term)
        WHEN starts_with(form, term[:-2]) THEN length(term) - 1
        WHEN starts_with(form, term[:-3]) THEN length(term) - 2
    END AS shared
    FROM (SELECT form, term FROM search.word_forms UNION SELECT form, term FROM invented_forms)
    WHERE regexp_full_match(form, '[\p{L}\p{M}]{4,}') AND length(term) > 2
)
SELECT form[shared + 1:] AS ending, term[shared + 1:] AS replacement, count(*) AS forms
FROM cut WHERE shared IS NOT NULL AND length(ending) <= $longest
GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL
"""
_COMMON_TERMS = r"""
SELECT DISTINCT term, texts FROM search.word_forms WHERE regexp_full_match(term, '\p{L}{3,}')
ORDER BY texts DESC, term LIMIT $n
"""
_NAMES = """
INSERT INTO search.entity_names
WITH names AS (
    SELECT title_key AS name, title_key FROM entities
    UNION SELECT alias_key, title_key FROM entity_aliases WHERE accepted
    UNION SELECT spelling, title_key FROM spellings
)
SELECT md5_number_lower(n.name) AS hashed, e.human_readable_id, e.frequency, md5_number_lower(e.title_key)
FROM names n JOIN entities e USING (title_key) ORDER BY ALL
"""


def write_bm25_index(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill postings, posting_terms, posting_statistics, word_forms, word_endings, languages, entity_names and
    community_weights.

    Args:
        connection: has the publication open, with entities, texts and bridge tables in it.
    """
    _write_names(connection)
    connection.execute(_WEIGHTS)
    languages = _write_languages(connection)
    connection.execute("CREATE OR REPLACE TEMP TABLE counted AS FROM search.postings WITH NO DATA")
    connection.execute("CREATE OR REPLACE TEMP TABLE forms (kind VARCHAR, form VARCHAR, term VARCHAR, hashed UBIGINT)")
    for kind, query in _TEXTS.items():
        texts = length = 0
        language_by_number = _language_by_number(connection, kind, languages)
        for part in _parts(connection, query):
            counted = count_terms(kind, _with_language(part, language_by_number, languages))
            texts, length = texts + len(counted.lengths), length + int(counted.lengths.sum())
            insert = "INSERT INTO temp.counted SELECT $kind, term, number, n, length FROM part"
            execute_with(connection, insert, {"kind": kind}, part=counted.postings)
            insert = "INSERT INTO temp.forms SELECT $kind, form, term, hashed FROM part"
            execute_with(connection, insert, {"kind": kind}, part=counted.forms)
        if texts:
            connection.execute("INSERT INTO search.posting_statistics VALUES (?, ?, ?)", [kind, texts, length / texts])
    # Sorted in slices that fit in memory: sorting everything at once spills to disk, three times slower.
    ((rows,),) = connection.execute("SELECT count(*) FROM temp.counted").fetchall()
    slices = rows // _POSTINGS_AT_ONCE + 1
    for place in range(slices):
        bounds = {"first": 2**64 * place // slices, "last": 2**64 * (place + 1) // slices - 1}
        connection.execute(
            "INSERT INTO search.postings FROM temp.counted WHERE term BETWEEN $first::UBIGINT AND $last::UBIGINT "
            "ORDER BY term, number",
            bounds,
        )
    connection.execute("DROP TABLE temp.counted")
    connection.execute(
        "INSERT INTO search.posting_terms SELECT term, count(*) FROM search.postings GROUP BY term ORDER BY term"
    )
    connection.execute(_FORMS)
    connection.execute("DROP TABLE temp.forms")
    _write_endings(connection, languages)


def _write_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill entity_names, with the spellings that a question may have of a title."""
    special = connection.sql(
        r"SELECT DISTINCT title_key FROM entities WHERE regexp_matches(title_key, '[^\x00-\x7f]|-')"
    ).pl()
    spellings = special.with_columns(
        spelling=pl.Series([name_key(key) for key in special["title_key"]], dtype=pl.String)
    )
    execute_with(connection, _NAMES, spellings=spellings)


def _write_languages(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Fill languages; returns them, the most frequent first.

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


def _write_endings(connection: duckdb.DuckDBPyConnection, languages: list[str]) -> None:
    """Fill word_endings, from the words of the texts and from their most common terms with common endings."""
    terms = [term for term, _ in connection.execute(_COMMON_TERMS, {"n": _COMMON}).fetchall()]
    parts = []
    for language in languages:
        words = [term + ending for term in terms for ending in ENDINGS.get(language, "").split()]
        parts += [(fold(word), fold(stem)) for word, stem in zip(words, stems(words, language), strict=True)]
    invented = pl.DataFrame(parts, {"form": pl.String, "term": pl.String}, orient="row")
    execute_with(connection, _ENDINGS, {"longest": _LONGEST_ENDING}, invented_forms=invented)


def _language_by_number(connection: duckdb.DuckDBPyConnection, kind: str, languages: list[str]) -> pl.DataFrame | None:
    """number, language of the texts of a kind; None where no lookup is needed or possible."""
    if len(languages) < 2 or kind not in _LANGUAGES:
        return None
    return connection.sql(_LANGUAGES[kind]).pl()


def _with_language(part: pl.DataFrame, by_number: pl.DataFrame | None, languages: list[str]) -> pl.DataFrame:
    """`part` (number, text) with the column language: the most common one where a text's own is unknown."""
    main = languages[0] if languages else UNKNOWN
    if len(languages) < 2:
        return part.with_columns(language=pl.lit(main))
    if by_number is None:
        part = part.with_columns(language=pl.Series([language_of(text) for text in part["text"]], dtype=pl.String))
    else:
        part = part.join(by_number, on="number", how="left", maintain_order="left")
    return part.with_columns(
        language=pl.when(pl.col("language").is_in(languages)).then("language").otherwise(pl.lit(main))
    )


def _parts(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[pl.DataFrame]:
    """The rows of `query` in parts of bounded size, found by their numbers: the tables are sorted by them."""
    ((last,),) = connection.execute(f"SELECT coalesce(max(number), -1) FROM ({query})").fetchall()
    for start in range(0, last + 1, _TEXTS_AT_ONCE):
        bounds = {"start": start, "end": start + _TEXTS_AT_ONCE}
        yield connection.sql(f"SELECT * FROM ({query}) WHERE number >= $start AND number < $end", params=bounds).pl()
