"""The embedded default's answers to questions in two wordings, on collections of prose of different kinds.

`questions.json` has 48 questions, each in words close to the text and in those of someone who has not read it, and 12
that the texts do not answer. The weights of the answerer were set on the half "tune" and are judged by the other.
A collection is made of `corpora/` or, where the texts are of others, of files beside the project.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.query import GraphRAG

from ..conftest import TEST_DATA, index_once

CORPORA = Path(__file__).parent / "corpora"
REAL_FILES = Path(__file__).parents[3] / "shared" / "data" / "real-files"
REAL = {
    "web": [f"web/{name}.html" for name in ("wiki_duck", "v8-blog", "mercurial", "ietf-1")],
    "pdf": [
        f"pdf/{name}.pdf"
        for name in ("multi_page", "multi-column-2p", "test", "list-item-example", "movie-theater-booking-2024")
    ],
    "winter-sports": ["markup/winter-sports.epub"],
}
QUESTIONS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def collections(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, GraphRAG]:
    if not REAL_FILES.is_dir():
        pytest.skip(f"there is no folder {REAL_FILES}")
    inputs = {name: CORPORA / name for name in ("minutes", "manual", "satzung", "interview")}
    inputs["christmas-carol"] = (TEST_DATA / "christmas-carol" / "input").resolve()
    for name, files in REAL.items():
        inputs[name] = tmp_path_factory.mktemp(name)
        for file in files:
            (inputs[name] / Path(file).name).write_bytes((REAL_FILES / file).read_bytes())
    return {name: GraphRAG(index_once(shared_folder / name, folder) / "index") for name, folder in inputs.items()}


def holds(answer: str, facts: list[str]) -> bool:
    said = " ".join(answer.replace("*", "").replace("’", "'").split()).casefold()
    return all(fact.casefold() in said for fact in facts)


@pytest.mark.long
def test_answers_hold_what_was_asked_for_in_either_wording(collections: dict[str, GraphRAG]) -> None:
    right: Counter[tuple[str, str]] = Counter()
    for row in QUESTIONS["answerable"]:
        for wording in ("close", "reworded"):
            answer = collections[row["collection"]].local(row[wording]).answer
            right[row["half"], wording] += holds(answer, row["answer_contains"])
    assert right["tune", "close"] >= 20
    assert right["held-out", "close"] >= 20
    assert right["tune", "reworded"] >= 9
    assert right["held-out", "reworded"] >= 7


@pytest.mark.long
def test_questions_that_the_texts_do_not_answer_are_refused_or_marked(collections: dict[str, GraphRAG]) -> None:
    answers = [collections[row["collection"]].local(row["question"]).answer for row in QUESTIONS["unanswerable"]]
    assert sum(answer.startswith((NO_ANSWER, CLOSEST)) for answer in answers) >= 11
