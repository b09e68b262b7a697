"""Texts are normalized, searched and counted in SQL as in Python."""

import unicodedata
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.query.retrieval import Question, word_scores
from graphrag_assets.store.publication_content import create_tables
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.search_tables import write_search_tables
from graphrag_assets.text.words import CJK, count_tokens, search_words, title_key

QUESTIONS = [
    "Who commanded the Great Eastern when the cable of 1865 was lost?",
    "What did a message cost?",
    "gutta-percha",
    "the of and",
    "¿Quién fue Cyrus Field?",
    "Wer war Wildman Whitehouse, und was sagte er über die Spannung?",
    "Ｇｒｅａｔ Ｅａｓｔｅｒｎ",
    "xyzzy",
    "£350,000 in 1856",
]
FOREIGN = {
    "日本語の文章です。東京タワーは高い。": "東京タワーはどこですか",
    "中文文本没有空格，北京是首都。": "北京 首都",
    "กรุงเทพมหานครเป็นเมืองหลวงกำลัง": "เมืองหลวง กำลัง",
    "한국어 문장은 띄어 씁니다": "한국어 문장",
    "ὁ Ὀδυσσεὺς ΟΔΥΣΣΕΥΣ εἰς Ἰθάκην": "ΟΔΥΣΣΕΥΣ",
    "Die Straße nach GROẞENHAIN": "STRASSE grossenhain",
    "İstanbul'un tarihi": "istanbul İSTANBUL",
    "اللُّغَة العَرَبِيَّة": "العربية",
    "עִבְרִית שפה": "עברית",
    "हिन्दी में लिखा है": "हिन्दी लिखा",
    "Привет, МИР. Ёлка": "мир ёлка",
    "ｶﾀｶﾅ ﾃｽﾄ": "カタカナ",
    "café naïve ﬁnancial": "cafe\u0301 financial",
}


PROSE = [
    "Die Straße nach Großenhain führt am Fluss entlang.",
    "Привет, мир. Кабель был проложен через океан.",
    "中文文本没有空格，北京是首都，海底电缆在十九世纪铺设。",
    "日本語の文章です。東京タワーは高い。海底ケーブルが敷設された。",
    "한국어 문장은 띄어 씁니다. 대서양 전신 케이블",
    "กรุงเทพมหานครเป็นเมืองหลวงกำลังพัฒนา",
    "اللغة العربية لغة جميلة",
    "हिन्दी में लिखा है और पढ़ा है",
    "Ο Οδυσσέας πήγε στην Ιθάκη",
]


def normalized(connection, texts: list[str]) -> list[tuple[str, list[str]]]:
    """title_key and search_terms of the texts, by the macros."""
    frame = pl.DataFrame({"place": range(len(texts)), "text": texts})
    connection.register("texts", frame)
    query = "SELECT title_key(text), search.search_terms(text) FROM texts ORDER BY place"
    found = connection.execute(query).fetchall()
    connection.unregister("texts")
    return found


def by_python(texts: list[str]) -> list[tuple[str, list[str]]]:
    return [(title_key(text), search_words(pl.Series([text])).item(0).to_list()) for text in texts]


def test_texts_are_normalized_in_sql_as_in_python(index):
    texts = [*QUESTIONS, *FOREIGN, *FOREIGN.values(), "", "…", "  The “Great  Eastern”'s ", "O'Neill’s", "*Bryant*"]
    texts += [
        "ΑΣ ΒΣ",
        "ΣΑΣ.",
        "Α’Σ Σ",
        "ア・イ ー ฿",
        "Ada's e-mail’s co-op-s 'S",
        "co\u00adoperate well‐known a-東京-b A’s's",
        "x\u00a0y\u2003z\u3000w",
        "foo_bar-baz 3.14",
        "½ ™ Ⅷ ﷺ x²",
        "日",
    ]
    assert normalized(index, texts) == by_python(texts)


@pytest.mark.extended
def test_every_character_is_normalized_in_sql_as_in_python(index):
    # What Unicode has added after version 14, DuckDB does not know yet. The ideographs and syllables that fill most of
    # the first planes behave as the few of them that are here.
    known = unicodedata if unicodedata.unidata_version == "14.0.0" else unicodedata.ucd_3_2_0
    places = (*range(0x5000), *range(0x9F00, 0xAD00), *range(0xD700, 0xD800), *range(0xE000, 0x1FBFA))
    texts = [f"a{chr(place)}b" for place in places if known.category(chr(place)) != "Cn"]
    found = dict(zip(texts, normalized(index, texts), strict=True))
    series = pl.Series("text", texts)
    unspaced = series.str.contains(f"[{CJK}]")
    expected = {}
    for part in (series.filter(unspaced), series.filter(~unspaced)):
        expected |= {
            text: (title_key(text), words.to_list()) for text, words in zip(part, search_words(part), strict=True)
        }
    assert {text for text in texts if found[text] != expected[text]} == set()


@pytest.mark.extended
@given(
    st.lists(st.text(st.sampled_from("aBs ßẞİıΣσς’'“*_-‐\u00ad.é\u0301ｱア日本。กำﬁ½Ⅷ١لُ1"), max_size=12), max_size=20)
)
def test_any_mixture_of_scripts_is_normalized_in_sql_as_in_python(index, texts):
    assert normalized(index, texts) == by_python(texts)


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_macro_equals_the_query_module(sample_index, index, question):
    reader = CurrentPublication(sample_index.root / "index").reader()
    for macro, kind in (("search_text", "text_unit"), ("search_entities", "entity")):
        found = index.execute(f"SELECT human_readable_id FROM {macro}(?, 7)", [question]).fetchall()
        assert [number for (number,) in found] == list(word_scores(reader, kind, Question(question), 7))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """An index of one entity and one text unit in each of many languages."""
    path = tmp_path_factory.mktemp("foreign") / "graphrag.duckdb"
    with duckdb.connect(str(path)) as connection:
        create_tables(connection, 1)
        for number, text in enumerate(FOREIGN):
            connection.execute(
                "INSERT INTO entities BY NAME SELECT $n AS human_readable_id, $text AS title, '' AS description, "
                "$key AS title_key",
                {"n": number, "text": text, "key": title_key(text)},
            )
            connection.execute(
                "INSERT INTO text_units BY NAME SELECT $n AS human_readable_id, $text AS text",
                {"n": number, "text": text},
            )
        connection.execute("INSERT INTO publication BY NAME SELECT 1 AS number")
        write_search_tables(connection)
    return path


@pytest.mark.long
def test_search_finds_texts_in_any_language(foreign):
    reader = CurrentPublication(foreign).reader()
    for number, question in enumerate(FOREIGN.values()):
        for macro, kind in (("search_text", "text_unit"), ("search_entities", "entity")):
            found = reader.query(f"SELECT human_readable_id FROM {macro}($q)", {"q": question})
            assert found["human_readable_id"].to_list() == list(word_scores(reader, kind, Question(question), 10))
            assert found["human_readable_id"][0] == number


def test_estimated_tokens_of_prose_are_not_less_than_the_real_ones(index):
    texts = [
        row[0]
        for row in index.execute(
            "SELECT text FROM text_units UNION ALL SELECT description FROM relationships"
        ).fetchall()
    ]
    texts += PROSE
    estimated = [index.execute("SELECT search.estimated_tokens(?)", [text]).fetchall()[0][0] for text in texts]
    assert [text for text, n, e in zip(texts, count_tokens(texts), estimated, strict=True) if n > e] == []
