"""litellm as the product calls it: the short way to a server of one's own, and litellm's own way, which others take."""

import asyncio
from typing import Any

import pytest

from graphrag_assets.llm import ChatOptions, provider
from graphrag_assets.llm.provider import Failure, Reply
from tests.llm.conftest import Lab, run
from tests.openai_server import FAULTS

MESSAGES = [{"role": "user", "content": "Who met Charles?"}]
_OF_CHATS = sorted(set(FAULTS) - {"slow", "fewer-vectors", "wrong-dimensions"})


def outcome(lab: Lab, fault: str | None, model: str = "openai/test-model") -> Reply | Failure:
    """What a request came to that met this fault."""
    lab.server.fail_next(fault)
    options = ChatOptions(model, lab.server.url, timeout=5)

    async def ask() -> Reply | Failure:
        try:
            return await provider.send_chat(options, MESSAGES, {"temperature": 0})
        except Exception as error:
            return provider.failure(error)
        finally:
            await provider.close_clients()

    return run(ask())


@pytest.mark.parametrize("fault", [None, *_OF_CHATS])
def test_the_short_way_to_litellm_tells_what_its_own_way_tells(
    lab: Lab, fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = outcome(lab, fault)
    monkeypatch.setattr(provider, "_is_listened_to", lambda: True)
    own = outcome(lab, fault)

    if fault == "429-retry-date":  # in whole seconds from two moments
        assert isinstance(short, Failure)
        assert isinstance(own, Failure)
        assert own.retry_after == pytest.approx(short.retry_after, abs=1.1)
    else:
        assert short == own
    first, second = lab.server.chats
    assert first.body == second.body
    assert first.headers.keys() == second.headers.keys()


def test_other_providers_are_asked_in_litellms_own_way(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = outcome(lab, None)

    def no_short_way(**_: object) -> None:
        raise AssertionError("hosted_vllm is not asked like this")

    monkeypatch.setattr(provider.litellm(), "completion", no_short_way)
    assert outcome(lab, None, "hosted_vllm/test-model") == asked
    own_server = outcome(lab, None)
    assert isinstance(own_server, Failure)
    assert "asked like this" in own_server.message


def test_a_known_model_costs_what_litellm_says_either_way(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    short = outcome(lab, None, "openai/gpt-4o-mini")
    monkeypatch.setattr(provider, "_is_listened_to", lambda: True)
    assert short == outcome(lab, None, "openai/gpt-4o-mini")
    assert isinstance(short, Reply)
    prices = provider.known("openai/gpt-4o-mini")
    assert prices is not None
    assert short.cost_usd == pytest.approx(
        short.prompt_tokens * prices["input_cost_per_token"] + short.completion_tokens * prices["output_cost_per_token"]
    )


def test_who_listens_to_litellm_hears_of_every_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm, heard = provider.litellm(), []

    class Listener(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc, name-defined]
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            heard.append(response_obj.choices[0].message.content)

    monkeypatch.setattr(litellm, "callbacks", [Listener()])

    async def ask() -> Reply:
        reply = await provider.send_chat(ChatOptions("openai/test-model", lab.server.url), MESSAGES, {})
        for _ in range(100):
            if heard:
                break
            await asyncio.sleep(0.05)
        await provider.close_clients()
        return reply

    assert [run(ask()).text] == heard
