"""Questions over several passages: how many of the passages that hold the answer basic search finds."""

import json
from collections.abc import Callable

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.retrieval import Question, by_vector, by_words, search

from ..conftest import SHARED_DATA, Project

FOLDER = SHARED_DATA / "hotpotqa-100"


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs ../shared/data/hotpotqa-100")
def test_recall_of_passages_is_that_of_bm25_at_least(project: Project) -> None:
    corpus = json.loads((FOLDER / "corpus.json").read_text())
    questions = json.loads((FOLDER / "questions.json").read_text())
    rows = [{"title": title, "text": f"{title}\n\n{''.join(sentences)}"} for title, sentences in corpus.items()]
    project.write("hotpotqa.jsonl", "\n".join(map(json.dumps, rows)))
    project.index_all()
    reader = GraphRAG(project.root / "index").index.reader()
    titles = dict(
        reader.query(
            "SELECT t.human_readable_id, d.title FROM text_units t JOIN documents d ON d.id = t.document_id"
        ).iter_rows()
    )

    def recall_at_5(find: Callable[[Question, int], list[int]]) -> float:
        shares = []
        for question in questions:
            gold = {title for title, _ in question["supporting_facts"]}
            units = find(Question(question["question"]), 10)  # a few long passages are two text units
            found = list(dict.fromkeys(titles[number] for number in units))[:5]
            shares.append(len(gold.intersection(found)) / len(gold))
        return 100 * sum(shares) / len(shares)

    fused = recall_at_5(lambda question, limit: search(reader, "text_unit", question, limit))
    words = recall_at_5(lambda question, limit: by_words(reader, "text_unit", question, limit))
    vectors = recall_at_5(lambda question, limit: by_vector(reader, "text_unit", question, limit))
    print(f"passage recall@5: fused {fused}, BM25 {words}, vectors {vectors}")
    assert fused >= 76.0
    context = GraphRAG(project.root / "index").context("basic", questions[0]["question"], k=5)
    expected = search(reader, "text_unit", Question(questions[0]["question"]), 5)
    assert context.frames["sources"]["human_readable_id"].to_list() == expected
