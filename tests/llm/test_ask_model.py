"""Chat calls against a real server: answers, the ledger, faults and error messages."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_assets.llm.model_errors import (
    CircuitOpen,
    EmptyAnswer,
    InvalidAnswer,
    LedgerError,
    ModelError,
    RefusedAnswer,
    RetriesExhausted,
    TruncatedAnswer,
)
from graphrag_assets.llm.provider import entry_of as litellm_prices
from tests.llm.conftest import Extraction, Lab, ask, gather, run
from tests.openai_server import OpenAIServer


def test_an_answer_is_parsed_priced_and_recorded(lab: Lab) -> None:
    model = lab.chat()
    request = ask(model=Extraction, batch="letters", unit="u1", run_id="r1")

    completion = run(model.complete(request))

    assert completion.parsed == Extraction.model_validate_json(completion.text)
    assert not completion.from_ledger
    assert model.usage.total.retries == 0
    assert completion.usage.prompt_tokens > 0
    [sent] = lab.server.chats
    assert sent.body["messages"] == [{"role": "user", "content": "Ada met Charles."}]
    assert sent.body["temperature"] == 0
    assert sent.body["response_format"]["json_schema"]["strict"] is True
    row = lab.ledger.frame().row(0, named=True)
    assert (row["task"], row["provider"], row["model"], row["kind"]) == ("extract", "openai", "test-model", "chat")
    assert (row["batch"], row["unit"], row["run_id"]) == ("letters", "u1", "r1")
    assert row["prompt_tokens"] == completion.usage.prompt_tokens


@pytest.mark.parametrize("streamed", [False, True])
def test_tokens_from_the_provider_s_cache_have_their_price_and_are_recorded(lab: Lab, streamed: bool) -> None:
    lab.server.cached = 0.75
    model = lab.chat(model="openai/gpt-4.1")
    request = ask("Ada met Charles. " * 50)
    run(consume(model.stream(request)) if streamed else model.complete(request))
    row = lab.ledger.frame().row(0, named=True)
    prompt, cached, answer = row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]
    assert cached == prompt * 3 // 4 > 0
    listed = litellm_prices("openai/gpt-4.1")
    assert row["cost_usd"] == pytest.approx(
        (prompt - cached) * listed["input_cost_per_token"]
        + cached * listed["cache_read_input_token_cost"]
        + answer * listed["output_cost_per_token"]
    )
    assert model.usage.total.cached_tokens == cached
    assert model.usage.total.cost_usd == pytest.approx(row["cost_usd"])


async def consume(pieces: AsyncIterator[str]) -> None:
    async for _ in pieces:
        pass


def test_the_same_request_is_sent_once_for_all_runs_models_and_loops(lab: Lab) -> None:
    first = run(lab.chat().complete(ask(model=Extraction, run_id="r1")))
    model = lab.chat()
    again = run(model.complete(ask(model=Extraction, run_id="r2", batch="other", unit="other")))

    assert len(lab.server.chats) == 1
    assert (again.text, again.parsed, again.from_ledger) == (first.text, first.parsed, True)
    assert again.usage.cost_usd == 0
    assert (model.usage.total.ledger_hits, model.usage.total.calls, model.usage.total.prompt_tokens) == (1, 0, 0)


def test_identical_concurrent_requests_are_sent_once(lab: Lab) -> None:
    lab.server.latency = 0.05
    model, other = lab.chat(), lab.chat()

    async def all_at_once() -> list:
        return await asyncio.gather(*(m.complete(ask(model=Extraction)) for m in (model, other) for _ in range(10)))

    answers = run(all_at_once())

    assert len(lab.server.chats) == 1
    assert len({answer.text for answer in answers}) == 1
    assert sorted(answer.from_ledger for answer in answers) == [False] + [True] * 19
    total = model.usage.total + other.usage.total
    assert (total.calls, total.ledger_hits) == (1, 19)


@pytest.mark.parametrize(
    "fault", ["408", "429", "429-retry-after", "500", "503", "closed", "cut", "malformed-body", "slow"]
)
def test_passing_failures_are_retried_and_counted(lab: Lab, fault: str) -> None:
    lab.server.retry_after = 0.05
    lab.server.fail_next(fault, fault)
    model = lab.chat(timeout=0.2 if fault == "slow" else 30)

    run(model.complete(ask(model=Extraction)))

    assert len(lab.server.chats) == 3
    assert model.usage.total.retries == 2
    assert model.usage.total.failures == 0


@pytest.mark.parametrize(("fault", "asked"), [("429-retry-after", 0.3), ("429-retry-date", 2.0)])
def test_retry_after_is_honored_as_seconds_and_as_a_date(lab: Lab, fault: str, asked: float) -> None:
    lab.server.retry_after = asked
    lab.server.fail_next(fault)
    model = lab.chat()
    run(model.complete(ask()))

    first, second = lab.server.chats
    least = asked - 1.0 * (fault == "429-retry-date")  # a date has whole seconds
    assert least <= model.usage.total.seconds_waiting <= second.at - first.at


def test_call_fails_after_its_retries_with_a_remedy(lab: Lab) -> None:
    lab.server.fail_next(*["500"] * 4)
    model = lab.chat(limits={"max_retries": 3})
    with pytest.raises(RetriesExhausted, match=r"extract of u1.*4 attempts.*HTTP 500: Scripted answer 500.*Run again"):
        run(model.complete(ask(unit="u1")))
    assert model.usage.total.failures == 1
    assert len(lab.server.chats) == 4


@pytest.mark.parametrize("fault", ["malformed-content", "wrong-schema", "truncated", "empty", "refusal", "filtered"])
def test_an_invalid_answer_is_requested_once_more_with_the_reason(lab: Lab, fault: str) -> None:
    lab.server.fail_next(fault)
    model = lab.chat()
    completion = run(model.complete(ask(model=Extraction)))

    assert completion.parsed.entities
    assert model.usage.total.retries == 1
    first, second = lab.server.chats
    assert second.body["messages"][0] == first.body["messages"][0]
    assert "cannot be used" in second.body["messages"][-1]["content"]
    assert completion.usage.prompt_tokens == model.usage.total.prompt_tokens > 2 * 4
    assert sorted(lab.ledger.frame()["kind"]) == ["chat", "invalid"]
    assert run(lab.chat().complete(ask(model=Extraction))).from_ledger


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("wrong-schema", InvalidAnswer, "entities: Field required"),
        ("truncated", TruncatedAnswer, "limit of output tokens"),
        ("empty", EmptyAnswer, "empty"),
        ("refusal", RefusedAnswer, "I cannot help with that"),
        ("filtered", RefusedAnswer, "content filter"),
    ],
)
def test_a_second_invalid_answer_is_an_error_of_its_kind_and_is_not_kept(
    lab: Lab, fault: str, kind: type[ModelError], words: str
) -> None:
    lab.server.fail_next(fault, fault)
    model = lab.chat()
    with pytest.raises(kind, match=words) as caught:
        run(model.complete(ask(model=Extraction, unit="u1")))
    assert "extract of u1" in str(caught.value)
    assert len(lab.server.chats) == 2
    assert not run(lab.chat().complete(ask(model=Extraction, unit="u1"))).from_ledger


GUESSES = ['{"entities": [{"title" "Ada", "type": "P", "strength": 1}', '{"entities": [{"title" "Bo", "type": "P"']


@pytest.mark.parametrize(
    ("answers", "kept"),
    [
        ([GUESSES[0], '{"entities": []}'], []),  # what is valid counts
        ([GUESSES[0], GUESSES[0].replace("Ada", "Eve")], ["Eve"]),  # of two guesses the second
        ([GUESSES[0], "I cannot."], ["Ada"]),
        ([GUESSES[0], ""], ["Ada"]),
    ],
)
def test_guessed_json_is_requested_again_and_used_only_if_the_second_answer_is_no_better(
    lab: Lab, answers: list[str], kept: list[str]
) -> None:
    said = iter(answers)
    lab.server.content = lambda body: next(said)
    found = [run(lab.chat().complete(ask(model=Extraction))) for _ in range(2)]
    assert [[entity.title for entity in one.parsed.entities] for one in found] == [kept, kept]
    assert [one.from_ledger for one in found] == [False, True]
    assert len(lab.server.chats) == 2
    assert sorted(lab.ledger.frame()["kind"]) == ["chat", "invalid"]


@pytest.mark.parametrize("rejected", [{"json_schema"}, {"json_schema", "json_object"}])
def test_a_rejected_response_format_is_replaced_by_a_weaker_one_from_then_on(lab: Lab, rejected: set[str]) -> None:
    lab.server.rejected_formats = rejected
    run(lab.chat().complete(ask(model=Extraction)))
    refused = len(lab.server.chats) - 1
    assert refused == len(rejected)

    completion = run(lab.chat().complete(ask("Charles met Ada.", model=Extraction)))

    assert len(lab.server.chats) == refused + 2
    last = lab.server.chats[-1].body
    assert last.get("response_format") == ({"type": "json_object"} if len(rejected) == 1 else None)
    assert '"strength"' in last["messages"][0]["content"]  # the schema in words
    assert completion.parsed.entities


def test_a_canceled_caller_loses_no_answer_that_is_being_paid_for(lab: Lab) -> None:
    lab.server.latency = 0.2
    model = lab.chat(limits={"concurrency": 2})

    async def scenario() -> None:
        waiting = [asyncio.ensure_future(model.complete(ask(f"Text {n}."))) for n in range(10)]
        while lab.server.in_flight < 2:
            await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        while lab.ledger.frame().height < 2:
            await asyncio.sleep(0.01)

    run(scenario())
    assert len(lab.server.chats) == 2  # the others were not begun
    assert lab.ledger.frame().height == 2


def test_concurrency_holds_at_the_server(lab: Lab) -> None:
    lab.server.latency = 0.02
    run(gather(lab.chat(limits={"concurrency": 4}).complete, *(ask(f"Text {n}.") for n in range(40))))
    assert lab.server.most_in_flight == 4


def test_no_key_is_ever_stored_shown_or_logged(lab: Lab, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    secret = "sk-very-secret-0123456789"
    lab.server.api_key = secret
    with caplog.at_level(logging.DEBUG):
        model = lab.chat(api_key=secret)
        run(model.complete(ask()))
        lab.server.fail_next("403")
        with pytest.raises(CircuitOpen) as caught:
            run(model.complete(ask("Another text.")))
    lab.ledger.close()
    assert secret not in repr(model.options) + str(caught.value)
    assert secret not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("graphrag"))
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.glob("ledger.db*"))


def test_what_could_not_be_stored_is_stored_before_anything_else_is_paid_for(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_assets.llm.ledger._LOCK_SECONDS", 0.1)
    lab = Lab(openai_server, tmp_path)
    chat, embedding = lab.chat(limits={"concurrency": 2}), lab.embedding()
    requests = [ask(str(n)) for n in range(6)]
    run(lab.ledger.put())  # creates the table
    other = sqlite3.connect(tmp_path / "ledger.db")
    other.execute("BEGIN IMMEDIATE")

    async def fail() -> list[Any]:
        calls = [*map(chat.complete, requests), embedding.embed(["Ada"])]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(error) for error in run(fail())] == [LedgerError] * 7
    assert (len(lab.server.chats), len(lab.server.embeddings)) == (2, 1)  # one in each slot
    assert [type(error) for error in run(fail())] == [LedgerError] * 7
    assert (len(lab.server.chats), len(lab.server.embeddings)) == (2, 1)

    other.rollback()
    answers = run(gather(chat.complete, *requests))
    assert sum(answer.from_ledger for answer in answers) == 2
    assert len(lab.server.chats) == 6
    assert len(run(embedding.embed(["Ada"]))) == 1
    assert len(lab.server.embeddings) == 1
    lab.ledger.close()


def test_a_server_that_cuts_prompts_is_reported_once_with_the_setting(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    lab.server.context = 1000
    run(lab.chat().complete(ask("Ada met Charles in London. " * 100)))
    assert "seems to cut prompts" not in caplog.text
    for number in range(3):
        run(lab.chat().complete(ask(f"Ada met Charles in London {number} times. " * 1000)))
    assert caplog.text.count("seems to cut prompts") == 1
    assert "num_ctx in GRAPHRAG_MODEL_PARAMETERS" in caplog.text
    assert "OLLAMA_CONTEXT_LENGTH" in caplog.text
