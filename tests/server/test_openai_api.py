"""`/v1` as OpenAI's official client uses it."""

import json

import openai
import pytest

from tests.test_docs import blocks

QUESTION = [{"role": "user", "content": "Who commanded the Great Eastern in 1865?"}]


@pytest.fixture
def client(sample_server):
    with openai.OpenAI(base_url=f"{sample_server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_each_method_is_a_model(client):
    listed = {model.id for model in client.models.list()}
    assert {"graphrag-ask", "graphrag-local", "graphrag-global", "graphrag-drift", "graphrag-basic"} <= listed


def test_completion_has_text_annotations_and_a_list_of_sources(client, sample_server):
    found = client.chat.completions.create(model="graphrag-local", messages=QUESTION)
    message = found.choices[0].message
    text, _, sources = message.content.partition("\n\n**Sources**\n\n")
    assert "Anderson" in text
    assert sources.startswith("- [1] [The cable lost: the expedition of 1865](" + sample_server.url)
    for annotation in message.annotations:
        place = annotation.url_citation
        assert text[place.start_index : place.end_index] in ("[1]", "[2]")
        assert place.url.startswith(f"{sample_server.url}/api/source/")
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens


def test_stream_has_the_same_text_source_events_and_usage(client):
    whole = client.chat.completions.create(model="graphrag-local", messages=QUESTION).choices[0].message.content
    chunks = list(
        client.chat.completions.create(
            model="graphrag-local", messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    sources = [chunk.event["data"] for chunk in chunks if getattr(chunk, "event", {}).get("type") == "source"]
    assert [source["source"]["name"] for source in sources] == [
        "The cable lost: the expedition of 1865",
        "Two cables: the summer of 1866",
    ]
    addresses = [{source["source"]["url"], *(one["source"] for one in source["metadata"])} for source in sources]
    assert [len(one) for one in addresses] == [1, 1]
    assert addresses[0] != addresses[1]
    assert all(source["document"][0] for source in sources)
    assert any(getattr(chunk.choices[0].delta, "annotations", None) for chunk in chunks if chunk.choices)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None


def test_earlier_turns_and_filters_are_read(client):
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Tell me of the Great Eastern."},
        {"role": "assistant", "content": "A ship.\n\n**Sources**\n\n- [1] …"},
        {"role": "user", "content": [{"type": "text", "text": "Who commanded her in 1865?"}]},
    ]
    assert (
        "Anderson" in client.chat.completions.create(model="graphrag-local", messages=turns).choices[0].message.content
    )
    limited = client.chat.completions.create(
        model="graphrag-basic", messages=QUESTION, metadata={"filter": json.dumps({"batches": ["1-beginnings"]})}
    )
    assert "4-great-eastern" not in str(limited.model_dump())


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ('### Task:\nGenerate a title.\nJSON format: { "title": "…" }\nUSER: Who laid the cable of 1866?\n', "title"),
        ('### Task:\nGenerate tags.\nJSON format: { "tags": [] }', "tags"),
        ('### Task:\nSuggest questions.\nJSON format: { "follow_ups": [] }', "follow_ups"),
    ],
)
def test_titles_and_tags_start_no_search(client, sample_server, prompt, reply):
    def searches() -> list[str]:
        with sample_server.http() as http:
            return [line for line in http.get("/metrics").text.splitlines() if "search_seconds_count" in line]

    before = searches()
    found = client.chat.completions.create(model="graphrag-ask", messages=[{"role": "user", "content": prompt}])
    assert list(json.loads(found.choices[0].message.content)) == [reply]
    if reply == "title":
        assert "Who laid the cable" in found.choices[0].message.content
    assert searches() == before


def test_unknown_model_and_missing_question_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="graphrag-global"):
        client.chat.completions.create(model="gpt-4.1", messages=QUESTION)
    with pytest.raises(openai.BadRequestError, match="no question"):
        client.chat.completions.create(model="graphrag-ask", messages=[{"role": "system", "content": "x"}])


def test_the_guides_python_prints_an_answer(sample_server, capsys):
    (code,) = blocks("docs/server.md", "python")
    exec(code.replace("http://127.0.0.1:8321", sample_server.url), {})
    assert "Anderson" in capsys.readouterr().out
