"""Texts are searched in SQL as in Python."""

from pathlib import Path

import duckdb
import pytest

from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import word_scores
from graphrag_assets.store.publication_reader import CurrentPublication
from graphrag_assets.store.publication_writer import create_tables
from graphrag_assets.store.schema import SCHEMA_VERSION
from graphrag_assets.text.words import title_key
from tests.search_tables import search_tables_of

FOREIGN = {
    "日本語の文章です。東京タワーは高い。": "東京タワーはどこですか",
    "中文文本没有空格，北京是首都。": "北京 首都",
    "กรุงเทพมหานครเป็นเมืองหลวง": "เมืองหลวง",
    "한국어 문장은 띄어 씁니다": "한국어 문장",
    "ὁ Ὀδυσσεὺς ΟΔΥΣΣΕΥΣ εἰς Ἰθάκην": "ΟΔΥΣΣΕΥΣ",
    "Die Straße nach GROẞENHAIN": "STRASSE grossenhain",
    "İstanbul'un tarihi": "istanbul İSTANBUL",
    "اللُّغَة العَرَبِيَّة": "العربية",
    "עִבְרִית שפה": "עברית",
    "हिन्दी में लिखा है": "हिन्दी लिखा",
    "Привет, МИР. Ёлка": "мир ёлка",
    "café naïve": "cafe\u0301 naive",
}


@pytest.mark.parametrize(
    "question",
    ["Who commanded the Great Eastern when the cable of 1865 was lost?", "gutta-percha", "£350,000 in 1856"],
)
def test_the_best_passage_is_that_of_the_query_module(sample_index, index, question):
    reader = CurrentPublication(sample_index.root / "index").reader()
    for kind in ("text_unit", "entity"):
        query = f"SELECT human_readable_id FROM bm25('{kind}', ?, 7)"
        found = [n for (n,) in index.execute(query, [question]).fetchall()]
        by_module = list(word_scores(reader, kind, Question(question), 7))
        assert by_module[0] in found[:3]


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
        connection.execute(f"INSERT INTO publication BY NAME SELECT 1 AS number, '{SCHEMA_VERSION}' AS schema_version")
        search_tables_of(connection)
    return path


def test_search_finds_texts_in_any_language(foreign):
    reader = CurrentPublication(foreign).reader()
    for number, question in enumerate(FOREIGN.values()):
        for macro in ("search_text(", "bm25('entities', "):
            found = reader.query(f"SELECT human_readable_id FROM {macro}$q, 10)", {"q": question})
            assert found["human_readable_id"][0] == number, question
