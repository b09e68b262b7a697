"""Excerpts: the sentences of a passage that hold most of the question."""

import pytest

from graphrag_assets.query import GraphRAG
from graphrag_assets.query.local import GAP, MAX_SENTENCES, excerpts
from graphrag_assets.query.question import Question

TEXT = (
    "The directors met in the morning. Nothing was decided. Captain Hudson of the Niagara paid out the cable. "
    "It rained. The Agamemnon lay off Valentia with the other half."
)


@pytest.fixture
def made(index_file):
    reader = GraphRAG(index_file).index.reader()

    def excerpt(question: str, *texts: str, language: str = "en") -> list[str]:
        return excerpts(reader, Question(question), [(text, language) for text in texts])

    return excerpt


def test_an_excerpt_covers_the_words_of_the_question_in_the_order_of_the_text(made):
    assert made("Did the Agamemnon meet the Niagara at Valentia?", TEXT) == [
        f"Captain Hudson of the Niagara paid out the cable.{GAP}The Agamemnon lay off Valentia with the other half."
    ]


def test_a_passage_without_a_word_of_the_question_stays_whole(made):
    assert made("Agamemnon", "Nothing was decided. It rained.") == ["Nothing was decided. It rained."]
    assert made("zzz", TEXT) == [TEXT]


def test_an_excerpt_has_few_sentences(made):
    words = ["Niagara", "Agamemnon", "Valentia", "Hudson", "Penguin"]
    text = " ".join(f"The {word} is here." for word in words)
    (excerpt,) = made(" ".join(words), text)
    assert excerpt.count("is here") == MAX_SENTENCES


def test_a_small_context_shows_excerpts_where_passages_do_not_fit(sample_index):
    rag = GraphRAG(sample_index.root / "index")
    question = "Who was chief officer of the Great Eastern in 1865 and what did he later command her to lay?"
    context = rag.context("local", question, max_context_tokens=1_500)
    assert context.tokens <= 1_500
    texts = dict(context.frames["sources"].select("human_readable_id", "text").iter_rows())
    (sources,) = (section for section in context.sections if section.name == "Sources")
    shown = {passage.number: passage.text for passage in sources.passages}
    short = {number: text for number, text in shown.items() if text != texts[number]}
    assert short
    for number, text in short.items():
        assert all(sentence in texts[number] for sentence in text.split(GAP))
    whole = rag.context("local", question, max_context_tokens=100_000)
    (sources,) = (section for section in whole.sections if section.name == "Sources")
    assert all(passage.text == texts[passage.number] for passage in sources.passages)
