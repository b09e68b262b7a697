"""The cost preview compared with the requests that indexing sends."""

from collections import Counter

import polars as pl
import pytest

from graphrag_assets.extras.cost_preview.preview import plan_index
from graphrag_assets.llm.backend import ledger_of
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens
from tests import openai_server
from tests.assets.test_language_models import BATCHES, TABLES, contents, copy_index, is_gleaning_of, use
from tests.cli import run_command
from tests.openai_content import content_for
from tests.openai_server import running

EXTRACTION = ["extract_all", "extract_all_continue"]


@pytest.fixture
def server(monkeypatch):
    """Counts tokens as OpenAI does: by the tokenizer, plus four per message."""
    monkeypatch.setattr(openai_server, "_tokens", lambda text: count_tokens([text])[0])
    with running() as server:
        yield server


@pytest.fixture
def priced(project, server, monkeypatch):
    use(monkeypatch, server)
    prices = '{"chat_input": 1, "chat_output": 4, "embedding": 0.02}'
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", prices)
    return project


@pytest.fixture
def small(priced):
    for path, text in BATCHES.items():
        priced.write(path, text)
    return priced


@pytest.fixture
def indexed(priced, shared_folder):
    """The same documents, indexed: `server` has no requests yet."""
    return copy_index(priced, shared_folder)


def calls(project) -> dict[str, int]:
    """The planned calls by task."""
    return dict(plan_index(project.index).costs.filter(pl.col("calls") > 0).select("task", "calls").iter_rows())


def bill() -> pl.DataFrame:
    """What was paid by the ledger: a row per task, with the columns of the preview."""
    paid = ledger_of(Settings.load()).frame()
    sums = ("prompt_tokens", "completion_tokens", "cost_usd")
    return paid.group_by("task").agg(pl.len().alias("calls"), *(pl.col(name).sum() for name in sums))


def test_a_plan_gives_a_range_which_a_sample_narrows(priced, server):
    for number in range(8):
        priced.write(f"one/{number}.md", f"{BATCHES['one/a.md']} {number}")
    planned = plan_index(priced.index)
    assert server.requests == []
    sampled = plan_index(priced.index, sample=True)
    assert len([r for r in server.chats if r.task == "ExtractGraphWithClaims" and not is_gleaning_of(r.body)]) == 5
    sent, sample = len(server.requests), bill()
    widths = [
        plan.costs.select(pl.col("most_usd").sum() / pl.col("least_usd").sum()).item() for plan in (planned, sampled)
    ]
    assert 1 < widths[1] < widths[0]
    priced.index_all()
    assert len(server.requests) > sent
    printed = run_command("index", "plan")
    assert "Between" not in printed  # nothing is left to pay
    least, most = sampled.costs.filter(task="extract_all").select("least_usd", "most_usd").row(0)
    paid = [costs.filter(task="extract_all")["cost_usd"].sum() for costs in (sample, bill())]
    assert least <= paid[1] - paid[0] <= most


def test_equal_requests_count_once_and_those_that_are_given_up_not_at_all(priced, server, monkeypatch):
    monkeypatch.setattr("graphrag_assets.assets.checks.MAX_FAILED_SHARE", 1)
    monkeypatch.setenv("GRAPHRAG_MAX_GLEANINGS", "0")
    for name in ("a", "copy"):
        priced.write(f"one/{name}.md", f"# The cable\n\n{BATCHES['one/a.md']}")
    assert calls(priced)["extract_all"] == 1
    server.content = lambda body: "{}" if "<document" in str(body["messages"]) else content_for(body)
    priced.write("two/b.md", BATCHES["one/b.md"])
    for _ in range(2):
        run_command("index")
    priced.write("one/new.md", BATCHES["two/c.md"])
    assert calls(priced)["extract_all"] == 1


@pytest.mark.extended
def test_preview_of_an_edit_counts_its_text_unit_sends_nothing_and_changes_no_table(indexed, server, caplog):
    before = contents(indexed)
    indexed.write("two/c.md", BATCHES["two/c.md"].replace("London", "Liverpool"))
    plan = plan_index(indexed.index)
    assert plan.batches == ["two"]
    planned = dict(plan.costs.select("task", "calls").iter_rows())
    assert [planned[task] for task in EXTRACTION] == [1, 1]
    assert contents(indexed) == before
    assert set(before) == set(TABLES)
    assert server.requests == []
    indexed.index_all("two")
    assert Counter(request.task for request in server.chats)["ExtractGraphWithClaims"] == 2


@pytest.mark.extended
def test_job_shows_the_preview_as_metadata_of_its_output(small, monkeypatch):
    def preview():
        (output,) = [one.step_output_data for one in small.run("preview_cost").all_events if one.is_successful_output]
        rows = [line.strip("| ").split(" | ") for line in output.metadata["by_task"].value.splitlines()]
        return output.metadata, [row[rows[0].index("cost_usd")] for row in rows[2:]]

    metadata, costs = preview()
    assert metadata["calls"].value > 6
    assert 0 < metadata["cost_usd"].value == pytest.approx(sum(map(float, costs)))
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"embedding": 0.02}')
    metadata, costs = preview()
    assert metadata["cost_usd"].value == "unknown"
    assert float(costs.pop()) > 0  # of the vectors, whose price is known
    assert set(costs) == {"unknown"}


def test_plan_names_a_missing_key_and_an_unknown_price(project, monkeypatch):
    project.write(
        "one/a.txt", "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable. " * 20
    )
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "openai/never-heard-of")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_BASE_URL", "http://localhost:1")
    for name in ("OPENAI_API_KEY", "GRAPHRAG_CHAT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    missing = "openai/gpt-4.1-mini has no API key: set OPENAI_API_KEY, otherwise its requests fail."
    printed = run_command("index", "plan")
    assert missing in printed.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines()]
    costs = {row[0]: row[-1] for row in cells if row}
    assert costs["embed"] == "unknown"
    assert float(costs["extract_all"]) > 0
    assert costs["in all"].startswith("≥ 0.0")
    for name in ("OPENAI_API_KEY", "GRAPHRAG_CHAT_API_KEY"):
        monkeypatch.setenv(name, "sk-planted-secret")
        assert "has no API key" not in run_command("index", "plan")
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", "http://localhost:1")  # a self-hosted server may need no key
    assert "has no API key" not in run_command("index", "plan")
