"""Parameters of a chat model on the wire: sent as given, part of the ledger's key, dropped when they are refused."""

import json

import pytest

from graphrag_assets.llm import provider
from tests.llm.conftest import Entity, ask, run

GIVEN = {"temperature": 0.3, "top_p": 0.5, "seed": 7, "max_tokens": 99, "top_k": 20}


@pytest.fixture(autouse=True)
def nothing_learned(monkeypatch):
    monkeypatch.setattr(provider, "_servers", {})


def refusing(name: str):
    """Answers 400 as OpenAI does while a request has the parameter."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    payload = json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": name}}).encode()
    return lambda body: (400, {}, payload) if name in body else None


def test_parameters_are_sent_as_given(lab):
    run(lab.chat(parameters=json.dumps(GIVEN)).complete(ask()))
    body = lab.server.chats[0].body
    assert {name: body[name] for name in GIVEN} == GIVEN


def test_parameters_that_change_the_answer_are_part_of_the_ledgers_key(lab):
    for parameters in ("{}", '{"seed": 1}', '{"seed": 1, "service_tier": "flex"}', '{"seed": 2}'):
        run(lab.chat(parameters=parameters).complete(ask()))
    assert [request.body.get("seed") for request in lab.server.chats] == [None, 1, 2]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["temperature", "top_k"])
def test_a_parameter_that_the_server_names_in_a_rejection_is_dropped_with_one_warning(lab, caplog, stream, name):
    async def ask_twice() -> None:
        chat = lab.chat(parameters=json.dumps(GIVEN))
        for text in ("one", "two"):
            if stream:
                assert [piece async for piece in chat.stream(ask(text))]
            else:
                await chat.complete(ask(text, Entity))

    lab.server.replace = refusing(name)
    run(ask_twice())
    assert [name in request.body for request in lab.server.chats] == [True, False, False]
    assert lab.server.chats[-1].body["seed"] == 7
    (warning,) = [record.message for record in caplog.records if "left out" in record.message]
    assert f"refuses {name}, so it is left out" in warning
