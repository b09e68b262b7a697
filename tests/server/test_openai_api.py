"""`/v1` as OpenAI's official client uses it."""

import json
import re

import openai
import pytest

from graphrag_assets.query import METHODS
from tests.server.conftest import QUESTION
from tests.test_docs import blocks

ASKED = [{"role": "user", "content": QUESTION}]


@pytest.fixture
def client(sample_server):
    with openai.OpenAI(base_url=f"{sample_server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_completion_has_text_annotations_and_a_list_of_sources(client, sample_server):
    found = client.chat.completions.create(model="graphrag-local", messages=ASKED)
    message = found.choices[0].message
    text, _, sources = message.content.partition("\n\n**Sources**\n\n")
    assert "Anderson" in text
    assert sources.startswith("- [1] [The great ship](" + sample_server.url)
    places = [annotation.url_citation for annotation in message.annotations]
    marks = re.findall(r"\[\d+\]", text)
    assert [text[place.start_index : place.end_index] for place in places] == marks
    assert marks[:2] == ["[1]", "[2]"]
    by_mark = dict(zip(marks, ((place.title, place.url) for place in places), strict=True))
    assert len({url for _, url in by_mark.values()}) == len(by_mark)
    assert by_mark["[1]"][0] == "The great ship"
    assert all(place.url.startswith(f"{sample_server.url}/source/") for place in places)
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens


def test_stream_has_the_same_text_and_annotations_and_usage(client):
    whole = client.chat.completions.create(model="graphrag-local", messages=ASKED).choices[0].message
    chunks = list(
        client.chat.completions.create(
            model="graphrag-local", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.content
    (annotations,) = (found for delta in deltas if (found := getattr(delta, "annotations", None)))
    assert annotations == [annotation.model_dump() for annotation in whole.annotations]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    (answer,) = (found for chunk in chunks if (found := getattr(chunk, "graphrag", None)))
    assert answer["text"] == whole.content.partition("\n\n**Sources**")[0]
    assert "Great Eastern" in [entity["title"] for entity in answer["entities"]]


def test_earlier_turns_and_filters_are_read(client):
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Tell me of the Great Eastern."},
        {"role": "assistant", "content": "A ship.\n\n**Sources**\n\n- [1] …"},
        {"role": "user", "content": [{"type": "text", "text": "Who commanded her in 1865?"}]},
    ]
    said = client.chat.completions.create(model="graphrag-local", messages=turns).choices[0].message.content
    assert "Anderson" in said
    limited = client.chat.completions.create(
        model="graphrag-basic",
        messages=ASKED,
        metadata={"filter": json.dumps({"batches": ["1-beginnings"]}), "options": json.dumps({"k": 1})},
    )
    assert "4-great-eastern" not in str(limited.model_dump())
    assert len({annotation.url_citation.title for annotation in limited.choices[0].message.annotations}) <= 1


def test_unknown_model_and_missing_question_are_refused(client):
    assert {f"graphrag-{name}" for name in (*METHODS, "ask")} == {model.id for model in client.models.list()}
    with pytest.raises(openai.BadRequestError, match="graphrag-global"):
        client.chat.completions.create(model="gpt-4.1", messages=ASKED)
    with pytest.raises(openai.BadRequestError, match="no question"):
        client.chat.completions.create(model="graphrag-ask", messages=[{"role": "system", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="filter"):
        client.chat.completions.create(model="graphrag-ask", messages=ASKED, metadata={"filter": "[1"})


def test_the_guides_python_prints_an_answer(sample_server, capsys):
    (code,) = (block for block in blocks("docs/exchange.md", "python") if "import openai" in block)
    exec(code.replace("http://127.0.0.1:8321", sample_server.url), {})
    assert "Anderson" in capsys.readouterr().out
