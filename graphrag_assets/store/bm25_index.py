"""Writes the inverted index for BM25, and the word forms through which questions find its terms.

All counts are sums over texts. So a changed text is taken out of them and put in again, and no other text is read.

A term is the stem of a word in its text's language, without diacritics. SQL has no stemmer: questions find terms
through the table `word_forms`, in Python as in the macros.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import duckdb
import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.store.connections import execute_with, one_value
from graphrag_assets.store.schema import literal
from graphrag_assets.text.languages import UNKNOWN, language_of, stems, stop_words
from graphrag_assets.text.references import CHECKED_PATTERN
from graphrag_assets.text.words import UNSPACED, fold, search_words, spell_out

_TEXTS_PER_PART = 2_500  # bounds the memory, whatever the corpus

_POSTINGS_PER_PART = 10_000_000


class Postings(NamedTuple):
    """Term counts of some texts.

    `postings`: term (hashed), number, n, length, in no order. `lengths`: one row per text, its words.
    `forms`: form, term, uses; one row per form and term, words of unspaced scripts left out. A form is used once by
    each distinct word of a text that is written so.
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
    uses = words.group_by("language", "word").agg(uses=pl.col("number").n_unique().cast(pl.Int64))
    return Postings(counted.select(columns), listed["length"], _forms(known.join(uses, on=["language", "word"])))


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
    """form, term, uses: every spelling of the words of `known` (word, term, uses) that a question may have."""
    words = known.filter(~pl.col("word").str.contains(f"[{UNSPACED}]"))
    folded = words.with_columns(form=pl.Series([fold(word) for word in words["word"]], dtype=pl.String))
    special = folded.filter(pl.col("word").str.contains(r"[^\x00-\x7f]"))
    written_out = [fold(spell_out(word)) for word in special["word"]]
    spelled = special.with_columns(other=pl.Series(written_out, dtype=pl.String)).filter(
        pl.col("other") != pl.col("form")
    )
    forms = pl.concat([folded, spelled.drop("form").rename({"other": "form"}).select(folded.columns)])
    return forms.group_by("form", "term").agg(pl.col("uses").sum())


# Table and text by kind.
_TEXTS = {
    # With its context: a passage often says "it" for what only the title or a heading names.
    "text_unit": ("text_units", "concat_ws(' ', context, text)"),
    "entity": ("entities", "title || ' ' || description"),
    "community_report": ("community_reports", f"regexp_replace(full_content, {literal(CHECKED_PATTERN)}, '', 'g')"),
}


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
_TERMS = """
CREATE OR REPLACE TEMP TABLE term_changes AS
SELECT term, sum(sign)::BIGINT AS texts FROM temp.counted GROUP BY term HAVING sum(sign) <> 0;
UPDATE search.posting_terms t SET texts = t.texts + c.texts FROM term_changes c WHERE c.term = t.term;
INSERT INTO search.posting_terms
SELECT term, texts FROM term_changes ANTI JOIN search.posting_terms USING (term) ORDER BY term;
DELETE FROM search.posting_terms WHERE texts = 0;
"""
_FORMS = """
CREATE OR REPLACE TEMP TABLE form_changes AS
SELECT form, term, sum(uses)::BIGINT AS uses FROM temp.forms GROUP BY ALL HAVING sum(uses) <> 0;
UPDATE search.word_forms w SET uses = w.uses + c.uses
FROM form_changes c WHERE c.form = w.form AND c.term = w.term;
INSERT INTO search.word_forms
SELECT left(form, 3), form, term, uses FROM form_changes ANTI JOIN search.word_forms USING (form, term) ORDER BY ALL;
DELETE FROM search.word_forms WHERE uses = 0;
"""


class IndexedTexts(NamedTuple):
    """Texts as they are indexed. `languages`: those of the documents, the most frequent first; `texts`: kind, number,
    text, language of some texts."""

    languages: list[str]
    texts: pl.DataFrame


def touched_texts(connection: duckdb.DuckDBPyConnection) -> IndexedTexts:
    """The texts of the temporary table touched_texts (kind, number) that the publication open in `connection` has."""
    languages = [language for language, _ in _languages(connection)]
    touched = "SEMI JOIN (FROM touched_texts WHERE kind = $kind) USING (number)"
    parts = [
        part.select(pl.lit(kind).alias("kind"), pl.col("number").cast(pl.Int64), "text", "language")
        for kind in _TEXTS
        for part in _parts(connection, kind, languages, touched)
    ]
    none = pl.DataFrame(schema={"kind": pl.String, "number": pl.Int64, "text": pl.String, "language": pl.String})
    return IndexedTexts(languages, pl.concat([none, *parts]))


