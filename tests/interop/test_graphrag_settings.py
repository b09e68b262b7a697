"""Settings of GraphRAG 2 and 3 in terms of this project's."""

import json
from pathlib import Path

import pytest
import yaml

from graphrag_assets.extras.interop.graphrag_settings import KEYS, Translation, translate
from graphrag_assets.settings import Settings

FILES = Path(__file__).parents[1] / "data" / "graphrag-settings"


def translated(config: str) -> Translation:
    return translate(yaml.safe_load(config), Path("/old"))


@pytest.mark.parametrize(("version", "model"), [(2, "openai/gpt-4-turbo-preview"), (3, "openai/gpt-4.1")])
def test_settings_as_graphrag_writes_them_are_translated_or_listed(version, model):
    text = (FILES / f"graphrag-{version}.yaml").read_text(encoding="utf-8")
    found = translated(text + "\nunheard_of: {deep: [1]}\n")
    assert found.variables["GRAPHRAG_CHAT_MODEL"] == model
    assert found.variables["GRAPHRAG_CHAT_API_KEY"] == "${GRAPHRAG_API_KEY}"
    assert found.variables["GRAPHRAG_INPUT"] == "/old/input"
    assert found.variables["GRAPHRAG_ENTITY_TYPES"] == "organization, person, geo, event"
    assert {"unheard_of.deep", "extract_graph.prompt", "snapshots.graphml"} <= set(found.left)
    assert len(found.left) > 25


def test_every_setting_in_the_table_exists():
    assert {name.lower() for name in KEYS.values()} <= Settings.model_fields.keys()


def test_models_with_their_servers_limits_and_parameters():
    found = translated(
        """
        models:
          default_chat_model:
            {type: azure_openai_chat, model: gpt-4.1, deployment_name: "prod-${STAGE}", api_key: $KEY, temperature: 0.2,
             api_base: "https://here.example", tokens_per_minute: 90000, requests_per_minute: auto, max_retries: 3}
          default_embedding_model:
            {model_provider: ollama, model: embed, call_args: {dimensions: 512}, concurrent_requests: 5}
          spare: {type: chat, model: gpt-0}
        input: {type: csv, title_column: name, file_pattern: "x$$", storage: {base_dir: "${DOCS}"}}
        extract_claims: {enabled: true}
        chunks: {size: 300, overlap: 100}
        """
    )
    parameters = json.loads(found.variables.pop("GRAPHRAG_MODEL_PARAMETERS"))
    assert parameters == {"temperature": 0.2, "embedding": {"dimensions": 512}}
    assert found.variables == {
        "GRAPHRAG_CHAT_MODEL": "azure/prod-${STAGE}",
        "GRAPHRAG_CHAT_API_KEY": "${KEY}",
        "GRAPHRAG_CHAT_BASE_URL": "https://here.example",
        "GRAPHRAG_TOKENS_PER_MINUTE": "90000",
        "GRAPHRAG_EMBEDDING_MODEL": "ollama/embed",
        "GRAPHRAG_CONCURRENCY": "5",
        "GRAPHRAG_INPUT": "${DOCS}",
        "GRAPHRAG_TITLE_COLUMN": "name",
        "GRAPHRAG_FILE_PATTERN": "x$",
        "GRAPHRAG_CLAIMS": "model",
        "GRAPHRAG_CHUNK_SIZE": "300",
    }
    assert found.left == [
        "chunks.overlap",
        "input.type",
        "models.default_chat_model.max_retries",
        "models.spare.model",
        "models.spare.type",
    ]
