"""What performs each task of indexing: GRAPHRAG_METHOD, and what its settings do to an index."""

import pytest

from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.errors import SettingsError
from graphrag_assets.settings import METHODS, Settings


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
        ({"model_parameters": "[1]"}, "GRAPHRAG_MODEL_PARAMETERS: Input should be a valid dictionary"),
        ({"model_parameters": {"query": {"api_key": "planted"}}}, "PARAMETERS: 'api_key' may hold a secret"),
        ({"model_parameters": {"timeout": 1}}, "'timeout' is not a model parameter"),
        ({"model_parameters": {"query": 1}}, "the parameters of query must be an object"),
        ({"usd_per_million": {"chat": 1}}, "GRAPHRAG_USD_PER_MILLION: chat: Extra inputs are not permitted"),
        ({"usd_per_million": {"embedding": -1}}, "embedding: Input should be greater than or equal to 0"),
    ],
)
def test_a_choice_that_cannot_be_is_one_sentence(project, given, message):
    with pytest.raises(SettingsError, match=message) as refused:
        Settings.load(**given)
    assert "planted" not in str(refused.value)


def test_parameters_of_a_use_replace_the_shared_ones():
    parameters = {"temperature": 0, "seed": 1, "query": {"temperature": 0.7}, "embedding": {"dimensions": 8}}
    settings = Settings.load(model_parameters=parameters)
    assert settings.parameters_of("extraction") == {"temperature": 0, "seed": 1}
    assert settings.parameters_of("query") == {"temperature": 0.7, "seed": 1}
    assert settings.parameters_of("embedding") == {"dimensions": 8}


def test_a_model_of_another_provider_has_neither_server_nor_key_of_the_chat_model(project, monkeypatch):
    from graphrag_assets.llm.backend import chat_model

    monkeypatch.setenv("GRAPHRAG_CHAT_API_KEY", "sk-of-the-chat-model")
    given = {"chat_model": "openai/a", "chat_base_url": "http://127.0.0.1:1/v1"}
    settings = Settings.load(**given, query_model="anthropic/b", extraction_model="openai/c")
    assert chat_model(settings, use="query").options.base_url is None
    assert chat_model(settings, use="query").options.api_key is None
    assert chat_model(settings, use="extraction").options.base_url == given["chat_base_url"]


def test_settings_of_the_input_decide_what_is_read(project, monkeypatch):
    settings = {"FILE_PATTERN": r"\.(txt|csv)$", "TEXT_ENCODING": "cp850", "METADATA_COLUMNS": "ship,port"}
    settings |= {"TEXT_COLUMN": "log", "TITLE_COLUMN": "head", "ID_COLUMN": "key", "DATE_COLUMN": "day"}
    for name, value in settings.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    project.write("a/café.txt", "Émile Zola sailed to Valentia.".encode("cp850"))
    project.write("a/log.csv", "key,head,log,ship,port,day\n7,The log,Ada Byron met Ben.,Albany,Brest,1866-07-27\n")
    project.write("a/other.log", "Cyrus Field was left out.")
    index_batch(project.index, "a", project.index.models("a", "r"), "r")
    read = project.index.working.read
    rows = read("SELECT title, text, document_date::VARCHAR FROM documents ORDER BY source").rows()
    assert rows == [
        ("café", "Émile Zola sailed to Valentia.", None),
        ("The log", "Ada Byron met Ben.", "1866-07-27"),
    ]
    contexts = read("SELECT context FROM text_units ORDER BY document_id")["context"].to_list()
    assert "The log (ship: Albany; port: Brest)" in contexts
