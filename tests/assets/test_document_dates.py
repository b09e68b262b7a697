"""Dates of documents, from the input folder to answers: a changed date reaches every table that shows it."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from graphrag_assets.query import GraphRAG
from tests.assets.test_language_models import use
from tests.comparison import facts, index_at
from tests.conftest import Project
from tests.openai_server import running


def rows(**dates: str | None) -> str:
    texts = {
        "first": "Yesterday James Anderson commanded the Great Eastern.",
        "second": "Cyrus Field met William Thomson in Valentia.",
    }
    return "".join(json.dumps({"id": name, "text": texts[name], "date": day}) + "\n" for name, day in dates.items())


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("b/a.md", "---\ndate: 1866-07-27\n---\nJames Anderson met Cyrus Field.\n", "---\ndate: 1865-08-02\n---\n"),
        ("b/a.jsonl", rows(first="1866-07-27"), rows(first=None)),
    ],
)
def test_index_after_a_change_of_the_date_equals_a_fresh_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, name, before, after
) -> None:
    project.write(name, before)
    project.index_all()
    assert project.sql("SELECT document_date::VARCHAR FROM documents") == [("1866-07-27",)]
    project.write(name, after if name.endswith("l") else after + before.rpartition("---\n")[2])
    project.index_all()
    fresh = Project(tmp_path_factory.mktemp("fresh"), project.instance)
    fresh.write(name, (project.input / name).read_text())
    edited = facts(project.index)
    shown = project.sql("SELECT document_date::VARCHAR FROM documents")
    index_at(fresh.root, monkeypatch)
    fresh.index_all()
    assert edited == facts(fresh.index)
    assert shown == fresh.sql("SELECT document_date::VARCHAR FROM documents")


@pytest.mark.long
def test_a_model_is_told_the_date_and_asked_again_when_it_changes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> list[str]:
        requests = [r.body["messages"][-1]["content"] for r in server.chats if "<document" in str(r.body)]
        return sorted({day for text in requests for day in re.findall(r"dated (\d{4}-\d\d-\d\d)", text)})

    with running() as server:
        use(monkeypatch, server)
        project.write("b/a.jsonl", rows(first="1866-07-27", second=None))
        project.index_all()
        assert asked() == ["1866-07-27"]
        server.requests.clear()
        project.index_all()
        assert server.requests == []
        project.write("b/a.jsonl", rows(first="1865-08-02", second=None))
        project.index_all()
        assert asked() == ["1865-08-02"]


@pytest.mark.long
def test_answers_of_a_model_read_the_dates_of_sources(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("b/a.jsonl", rows(first="1866-07-27", second=None))
    project.index_all()
    with running() as server:
        use(monkeypatch, server)
        with GraphRAG(Path(project.root / "index")) as rag:
            rag.basic("Who commanded the Great Eastern?")
    system, user = (message["content"] for message in server.chats[-1].body["messages"])
    assert "document_date tells that one was written later" in system
    assert "|1866-07-27|" in user


@pytest.mark.extended
def test_the_command_line_takes_dates(project: Project) -> None:
    project.write("b/a.jsonl", rows(first="1866-07-27", second="1867"))
    project.index_all()

    def printed(*arguments: str) -> str:
        return CliRunner().invoke(main, [*arguments, "--index", str(project.root / "index")]).output

    assert "commanded" not in printed("query", "local", "Who met?", "--context", "--since", "1867-01-01")
    assert "Valentia" not in printed("query", "basic", "Who commanded?", "--context", "--as-of", "1866")
    found = json.loads(printed("query", "retrieve", "Who met whom?", "--since", "1867", "--json"))
    assert ["Valentia" in passage["text"] for passage in found] == [True]
    assert "The search option as_of is 'soon'; it must be a day" in printed("query", "basic", "Who?", "--as-of", "soon")
