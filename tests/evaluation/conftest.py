"""An index of two documents with questions in its data folder: two are answerable, two lines cannot be used."""

import json

import pytest

TEXT = (
    "Captain James Anderson commanded the Great Eastern of the Telegraph Company in 1865. "
    "Samuel Canning sailed with James Anderson to Valentia for the Telegraph Company."
)
QUESTIONS = [
    {
        "question": "Who commanded the Great Eastern?",
        "document": "a.txt",
        "quote": "James Anderson commanded",
        "answer": "Anderson",
    },
    {"question": "Who owned the Great Eastern?", "document": "b.txt", "answer": "Daniel Gooch"},
    {"question": "What did Napoleon eat?", "answerable": False},
]


@pytest.fixture
def indexed(start_with):
    made = start_with({"one/a.txt": TEXT, "two/b.txt": "Daniel Gooch owned the Great Eastern with Samuel Canning."})
    lines = [*map(json.dumps, QUESTIONS), '{"question": "Who?"}', '{"question": "Where?", "document": "gone.txt"}']
    (made.root / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return made
