"""Finding rows: BM25, vectors, fusion, names."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_assets.errors import QueryError
from graphrag_assets.extras.server.lookups import NotFoundError, entity_number
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.entities import named_entities
from graphrag_assets.query.options import Filter
from graphrag_assets.query.question import Question
from graphrag_assets.query.retrieval import Scores, fuse, vector_scores, word_scores
from graphrag_assets.query.scope import EVERYTHING, scope_of
from graphrag_assets.store.publication_reader import CurrentPublication, Reader
from graphrag_assets.text.languages import stem, stop_words
from tests.query.small_index import write_publication
from tests.word_vectors import embed, embedded_question

from .conftest import (
    AGAMEMNON,
    EASTERN,
    GREAT_EASTERN,
    HUDSON,
    NIAGARA,
    TEXT_UNITS,
    write_index,
)


def ranked_by(scores: Callable[..., Scores], *given: Any) -> list[int]:
    """The numbers of the rows in the order of their scores."""
    return list(scores(*given))


def words_of(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


def bm25_by_hand(texts: list[str], query: list[str]) -> list[int]:
    documents = [[stem(word, "en") for word in words_of(text)] for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    scores = {}
    for number, document in enumerate(documents):
        score = 0.0
        for word in query:
            df = sum(word in d for d in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            n = document.count(word)
            score += idf * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * len(document) / mean))
        if score:
            scores[number] = score
    return sorted(scores, key=lambda number: (-scores[number], number))


@pytest.mark.parametrize(
    "text", ["the cable of the Great Eastern", "Valentia", "board and chairman", "sold to new owners", "zebra"]
)
def test_bm25_ranks_as_its_formula_says(reader: Reader, text: str) -> None:
    question = Question(text)
    texts = [f"Document {document} {text}" for document, text, _ in TEXT_UNITS]
    words = [word for word in words_of(text) if word not in stop_words("en")]
    assert ranked_by(word_scores, reader, "text_unit", question, 10) == bm25_by_hand(
        texts, [stem(word, "en") for word in words]
    )


LANGUAGES = {
    "German": ("Die Straßenbahn fährt über die Brücke.", "STRASSENBAHN", "Bahnhof"),
    "Arabic": ("وصل القِطَارُ إلى المحطة في الصباح.", "القطار", "السفينة"),
    "Hebrew": ("הרכבת הגיעה אל הַתַּחֲנָה בבוקר.", "התחנה", "אוניה"),
    "Thai": ("รถไฟมาถึงสถานีในตอนเช้า", "สถานี", "เรือใบ"),
    "Chinese": ("火车在早晨到达了中央车站。", "车站", "轮船"),
    "Japanese": ("列車は朝に中央駅へ着いた。", "中央駅", "汽船"),
    "Korean": ("기차는아침에중앙역에도착했다.", "중앙역", "여객선"),
    "Russian": ("Поезд прибыл на вокзал утром.", "ВОКЗАЛ", "пароход"),
    "Hindi": ("रेलगाड़ी सुबह स्टेशन पहुँची।", "स्टेशन", "जहाज़"),
    "full-width": ("Ｔｈｅ ｔｒａｉｎ ａｒｒｉｖｅｄ", "train", "ship"),
}


def test_words_are_found_in_every_script(tmp_path: Path) -> None:
    units = [{"id": f"t{n}", "document_id": "d", "text": text} for n, (text, _, _) in enumerate(LANGUAGES.values())]
    path = write_publication(tmp_path, [{"id": "d", "title": ""}], units, [("t0", "Nobody", "", "")])
    reader = CurrentPublication(path).reader()
    for place, (language, (_, present, absent)) in enumerate(LANGUAGES.items()):
        assert ranked_by(word_scores, reader, "text_unit", Question(present), 10)[0] == place, language
        assert ranked_by(word_scores, reader, "text_unit", Question(absent), 10) == [], language


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 100])
def test_vectors_rank_by_exact_cosine(vector_reader: Reader, limit: int, filtered: bool) -> None:
    question = embedded_question("What did the oil of the lamps cost?")
    matrix = embed([f"Document {document}\n{text}" for document, text, _ in TEXT_UNITS])
    expected = np.argsort(-(matrix @ question.vector), kind="stable").tolist()
    assert expected[0] == 5
    allowed = [f"Document {document}" for document, _, _ in TEXT_UNITS][1:4]
    scope = scope_of(vector_reader, Filter(documents=allowed)) if filtered else EVERYTHING
    wanted = [number for number in expected if not filtered or f"Document {TEXT_UNITS[number][0]}" in allowed]
    assert ranked_by(vector_scores, vector_reader, "text_unit", question, limit, scope) == wanted[:limit]


def test_a_model_that_gives_vectors_of_another_length_is_refused(vector_reader: Reader) -> None:
    question = embedded_question("the oil of the lamps")
    question.vector = np.ones(3, np.float32)
    with pytest.raises(QueryError, match=r"vectors of 512 numbers, and \S+ now gives 3"):
        ranked_by(vector_scores, vector_reader, "entity", question, 3)


def test_a_question_without_its_vector_is_an_error_and_not_a_search_by_words(vector_reader: Reader) -> None:
    with pytest.raises(AssertionError, match="not embedded"):
        ranked_by(vector_scores, vector_reader, "entity", Question("the oil of the lamps"), 3)
    with pytest.raises(NotFoundError, match=r"The nearest are: .*Niagara"):  # names are looked up by words
        entity_number(vector_reader, EVERYTHING, "an American frigate")


def test_fusion_adds_reciprocal_ranks() -> None:
    # 7: 1/61 + 1/62; 8: 1/62 + 1/61 (a tie, the smaller number first); 9: 1/63
    assert fuse([8, 7, 9], [7, 8]) == [7, 8, 9]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did the Niagara leave?", [NIAGARA]),
        ("who owned the great eastern?", [GREAT_EASTERN]),
        ("Was the Agamemnon's cable longer than the (Niagara)?", [AGAMEMNON, NIAGARA]),
        ("Was the captain of the Niagara content?", [HUDSON]),
        ("Where do ice birds live, or the ice bird?", []),
        ("Did Eastern and Great Eastern differ?", [EASTERN, GREAT_EASTERN]),
        ("How deep is it?", []),
    ],
)
def test_entities_named_in_a_question_are_found(reader: Reader, question: str, expected: list[int]) -> None:
    assert sorted(named_entities(reader, Question(question))) == sorted(expected)


def test_an_index_embedded_by_another_model_is_refused(tmp_path: Path) -> None:
    path = write_index(tmp_path / "graphrag-1.duckdb", model="other/model")
    with pytest.raises(QueryError, match="other/model"):
        GraphRAG(path).basic("Valentia")
