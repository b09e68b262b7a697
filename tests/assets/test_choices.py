"""What performs each task of indexing: GRAPHRAG_METHOD, and what its settings do to an index."""

from dataclasses import replace

import pytest

from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.errors import RefusedFileError, SettingsError
from graphrag_assets.extras.cost_preview.preview import plan_index
from graphrag_assets.settings import METHODS, Settings
from tests.assets.test_language_models import BATCHES, contents, copy_index, use
from tests.cli import run_command

GRAPH_TASKS = {"ExtractGraphWithClaims"}


@pytest.fixture
def modeled(modeled, monkeypatch):
    """A project with documents, and a chat model; embeddings are the embedded default's."""
    monkeypatch.delenv("GRAPHRAG_EMBEDDING_MODEL")
    return modeled


@pytest.fixture
def indexed(project, server, shared_folder, monkeypatch):
    """The same, indexed by all models: `server` has no requests yet."""
    use(monkeypatch, server)
    return copy_index(project, shared_folder)


def tasks(server) -> set[str]:
    return {request.task for request in server.chats}


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({}, "embedded"),
        ({"chat_model": "openai/a"}, "standard"),
        ({"chat_model": "openai/a", "method": "fast"}, "fast"),
        ({"chat_model": "openai/a", "method": "embedded"}, "embedded"),
        ({"extraction_model": "openai/a"}, "standard"),
        ({"query_model": "openai/a"}, "embedded"),
    ],
)
def test_the_method_follows_the_models_unless_it_is_set(project, given, method):
    settings = Settings.load(**given)
    assert settings.choices == METHODS[method]
    assert settings.method_in_words.startswith(f"{method} (")


def test_claims_have_a_setting_of_their_own(project):
    settings = Settings.load(chat_model="openai/a", claims="off")
    assert settings.method_in_words == "standard (extraction: model, summaries: model, reports: model, claims: off)"
    assert settings.as_rows()["claims"] == "off"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "fast"}, "GRAPHRAG_METHOD=fast needs a chat model: set GRAPHRAG_CHAT_MODEL or"),
        ({"claims": "model"}, "GRAPHRAG_CLAIMS=model needs a chat model: .* GRAPHRAG_EXTRACTION_MODEL, or"),
        (
            {"chat_model": "openai/a", "method": "fast", "claims": "model"},
            "GRAPHRAG_CLAIMS=model needs GRAPHRAG_METHOD=standard: one request extracts entities and claims",
        ),
        ({"claims": "of"}, "GRAPHRAG_CLAIMS='of'"),
        ({"model_parameters": "[1]"}, "GRAPHRAG_MODEL_PARAMETERS.*JSON object"),
        ({"model_parameters": '{"api_key": "planted"}'}, "GRAPHRAG_MODEL_PARAMETERS: 'api_key' may hold a secret"),
        ({"model_parameters": '{"extraction": {"api_key": "planted"}}'}, "PARAMETERS: 'api_key' may hold a secret"),
        ({"model_parameters": '{"query": {"timeout": 1}}'}, "'timeout' is not a model parameter"),
        ({"model_parameters": '{"embedding": {"timeout": 1}}'}, "'timeout' is not a model parameter"),
        ({"model_parameters": '{"query": 1}'}, "the parameters of query must be an object"),
        ({"usd_per_million": '{"chat": 1}'}, "'chat' must be one of chat_input, chat_output, embedding"),
        ({"usd_per_million": '{"embedding": -1}'}, "a number of at least 0"),
    ],
)
def test_a_choice_that_cannot_be_is_one_sentence(project, given, message):
    with pytest.raises(SettingsError, match=message) as refused:
        Settings.load(**given)
    assert "planted" not in str(refused.value)


