"""Streamed answers."""

import pytest

from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.model_errors import EmptyAnswer, RefusedAnswer, RetriesExhausted, TruncatedAnswer
from graphrag_assets.llm.model_options import ChatRequest
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab, ask, run


async def pieces(model: ChatModel, request: ChatRequest) -> list[str]:
    return [piece async for piece in model.stream(request) if isinstance(piece, str)]


def test_pieces_are_streamed_and_the_full_answer_is_stored_with_its_usage(lab: Lab) -> None:
    model = lab.chat(prices=ONE_DOLLAR_PER_TOKEN)
    came = run(pieces(model, ask(task="local")))

    assert len(came) > 3
    assert lab.server.chats[0].body["stream_options"] == {"include_usage": True}
    usage = model.usage.by_task["local"]
    assert usage.calls == 1
    assert usage.prompt_tokens == 4
    assert usage.cost_usd == usage.prompt_tokens + usage.completion_tokens
    assert run(pieces(model, ask(task="local"))) == ["".join(came)]
    assert run(model.complete(ask(task="local"))).text == "".join(came)
    assert len(lab.server.chats) == 1
    assert model.usage.by_task["local"].ledger_hits == 2


@pytest.mark.parametrize("fault", ["429", "500", "closed"])
def test_failures_before_the_first_piece_are_retried(lab: Lab, fault: str) -> None:
    lab.server.fail_next(fault)
    assert run(pieces(lab.chat(), ask()))
    assert len(lab.server.chats) == 2


def test_an_answer_that_breaks_off_is_an_error_and_not_stored(lab: Lab) -> None:
    lab.server.fail_next("cut")
    model, came = lab.chat(), []

    async def scenario() -> None:
        async for piece in model.stream(ask()):
            came.append(piece)

    with pytest.raises(RetriesExhausted, match="was interrupted"):
        run(scenario())
    assert came
    assert run(lab.ledger.get(model.key(ask()))) is None
    assert model.usage.total.failures == 1


@pytest.mark.parametrize(
    ("fault", "kind"), [("truncated", TruncatedAnswer), ("empty", EmptyAnswer), ("filtered", RefusedAnswer)]
)
def test_an_answer_that_is_none_raises_after_its_last_piece(lab: Lab, fault: str, kind: type[Exception]) -> None:
    lab.server.fail_next(fault)
    with pytest.raises(kind):
        run(pieces(lab.chat(), ask()))
    assert len(run(pieces(lab.chat(), ask()))) > 1