def write_bm25_index(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill postings, posting_terms, posting_statistics, word_forms and languages.

    Args:
        connection: has the publication open, with entities, texts and bridge tables in it.
    """
    languages = _write_languages(connection)
    added = ((kind, part) for kind in _TEXTS for part in _parts(connection, kind, languages))
    _add_texts(connection, added)


def update_bm25_index(connection: duckdb.DuckDBPyConnection, before: IndexedTexts) -> bool:
    """Bring what `write_bm25_index` fills up to date after the texts of `touched_texts` were replaced.

    Args:
        before: those texts as they were.

    Returns:
        false if another language leads: then all texts may have to be indexed again.
    """
    now = touched_texts(connection)
    if now.languages != before.languages:
        return False
    columns = now.texts.columns
    deleted = before.texts.join(now.texts, on=columns, how="anti", nulls_equal=True)
    added = now.texts.join(before.texts, on=columns, how="anti", nulls_equal=True)
    _write_languages(connection)
    _add_texts(connection, _by_kind(added), _by_kind(deleted))
    return True


def _by_kind(texts: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    for (kind,), part in texts.group_by("kind", maintain_order=True):
        yield str(kind), part


def _add_texts(
    connection: duckdb.DuckDBPyConnection,
    added: Iterable[tuple[str, pl.DataFrame]],
    deleted: Iterable[tuple[str, pl.DataFrame]] = (),
) -> None:
    """Put texts (kind; number, text, language) into postings, posting_terms, posting_statistics and word_forms.

    Those `deleted`, given as they were put in, are taken out.
    """
    connection.execute("CREATE OR REPLACE TEMP TABLE counted AS SELECT *, 0 AS sign FROM search.postings WITH NO DATA")
    connection.execute("CREATE OR REPLACE TEMP TABLE forms (form VARCHAR, term VARCHAR, uses BIGINT)")
    found = connection.execute("SELECT kind, texts, round(texts * mean_length)::BIGINT FROM search.posting_statistics")
    totals = {kind: [texts, length] for kind, texts, length in found.fetchall()}
    for sign, parts in ((-1, deleted), (1, added)):
        for kind, part in parts:
            counted = count_terms(kind, part)
            total = totals.setdefault(kind, [0, 0])
            total[0] += sign * len(counted.lengths)
            total[1] += sign * int(counted.lengths.sum())
            insert = "INSERT INTO temp.counted SELECT $kind, term, number, n, length, $sign FROM part"
            execute_with(connection, insert, {"kind": kind, "sign": sign}, part=counted.postings)
            insert = "INSERT INTO temp.forms SELECT form, term, $sign * uses FROM part"
            execute_with(connection, insert, {"sign": sign}, part=counted.forms)
    connection.execute("DELETE FROM search.posting_statistics")
    for kind, (texts, length) in totals.items():
        if texts:
            connection.execute("INSERT INTO search.posting_statistics VALUES (?, ?, ?)", [kind, texts, length / texts])
    _write_postings(connection)
    connection.execute(_TERMS + _FORMS)
    for table in ("counted", "forms", "term_changes", "form_changes"):
        connection.execute(f"DROP TABLE temp.{table}")


def _write_postings(connection: duckdb.DuckDBPyConnection) -> None:
    """Delete postings and insert others, as `counted` says."""
    if one_value(connection, "SELECT count(*) FROM temp.counted WHERE sign < 0"):
        connection.execute(
            "DELETE FROM search.postings p USING temp.counted c "
            "WHERE c.sign < 0 AND c.term = p.term AND c.number = p.number"
        )
    # Sorted in slices that fit in memory: sorting everything at once spills to disk, three times slower.
    slices = one_value(connection, "SELECT count(*) FROM temp.counted") // _POSTINGS_PER_PART + 1
    for place in range(slices):
        bounds = {"first": 2**64 * place // slices, "last": 2**64 * (place + 1) // slices - 1}
        connection.execute(
            "INSERT INTO search.postings SELECT * EXCLUDE (sign) FROM temp.counted "
            "WHERE sign > 0 AND term BETWEEN $first::UBIGINT AND $last::UBIGINT ORDER BY term, number",
            bounds,
        )


def _languages(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int]]:
    """The languages of the documents and how many documents each has, the most frequent first.

    If every document is too short to detect its language, it is detected from all of them together.
    """
    counted = connection.execute(
        "SELECT language, count(*) AS n FROM documents WHERE language <> $unknown "
        "GROUP BY ALL ORDER BY n DESC, language",
        {"unknown": UNKNOWN},
    ).fetchall()
    if counted:
        return counted
    sample = connection.execute("SELECT text FROM text_units ORDER BY human_readable_id LIMIT 100").fetchall()
    language = language_of("\n".join(text[:100] for (text,) in sample))
    return [(language, 0)] if language != UNKNOWN else []


def _write_languages(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Fill languages; returns them, the most frequent first."""
    counted = _languages(connection)
    connection.execute("DELETE FROM search.languages")
    for language, documents in counted:
        connection.execute(
            "INSERT INTO search.languages VALUES (?, ?, ?)", [language, documents, sorted(stop_words(language))]
        )
    return [language for language, _ in counted]


def _language_by_number(
    connection: duckdb.DuckDBPyConnection, kind: str, languages: list[str], restriction: str
) -> pl.DataFrame | None:
    """number, language of the texts of a kind; None where no lookup is needed or possible."""
    if len(languages) < 2 or kind not in _LANGUAGES:
        return None
    given = {"kind": kind} if restriction else {}
    return connection.sql(f"SELECT * FROM ({_LANGUAGES[kind]}) {restriction}", params=given).pl()


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


def _parts(
    connection: duckdb.DuckDBPyConnection, kind: str, languages: list[str], restriction: str = ""
) -> Iterator[pl.DataFrame]:
    """number, text, language of the texts of a kind, in parts of bounded size; the tables are sorted by number."""
    language_by_number = _language_by_number(connection, kind, languages, restriction)
    table, text = _TEXTS[kind]
    query = f"SELECT number, {text} AS text FROM (SELECT human_readable_id AS number, * FROM {table}) {restriction}"
    given = {"kind": kind} if restriction else {}
    numbered = f"SELECT number FROM (SELECT human_readable_id AS number FROM {table}) {restriction} ORDER BY number"
    numbers = connection.sql(numbered, params=given).pl()["number"]
    for of_part in numbers.to_frame().iter_slices(_TEXTS_PER_PART):
        bounds = {"first": of_part["number"][0], "last": of_part["number"][-1]} | given
        part = connection.sql(f"{query} WHERE number BETWEEN $first AND $last", params=bounds).pl()
        yield _with_language(part, language_by_number, languages)
