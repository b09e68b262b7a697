"""Summaries of descriptions: within the limit, of the set alone, with nothing left out."""

import asyncio
import json
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from graphrag_assets.llm.model_options import ChatRequest
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.task import TaskModel, prompt_tokens
from graphrag_assets.llm.tasks.summarize_descriptions import SummaryOptions, distinct, summarize_descriptions
from tests.llm.tasks.scripted_chat import ScriptedChat

PROMPTS = Prompts()
SMALL = SummaryOptions(max_input_tokens=420)  # about 200 of them for descriptions


def lines(request: ChatRequest) -> list[str]:
    """What a request describes, and the descriptions in it."""
    return [line.removeprefix("- ") for line in request.messages[1]["content"].splitlines()[1:-1]]


def joined(request: ChatRequest) -> str:
    """A summary that keeps the first letter of each description."""
    return json.dumps({"description": "So far " + "".join(line[:1] for line in lines(request)[1:])})


def summarize(descriptions: Sequence[str], options: SummaryOptions = SMALL, title: str = "SCROOGE"):
    chat = ScriptedChat(joined)
    return asyncio.run(summarize_descriptions(TaskModel(chat, PROMPTS), title, descriptions, options)), chat.requests


def test_descriptions_that_fit_are_one_request():
    summary, requests = summarize(["B is\nold.", "A miser.", "A miser."])
    assert [lines(request) for request in requests] == [["SCROOGE", "A miser.", "B is old."]]
    assert summary == "So far AB"


def test_the_summaries_of_two_halves_are_summarized():
    descriptions = [f"{number:03d} " + "word " * 60 for number in range(7)]
    summary, requests = summarize(descriptions)
    *parts, last = map(lines, requests)
    assert all(title == "SCROOGE" for title, *_ in (*parts, last))
    seen = [line for _, *given in parts for line in given if line[:1].isdigit()]
    assert seen == [" ".join(text.split()) for text in descriptions]
    said = [json.loads(joined(request))["description"] for request in requests]
    assert set(last[1:]) <= set(said)
    assert summary == said[-1]


@given(st.lists(st.text(alphabet="abc 鲸é-", min_size=1, max_size=900), max_size=8))
def test_no_request_is_over_the_limit_and_no_description_is_left_out(descriptions: list[str]):
    _, requests = summarize(descriptions)
    for request in requests:
        assert prompt_tokens(request) <= SMALL.max_input_tokens
    if requests:
        seen = "".join(line for request in requests for line in lines(request)[1:] if not line.startswith("So far"))
        for text in descriptions:
            assert re.sub(r"\s", "", text) in re.sub(r"\s", "", seen)


def test_descriptions_with_a_date_follow_those_without_by_date():
    given = ["It reopened. (2025-07-28)", "It is an index.", "Zero were banned. (2025-07-15)"]
    assert distinct(given) == ["It is an index.", "Zero were banned. (2025-07-15)", "It reopened. (2025-07-28)"]
