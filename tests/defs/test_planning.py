"""The cost preview compared with the requests that indexing sends."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.extras.cost_preview import dry_run
from graphrag_assets.extras.cost_preview.preview import CostPlan, plan_index
from graphrag_assets.extras.cost_preview.token_estimates import Planned, Tally
from graphrag_assets.llm.backend import ledger_of
from graphrag_assets.llm.tasks.extract_graph import PROMPT
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens
from tests import openai_server
from tests.cli import run_command
from tests.conftest import SAMPLE_INPUT
from tests.defs.test_language_models import BATCHES, TABLES, contents, copy_index, use
from tests.openai_server import running

CAROL = Path(__file__).parents[1] / "data" / "christmas-carol" / "input"
EXTRACTION = ["extract_all", "extract_all_continue"]
SUMS = ["calls", "prompt_tokens", "completion_tokens", "cost_usd"]


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


def paid() -> pl.DataFrame:
    """What was paid by the ledger: a row per task, with the columns of the preview."""
    calls = ledger_of(Settings.load()).frame()
    return calls.group_by("task").agg(
        calls=pl.len(), **{name: pl.col(name).sum() for name in ("prompt_tokens", "completion_tokens", "cost_usd")}
    )


@pytest.mark.extended
@pytest.mark.parametrize(("claims", "limit"), [("model", 1.23), ("off", 0.90)])
def test_a_christmas_carol_takes_fewer_calls_than_with_the_settings_of_graphrag(project, monkeypatch, claims, limit):
    """With those, it takes 205 calls and $1.17 without claims; here, claims included, about as much."""
    monkeypatch.setenv("GRAPHRAG_INPUT", str(CAROL))
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/gpt-4.1")
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "openai/text-embedding-3-small")
    monkeypatch.setenv("GRAPHRAG_CLAIMS", claims)
    costs = plan_index(project.index).costs
    assert costs["calls"].sum() < 205
    assert 0.5 < costs["cost_usd"].sum() < limit


@pytest.mark.long
def test_preview_of_the_sample_corpus_is_close_to_the_bill(priced, server, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    monkeypatch.setenv("GRAPHRAG_CHUNK_SIZE", "1200")  # the server finds as much in a text unit, however long it is
    monkeypatch.setattr("graphrag_assets.indexing.model_tasks.SUMMARY_MIN_TOKENS", 0)  # its descriptions are short
    planned = plan_index(priced.index).by_task
    assert server.requests == []
    priced.index_all()
    bill = paid()
    of_extraction = pl.col("task").is_in(EXTRACTION)
    counted = dict(planned.filter(of_extraction).select("task", "calls").iter_rows())
    assert counted == dict(bill.filter(of_extraction).select("task", "calls").iter_rows())
    assert counted == dict.fromkeys(EXTRACTION, 20)
    by_task = (frame.filter(task="extract_all")["prompt_tokens"].item() for frame in (planned, bill))
    assert next(by_task) == next(by_task) + 20 * (3 + 2 * 4)  # 3 begin an answer, 4 go round each of the 2 messages
    calls = len(server.requests)  # embeddings are booked per text
    # The server finds about half of what the embedded default finds, from which reports and summaries are estimated.
    assert calls <= planned["calls"].sum() <= 1.5 * calls
    for name in SUMS[1:]:
        assert bill[name].sum() <= planned[name].sum() <= 2.25 * bill[name].sum(), name
    assert plan_index(priced.index).costs["calls"].sum() == 0
    assert len(server.requests) == calls


@pytest.mark.extended
def test_preview_sends_nothing_and_changes_no_table(indexed, server):
    before = contents(indexed)
    indexed.write("two/c.md", BATCHES["two/c.md"].replace("London", "Liverpool"))
    plan = plan_index(indexed.index)
    assert plan.batches == ["two"]
    assert contents(indexed) == before
    assert server.requests == []
    assert set(before) == set(TABLES)


@pytest.mark.long
def test_preview_after_an_edit_extracts_only_its_text_unit(indexed, server):
    indexed.write("two/c.md", BATCHES["two/c.md"].replace("London", "Liverpool"))
    plan = plan_index(indexed.index)
    planned = dict(plan.by_task.select("task", "calls").iter_rows())
    indexed.index_all("two")
    sent = Counter(request.task for request in server.chats)
    assert planned["extract_all"] + planned["extract_all_continue"] == sent["ExtractGraphWithClaims"] == 2
    extraction = plan.costs.filter(pl.col("task").is_in(EXTRACTION))
    assert extraction["batch"].unique().to_list() == ["two"]


@pytest.mark.extended
def test_preview_does_not_count_answers_in_the_ledger(indexed):
    (indexed.root / "index" / "working.duckdb").unlink()
    plan = plan_index(indexed.index)
    assert plan.costs["calls"].sum() == 0
    assert plan.costs["in_ledger"].sum() >= 6  # three text units, each with a gleaning
    assert plan.costs["exact"].all()


@pytest.mark.long
def test_text_in_two_documents_is_paid_for_once(small, server):
    small.write("three/c.md", BATCHES["two/c.md"])  # of the same title, which is shown with it
    planned = dict(plan_index(small.index).by_task.select("task", "calls").iter_rows())
    small.index_all()
    sent = Counter(request.task for request in server.chats)
    assert planned["extract_all"] + planned["extract_all_continue"] == sent["ExtractGraphWithClaims"] == 6


@pytest.mark.long
def test_preview_explains_the_source_of_its_numbers(small, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_BUDGET_USD", "7.5")
    notes = " ".join(plan_index(small.index).notes)
    assert "a rule of thumb" in notes
    assert "$1 in, $4 out per million tokens, by the settings" in notes
    assert "Budget: $7.50" in notes
    monkeypatch.delenv("GRAPHRAG_USD_PER_MILLION")
    assert "no price is known" in " ".join(plan_index(small.index).notes)


@pytest.mark.extended
def test_preview_says_what_claims_cost_and_how_they_are_switched_off(small, monkeypatch):
    def extraction() -> tuple[CostPlan, list[float]]:
        plan = plan_index(small.index)
        tasks = plan.costs.filter(pl.col("task").str.starts_with("extract_"))
        return plan, [tasks[name].sum() for name in SUMS]

    plan, whole = extraction()
    (said,) = [note for note in plan.notes if "Claims" in note]
    monkeypatch.setenv("GRAPHRAG_CLAIMS", "off")
    plan, bare = extraction()
    assert not [note for note in plan.notes if "Claims" in note]
    calls, prompt, answers, cost = (one - other for one, other in zip(whole, bare, strict=True))
    assert said == (
        f"Claims are part of the requests of extraction: they take {calls} calls, {prompt:,} prompt tokens, "
        f"{answers:,} answer tokens and ${cost:,.4f}. GRAPHRAG_CLAIMS=off leaves them out."
    )
    assert (calls, prompt > 900, answers > 0, cost > 0) == (0, True, True, True)


def test_embedded_default_costs_nothing(project):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable.")
    plan = plan_index(project.index)
    assert plan.batches == ["one"]
    assert plan.costs.is_empty()
    assert plan.notes == ("No model is set, so nothing is paid for.",)


@pytest.mark.extended
def test_local_embedding_model_costs_nothing_and_sends_no_request(small, server, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_EMBEDDING_MODEL", "onnx:minilm")  # the base URL of the embedding server stays set
    plan = plan_index(small.index)
    assert server.requests == []
    assert "embed" not in plan.costs["task"]
    assert plan.costs["calls"].sum() > 0
    assert "onnx:minilm runs on this machine, so its vectors are free." in plan.notes
    monkeypatch.delenv("GRAPHRAG_CHAT_MODEL")
    plan = plan_index(small.index)
    assert plan.costs.is_empty()
    assert plan.notes == ("onnx:minilm runs on this machine, so nothing is paid for.",)


def test_preview_reports_documents_without_names_for_the_embedded_default(project):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable.")
    project.write("two/b.txt", "客户抱怨送货延迟。公司承诺退款。")
    assert plan_index(project.index).notes[1:] == (
        "1 document in Chinese: the embedded default finds no names there; "
        "set GRAPHRAG_CHAT_MODEL, see docs/models.md.",
    )


@pytest.mark.extended
def test_job_shows_the_preview_as_metadata_of_its_output(small):
    result = small.run("preview_cost")
    (output,) = [event.step_output_data for event in result.all_events if event.is_successful_output]
    assert output.metadata["calls"].value > 6
    assert "extract_all_continue" in output.metadata["by_task"].value


@pytest.mark.extended
def test_job_shows_an_unknown_price_as_unknown(small, monkeypatch):
    def preview():
        (output,) = [one.step_output_data for one in small.run("preview_cost").all_events if one.is_successful_output]
        rows = [line.split(" | ") for line in output.metadata["by_task"].value.splitlines()]
        costs = [row[rows[0].index("cost_usd")] for row in rows[2:]]
        return output.metadata["cost_usd"].value, costs

    total, costs = preview()
    assert 0 < total == pytest.approx(sum(map(float, costs)))

    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"embedding": 0.02}')
    total, costs = preview()
    assert total == "unknown"
    assert float(costs.pop()) > 0  # of the vectors, whose price is known
    assert set(costs) == {"unknown"}


def test_plan_of_an_edit_does_not_compare_vectors(indexed, caplog):
    indexed.write("two/c.md", BATCHES["two/c.md"].replace("London", "Liverpool"))
    plan_index(indexed.index)
    assert "returns vectors" not in caplog.text


def test_plan_names_a_missing_key_and_an_unknown_price(project, monkeypatch):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia. The Great Eastern carried the cable.")
    monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("GRAPHRAG_REPORT_MODEL", "openai/never-heard-of")
    for name in ("OPENAI_API_KEY", "GRAPHRAG_CHAT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    missing = "openai/gpt-4.1-mini has no API key: set OPENAI_API_KEY, otherwise its requests fail."
    printed = run_command("index", "plan")
    assert missing in printed.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines()]
    costs = {row[0]: row[-1] for row in cells if row}
    assert costs["community_report"] == "unknown"
    assert float(costs["extract_all"]) > 0
    assert costs["in all"].startswith("≥ 0.00")
    for name in ("OPENAI_API_KEY", "GRAPHRAG_CHAT_API_KEY"):
        monkeypatch.setenv(name, "sk-planted-secret")
        assert "has no API key" not in run_command("index", "plan")
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", "http://localhost:1")  # a self-hosted server may need no key
    assert "has no API key" not in run_command("index", "plan")


@pytest.mark.parametrize(
    ("settings", "time"),
    [
        ({"concurrency": 1}, "30 s of calls of chat models, 1 at once"),  # ten answers of 3 s
        ({"concurrency": 5}, "6 s"),
        ({"concurrency": 100}, "3 s"),
        ({"concurrency": 100, "requests_per_minute": 5}, "2 min 0 s"),
        ({"concurrency": 100, "tokens_per_minute": 600}, "3 min 20 s"),  # 2,000 tokens
    ],
)
def test_the_time_follows_from_concurrency_limits_and_the_length_of_answers(project, settings, time):
    planned = {str(n): Planned(PROMPT, "a", 100, 100, exact=True) for n in range(10)}
    said = dry_run.notes(Settings.load(chat_model="openai/test-model", **settings), Tally(planned=planned))
    (note,) = [note for note in said if note.startswith("Time: ")]
    assert note.startswith(f"Time: about {time}")
    assert note.endswith("by a rule of thumb.")


def test_the_time_follows_from_the_times_in_the_ledger(project):
    planned = {str(n): Planned(PROMPT, "a", 100, 100, exact=True) for n in range(10)}
    tally = Tally(planned=planned, answer_seconds={PROMPT: 8.0})
    said = dry_run.notes(Settings.load(chat_model="openai/test-model", concurrency=2), tally)
    assert (
        "Time: about 40 s of calls of chat models, 2 at once (GRAPHRAG_CONCURRENCY), by the mean times in the ledger."
        in said
    )
