"""What the package offers for the tests of applications."""

import asyncio
import re

import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.query import QueryError
from graphrag_assets.testing import FakeAnswerer, index_of

NOTES = {"ada": "Ada Lovelace met Charles Babbage in London in 1833.", "mail/two.md": "# Ships\n\nThe Niagara sailed."}


def test_an_index_of_a_few_texts_answers_and_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/never-asked")
    with index_of(NOTES) as rag:
        answer = rag.local("Whom did Ada Lovelace meet?")
        assert "Charles Babbage" in answer.answer
        assert answer.citations[0].source == "ada.txt"
        assert set(rag.sql("SELECT source FROM documents")["source"]) == {"ada.txt", "mail/two.md"}
        folder = rag.index.path
    assert not folder.exists()
    with pytest.raises(QueryError, match="closed"):
        rag.local("Whom?")


def test_a_fake_answerer_replies_and_records() -> None:
    fake = FakeAnswerer({"Lovelace": "She met Babbage. [Data: Sources (1)]"})
    with index_of(NOTES, fake) as rag:
        assert rag.local("Whom did Ada Lovelace meet?").answer.startswith("She met Babbage.")
        assert "unable to answer" in asyncio.run(rag.abasic("What sailed?")).answer
        assert rag.local("Whom did Ada Lovelace meet?").model == "fake"
    assert [question for question, _ in fake.asked] == [
        "Whom did Ada Lovelace meet?",
        "What sailed?",
        "Whom did Ada Lovelace meet?",
    ]
    assert any("Babbage" in passage.text for passage in fake.asked[0][1].passages)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({}, "no texts"),
        ({"ada": "Ada met Charles.", "a.pdf": "no PDF", "b": ""}, "b.txt: the file is empty"),
        ({".hidden": "Ada met Charles."}, ".hidden.txt is hidden"),
    ],
)
def test_a_text_that_is_not_indexed_is_an_error(texts: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)), index_of(texts):
        pass