@pytest.mark.long
def test_fast_indexing_extracts_without_a_model_and_writes_reports_from_text_units(modeled, server, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_METHOD", "fast")
    assert set(plan_index(modeled.index).costs["task"]) == {"community_report_text"}
    modeled.index_all()
    assert tasks(server) == {"CommunityReport"}
    (system, user) = server.chats[0].body["messages"]
    assert "from the passages that speak of it" in system["content"]
    assert "-----Sources-----\nid,text\n" in user["content"]
    assert any(text[:40] in user["content"] for text in BATCHES.values())
    assert modeled.sql("SELECT DISTINCT extractor FROM entity_mentions") == [(EXTRACTOR,)]
    assert modeled.sql("SELECT count(*) FROM citations WHERE cited_id IS NULL") == [(0,)]
    server.requests.clear()
    tables = contents(modeled)
    modeled.index_all()
    assert server.requests == []
    assert contents(modeled) == tables
    modeled.write("two/c.md", BATCHES["two/c.md"].replace("London", "Liverpool"))
    modeled.index_all()
    assert tasks(server) == {"CommunityReport"}
    assert all("Liverpool" in str(request.body["messages"]) for request in server.chats)


@pytest.mark.long
@pytest.mark.parametrize(
    ("setting", "value", "asked"),
    [
        ("QUERY_MODEL", "openai/other", set()),
        ("CLAIM_DESCRIPTION", "prices", {"ExtractGraphWithClaims", "CommunityReport"}),
        ("MODEL_PARAMETERS", '{"service_tier": "flex"}', set()),
    ],
)
def test_only_what_a_choice_concerns_is_done_again(indexed, server, monkeypatch, setting, value, asked):
    mentions = contents(indexed)["entity_mentions"]
    monkeypatch.setenv(f"GRAPHRAG_{setting}", value)
    indexed.index_all()
    assert tasks(server) <= asked
    assert (contents(indexed)["entity_mentions"] == mentions) == (setting != "CLAIM_DESCRIPTION")


@pytest.mark.long
def test_status_and_plan_name_the_method(modeled, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_METHOD", "fast")
    method = "fast (extraction: embedded, summaries: embedded, reports: model, claims: embedded)"
    assert f"Method: {method}." in plan_index(modeled.index).notes
    monkeypatch.setenv("GRAPHRAG_METHOD", "embedded")
    modeled.index_all()
    assert "Method: embedded (" in run_command("status")


def test_prices_are_those_of_the_model_that_is_used(modeled, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_USD_PER_MILLION", '{"chat_input": 1, "chat_output": 4}')
    assert "openai/test-chat: $1 in, $4 out per million tokens, by the settings." in plan_index(modeled.index).notes
    monkeypatch.setenv("GRAPHRAG_EXTRACTION_MODEL", "openai/gpt-4.1-mini")
    by_table = "openai/gpt-4.1-mini: $0.4 in, $1.6 out per million tokens, by litellm's table."
    assert by_table in plan_index(modeled.index).notes


def test_a_model_of_another_provider_has_neither_server_nor_key_of_the_chat_model(project, monkeypatch):
    from graphrag_assets.llm.backend import chat_model

    monkeypatch.setenv("GRAPHRAG_CHAT_API_KEY", "sk-of-the-chat-model")
    given = {"chat_model": "openai/a", "chat_base_url": "http://127.0.0.1:1/v1"}
    settings = Settings.load(**given, query_model="anthropic/b", extraction_model="openai/c")
    assert chat_model(settings, use="query").options.base_url is None
    assert chat_model(settings, use="query").options.api_key is None
    assert chat_model(settings, use="extraction").options.base_url == given["chat_base_url"]


def test_pattern_and_size_decide_which_files_are_read(project, monkeypatch):
    monkeypatch.setattr("graphrag_assets.assets.index.MAX_FILE_BYTES", 1_000)
    index = replace(project.index, overrides={"file_pattern": r"\.txt$"})
    for name, size in (("a/small.txt", 10), ("a/large.txt", 2_000), ("a/other.log", 10)):
        project.write(name, "x" * size)
    files = {file.path: file for file in index.input.files("a")}
    assert set(files) == {"a/small.txt", "a/large.txt"}
    assert files["a/small.txt"].read() == b"x" * 10
    with pytest.raises(RefusedFileError, match="the limit is"):
        files["a/large.txt"].read()


@pytest.mark.extended
def test_settings_of_the_input_decide_what_the_model_reads(project, server, monkeypatch):
    use(monkeypatch, server)
    settings = {"FILE_PATTERN": r"\.(txt|csv)$", "TEXT_ENCODING": "cp850", "METADATA_COLUMNS": "ship,port"}
    settings |= {"TEXT_COLUMN": "log", "DATE_COLUMN": "day", "MAX_GLEANINGS": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    project.write("a/café.txt", "Émile Zola sailed to Valentia.".encode("cp850"))
    project.write("a/log.csv", "log,ship,port,day\nAda Byron met Ben.,Albany,Brest,1866-07-27\n")
    project.write("a/other.log", "Cyrus Field was left out.")
    scan_input(project.index)
    index_batch(project.index, "a", project.index.models("a", "r"), "r")
    read = sorted(r.body["messages"][1]["content"] for r in server.chats if r.task in GRAPH_TASKS)
    assert len(read) == 2
    assert "ship: Albany; port: Brest\n\nAda Byron met Ben." in read[0] + read[1]
    assert "The document is dated 1866-07-27." in read[0] + read[1]
    assert "Émile Zola sailed to Valentia." in read[0] + read[1]
    assert "Cyrus Field" not in str(read)
