"""`evaluate`: the table, the file over publications, comparisons, exports, and assert_recall."""

import json
import subprocess
import sys

import numpy as np
import pytest

from graphrag_assets.errors import InputError, InvalidOption, StoreError
from graphrag_assets.extras.evaluation import results as evaluation_results
from graphrag_assets.extras.evaluation.bootstrap import paired
from graphrag_assets.extras.evaluation.results import RESULTS, results, trend
from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import assert_recall
from tests.cli import run_command

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
def project(start_with):
    made = start_with({"one/a.txt": TEXT, "two/b.txt": "Daniel Gooch owned the Great Eastern with Samuel Canning."})
    lines = [*map(json.dumps, QUESTIONS), '{"question": "Who?"}', '{"question": "Where?", "document": "gone.txt"}']
    (made.root / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return made


def test_the_table_says_what_was_found_and_what_could_not_be_used(project):
    printed = run_command("evaluate", "--generated", "0", "--answers", "3")
    assert "Not used: questions.jsonl, line 4: the question has no gold passage." in printed
    assert "Not measured: line 5, “Where?”: there is no document 'gone.txt' in the publication." in printed
    assert "Publication 1: 2 questions (2 user)" in printed
    rows = {line.split("│")[1].strip() or "": line for line in printed.splitlines() if line.startswith("│")}
    for method in ("BM25", "local", "basic"):
        assert "100.0" in rows[method]
    assert "100.0" in rows["refused"]
    assert "100.0" in rows["has the answer"]
    assert {"names in text", "largest component", "unsupported report sentences"} <= set(rows)


def test_numbers_are_kept_over_publications_and_no_text_is(project):
    run_command("evaluate", "--generated", "0")
    first = trend(project.root / "index")
    assert set(first["method"]) == {"BM25", "local", "basic"}
    run_command("evaluate", "--generated", "0")
    assert trend(project.root / "index").equals(first)
    project.write("two/b.txt", "Daniel Gooch owned the Great Eastern alone.")
    project.index_all()
    run_command("evaluate", "--generated", "0")
    assert set(trend(project.root / "index")["publication"]) == {1, 2}
    assert b"Gooch" not in (project.root / "index" / RESULTS).read_bytes()
    with results(project.root / "index") as connection:
        assert connection.execute("SELECT count(DISTINCT publication) FROM trend").fetchall() == [(2,)]


def test_two_publications_are_compared_on_the_questions_that_both_have(project):
    project.write("one/a.txt", TEXT.replace("Great Eastern", "Agamemnon").replace("commanded", "led"))
    lines = [{"question": "Who commanded the Great Eastern?", "document": "a.txt"}, QUESTIONS[1]]
    (project.root / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    project.index_all()
    printed = run_command("evaluate", "--generated", "0", "--compare", "1", "2")
    (row,) = [line for line in printed.splitlines() if line.startswith("│ local") and "mrr" in line]
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    assert cells[:4] == ["local", "mrr", "100.0", "75.0"]
    assert cells[-2:] == ["1", "0"]


def test_scores_as_json_and_answers_in_the_formats_of_benchmarkqed(project, tmp_path):
    folder = tmp_path / "qed"
    printed = run_command("evaluate", "--generated", "0", "--answers", "2", "--export", str(folder), "--json")
    found = json.loads(printed[printed.index("{") :])
    assert found["publication"] == 1
    assert {"question", "method", "metric", "value"} == set(found["scores"][0])
    answers = json.loads((folder / "local" / "answers.json").read_text())
    assert {"question_id", "question_text", "answer"} == set(answers[0])
    retrieval = json.loads((folder / "local" / "retrieval.json").read_text())
    assert {"source_id", "source_text"} == set(retrieval[0]["context"][0])
    assert "has files already" in run_command("evaluate", "--answers", "2", "--export", str(folder), status=1)
    assert "--answers" in run_command("evaluate", "--export", str(folder), status=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--answers", "-1"], "-1 is not in the range x>=0"),
        (["--generated", "-1"], "-1 is not in the range x>=0"),
        (["--answers", "1", "--judge", "--method", "local", "--method", "local"], "--judge compares two methods"),
        (["--answers", "1", "--judge", "--json"], "leave out --judge"),
        (["--compare", "1", "2", "--json"], "leave out"),
        (["--compare", "1", "2", "--answers", "1", "--export", "folder"], "leave out"),
    ],
)
def test_options_without_effect_are_refused(options, message):
    assert message in run_command("evaluate", *options, status=2)


def test_results_that_a_notebook_has_open_are_not_called_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_results, "_LOCK_SECONDS", 0)
    with results(tmp_path):
        pass
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / RESULTS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as notebook:
        assert notebook.stdout and notebook.stdout.readline()  # noqa: PT018
        with pytest.raises(StoreError, match="close it there"), results(tmp_path):
            pass
        notebook.communicate(b"\n", timeout=30)
    (tmp_path / RESULTS).write_text("no database")
    with pytest.raises(StoreError, match="Move it away"), results(tmp_path):
        pass


def test_assert_recall_names_the_questions_that_were_lost(project, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, QUESTIONS)), encoding="utf-8")
    with GraphRAG(project.root) as rag:
        assert_recall(rag, file, at_5=1.0)
        file.write_text(json.dumps(QUESTIONS[0]) + '\n{"question": "Where?", "document": "gone.txt"}')
        with pytest.raises(AssertionError, match=r"recall@5 by local is 0\.500, less than 0\.8\. Not found: Where\?"):
            assert_recall(rag, file, at_5=0.8)
        with pytest.raises(InputError):
            assert_recall(rag, tmp_path / "none.jsonl", at_5=0.8)
        with pytest.raises(InvalidOption, match="at_5"):
            assert_recall(rag, file)


def test_the_paired_bootstrap_tells_a_loss_from_chance():
    draw = np.random.default_rng(1)
    before = draw.integers(0, 2, 50).astype(float)
    assert paired(before, before) == (0, 0, 0, 1)
    lost = before.copy()
    lost[np.flatnonzero(before)[:6]] = 0
    found = paired(before, lost)
    assert found.mean == pytest.approx(-0.12)
    assert found.low < -0.12 < found.high < 0
    assert found.p_worse < 0.01
    swapped = np.where(np.arange(50) == np.flatnonzero(before)[0], 0, before)
    assert paired(before, swapped).p_worse > 0.05
    assert paired(before, lost) == found  # the same numbers each time
