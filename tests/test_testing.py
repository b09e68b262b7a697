"""What the package offers for the tests of applications."""

import asyncio

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


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({}, "no text"),
        ({".hidden": "Ada"}, "ignores: '.hidden'"),
        ({"": "Ada"}, "ignores: ''"),
        ({"../x": "Ada"}, "'../x' needs another name"),
        ({"/x": "Ada"}, "'/x' needs another name"),
        ({"a": "Ada", "a.txt": "Babbage"}, "'a.txt' needs another name"),
        ({"a": " ", "b": NOTES["ada"]}, "a.txt: the file contains only white space"),
    ],
)
def test_texts_that_are_not_indexed_are_an_error(documents: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message), index_of(documents):
        pass


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
