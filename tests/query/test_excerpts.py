"""Excerpts: the sentences of a passage that hold most of the question, where it does not fit a context."""

from graphrag_assets.query import GraphRAG


def test_a_small_context_shows_excerpts_where_passages_do_not_fit(sample_index):
    rag = GraphRAG(sample_index.root / "index")
    question = "Who was chief officer of the Great Eastern in 1865 and what did he later command her to lay?"
    context = rag.context("local", question, max_context_tokens=1_500)
    assert context.tokens <= 1_500
    texts = dict(rag.sql("SELECT human_readable_id, text FROM text_units").iter_rows())
    (sources,) = (section for section in context.sections if section.name == "Sources")
    excerpts = {p.number: p.text.split(" … ") for p in sources.passages if p.text != texts[p.number]}
    assert excerpts
    for number, sentences in excerpts.items():
        places = [texts[number].index(sentence) for sentence in sentences]
        assert len(places) <= 3
        assert places == sorted(places)
    whole = rag.context("local", question, max_context_tokens=100_000)
    (sources,) = (section for section in whole.sections if section.name == "Sources")
    assert all(passage.text == texts[passage.number] for passage in sources.passages)
