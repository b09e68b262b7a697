"""The answer of a reasoning model, whatever its server leaves of the thoughts, at once and in pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.llm.model_errors import CircuitOpen, EmptyAnswer
from graphrag_assets.llm.structured_output import parse
from graphrag_assets.llm.thoughts import AnswerReader, without_thoughts
from tests.llm.conftest import Extraction, Lab, ask, run

DRAFT = json.dumps({"entities": [{"title": "Draft", "type": "P", "strength": 1}]})
FINAL = json.dumps({"entities": [{"title": "Ada", "type": "P", "strength": 1}]})
FORMS = {
    "complete": "<think>Perhaps {draft}.</think>\n\n{final}",
    "closing tag only": "Perhaps {draft}.\n</think>\n\n{final}",
    "upper case": "<THINK>Perhaps {draft}.</THINK>{final}",
    "thinking": "<thinking>{draft}</thinking>{final}",
    "reasoning": "<reasoning>{draft}</reasoning>{final}",
    "Kimi": "◁think▷{draft}◁/think▷{final}",
    "Magistral": "[THINK]{draft}[/THINK]{final}",
    "seed": "<seed:think>{draft}</seed:think>{final}",
    "nested": "<think>a <think>{draft}</think> b {draft}</think>{final}",
    "twice": "<think>{draft}</think><think>again</think>{final}",
    "harmony": "<|channel|>analysis<|message|>{draft}<|end|><|start|>assistant<|channel|>final<|message|>{final}<|return|>",
    "harmony with a format": "<|channel|>analysis<|message|>{draft}<|end|><|start|>assistant<|channel|>final "
    "<|constrain|>json<|message|>{final}",
}
LATE = ("closing tag only", "nested")
"""What is shown of the first of such answers before its last tag cannot be taken back; it is not stored."""


def said(form: str, draft: str = DRAFT, final: str = FINAL) -> str:
    return FORMS[form].replace("{draft}", draft).replace("{final}", final)


@pytest.mark.parametrize("form", FORMS)
def test_thoughts_are_no_part_of_an_answer(lab: Lab, form: str) -> None:
    assert parse(said(form), Extraction).parsed.entities[0].title == "Ada"
    lab.server.content = lambda body: said(form)
    assert run(lab.chat().complete(ask(model=Extraction))).parsed.entities[0].title == "Ada"
    lab.server.content = lambda body: said(form, "She wrote notes.", "Ada wrote the notes.")
    completion = run(lab.chat().complete(ask()))
    assert completion.text == "Ada wrote the notes."


@pytest.mark.parametrize("form", FORMS)
def test_thoughts_are_not_streamed(lab: Lab, form: str) -> None:
    lab.server.content = lambda body: said(form, "She wrote notes.", "Ada wrote the notes of 1843, in London.")

    async def shown(text: str) -> str:
        return "".join([piece async for piece in lab.chat().stream(ask(text)) if isinstance(piece, str)])

    first = run(shown("Who?"))
    if form not in LATE:
        assert first == "Ada wrote the notes of 1843, in London."
    assert run(lab.chat().stored_answer(ask("Who?"))).text == "Ada wrote the notes of 1843, in London."
    if form != "nested":  # a model without opening tags is known from then on
        assert run(shown("Who else?")) == "Ada wrote the notes of 1843, in London."


@given(st.sampled_from(sorted(FORMS)), st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_an_answer_in_pieces_is_the_whole_answer(form: str, sizes: list[int]) -> None:
    text, reader, start = said(form), AnswerReader(holds_back=form == "closing tag only"), 0
    shown = ""
    for size in sizes:
        shown += reader.feed(text[start : start + size])
        start += size
    shown += reader.feed(text[start:], last=True)
    assert reader.answer == FINAL
    assert shown == FINAL or form in ("nested", "harmony", "harmony with a format")


@pytest.mark.parametrize(
    "answer",
    [
        "The tag `</think>` ends the thoughts, and `<think>` begins them.",
        '{"name": "</think>", "other": "<think>"}',
        "In HTML a < b and c > d [1].",
        "Models write <think> before they answer.",
    ],
)
def test_an_answer_about_thoughts_stays_whole(answer: str) -> None:
    assert without_thoughts(answer) == answer


def message(**fields: object) -> tuple[int, dict[str, str], bytes]:
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return 200, {}, json.dumps(body).encode()


CALL = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": FINAL}}


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "", "reasoning_content": FINAL},
        {"content": None, "reasoning_content": FINAL},
        {"content": "", "reasoning": FINAL},
        {"content": None, "tool_calls": [CALL]},
    ],
)
def test_an_answer_in_another_field_is_read(lab: Lab, fields: dict[str, object]) -> None:
    lab.server.replace = lambda body: message(**fields)
    completion = run(lab.chat().complete(ask(model=Extraction)))
    assert completion.parsed.entities[0].title == "Ada"
    assert len(lab.server.chats) == 1


def test_an_answer_that_may_be_thoughts_is_not_used_and_the_cause_is_named(lab: Lab) -> None:
    lab.server.replace = lambda body: message(content="", reasoning_content="Perhaps Ada.")
    with pytest.raises(EmptyAnswer, match=r"text in the field reasoning_content alone.*without a reasoning parser"):
        run(lab.chat().complete(ask()))


def test_content_in_parts_is_named_after_one_request(lab: Lab) -> None:
    lab.server.replace = lambda body: message(content=[{"type": "text", "text": FINAL}])
    with pytest.raises(CircuitOpen, match=r"list of parts, not a text\. Name the model mistral/"):
        run(lab.chat().complete(ask(model=Extraction)))
    assert len(lab.server.chats) == 1
