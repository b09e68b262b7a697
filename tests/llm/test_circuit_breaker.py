"""When every call fails, one clear error after few attempts; a single failing call does not stop the run."""

import asyncio
import time
from pathlib import Path

import pytest

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.limits import Limits
from graphrag_assets.llm.model_errors import CircuitOpen, InvalidAnswer, RequestRejected, RetriesExhausted
from graphrag_assets.llm.model_options import LimitOptions
from tests.llm.conftest import Extraction, Lab, ask, run
from tests.openai_server import running


def test_failures_in_a_row_suspend_calls_and_a_success_between_them_does_not() -> None:
    limits = Limits(LimitOptions(circuit_failures=3, circuit_seconds=0.2))
    for _ in range(5):
        limits.failed("HTTP 500")
        limits.failed("HTTP 500")
        limits.succeeded()
    limits.check()
    for _ in range(3):
        limits.failed("HTTP 500")
    with pytest.raises(CircuitOpen, match=r"3 calls in a row have failed\. Last error: HTTP 500"):
        limits.check()
    time.sleep(0.25)
    limits.check()  # after a while calls pass again
    limits.failed("HTTP 500")
    with pytest.raises(CircuitOpen):
        limits.check()


def asked_at_once(model: ChatModel, calls: int) -> list:
    """The results of so many different requests: completions and errors."""

    async def all_at_once() -> list:
        asked = (model.complete(ask(f"Text {n}.")) for n in range(calls))
        return await asyncio.gather(*asked, return_exceptions=True)

    return run(all_at_once())


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("key", r"HTTP 401: Incorrect API key.*Check the API key"),
        ("model", r"HTTP 404: The model `test-model`.*base URL"),
    ],
)
def test_a_wrong_key_or_model_stops_all_calls_with_one_clear_error(lab: Lab, cause: str, words: str) -> None:
    if cause == "key":
        lab.server.api_key = "sk-right-key-0123456789"
    else:
        lab.server.models = {"another"}
    model = lab.chat(api_key="sk-wrong-key-0123456789")
    errors = asked_at_once(model, 200)

    assert {type(error) for error in errors} == {CircuitOpen}
    assert len({str(error) for error in errors}) == 1
    with pytest.raises(CircuitOpen, match=words):
        raise errors[0]
    assert len(lab.server.chats) <= 25
    assert "wrong-key" not in str(errors[0])


def test_a_server_that_has_replied_and_is_gone_is_waited_for(tmp_path: Path) -> None:
    with running() as server:
        model = Lab(server, tmp_path).chat(limits={"max_retries": 2})
        run(model.complete(ask("Before.")))
    with pytest.raises(RetriesExhausted, match="in 3 attempts"):  # not CircuitOpen, which ends the run
        run(model.complete(ask("While it restarts.")))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        pytest.param("I am a poet, not a clerk.", InvalidAnswer, id="answers of the wrong form"),
        pytest.param("400", RequestRejected, id="rejected requests"),
    ],
)
def test_replies_that_cannot_be_used_do_not_stop_other_calls(lab: Lab, said: str, kind: type[Exception]) -> None:
    if said == "400":
        lab.server.fail_next(*["400"] * 20)
    else:
        lab.server.content = lambda body: said
    model = lab.chat(limits={"circuit_failures": 5, "concurrency": 2})

    async def all_at_once() -> list:
        asked = (model.complete(ask(f"Text {n}.", model=Extraction)) for n in range(20))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert {type(error) for error in run(all_at_once())} == {kind}
    model.limits.check()
