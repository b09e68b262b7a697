"""Settings of GraphRAG 2 and 3 in terms of this project's."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.graphrag_settings import Translation, translate

FILES = Path(__file__).parents[1] / "data" / "graphrag-settings"
OLD, NEW = Path("/old"), Path("/new")
KEY = "${GRAPHRAG_API_KEY}"


def translated(config: str | dict[str, Any]) -> Translation:
    return translate(yaml.safe_load(config) if isinstance(config, str) else config, OLD, NEW)


def generated(version: int) -> dict[str, Any]:
    config = yaml.safe_load((FILES / f"graphrag-{version}.yaml").read_text(encoding="utf-8"))
    assert isinstance(config, dict)
    return config


SAME = {
    "input": "/old/input",
    "chunking": "tokens",
    "chunk_size": "1200",
    "entity_types": "organization, person, geo, event",
    "max_gleanings": "1",
    "claims": "off",
    "claim_description": "Any claims or facts that could be relevant to information discovery.",
    "max_cluster_size": "10",
}


@pytest.mark.parametrize(
    ("version", "own"),
    [
        (
            2,
            {
                "chat_model": "openai/gpt-4-turbo-preview",
                "embedding_model": "openai/text-embedding-3-small",
                "tokenizer": "cl100k_base",
                "concurrency": "25",
            },
        ),
        (
            3,
            {
                "chat_model": "openai/gpt-4.1",
                "embedding_model": "openai/text-embedding-3-large",
                "tokenizer": "o200k_base",
            },
        ),
    ],
)
def test_settings_as_graphrag_writes_them_are_translated(version, own):
    found = translated(generated(version))
    assert found.settings == SAME | own
    assert found.variables == {"GRAPHRAG_CHAT_API_KEY": KEY, "GRAPHRAG_EMBEDDING_API_KEY": KEY}
    assert found.references() == ["GRAPHRAG_API_KEY"]
    assert len(found.prompts) == 12
    assert not [key for key, reason in found.left_out.items() if reason.startswith("not known")]


@pytest.mark.parametrize("version", [2, 3])
def test_every_key_that_is_not_translated_is_listed(version):
    config, expected = generated(version), set()
    for name, section in list(config.items()):
        places = section.items() if name.endswith("models") else [("", section)]
        for inner, place in places:
            place["unheard_of"] = 1
            expected.add(".".join(filter(None, (name, inner, "unheard_of"))))
    config["unheard_of"] = {"deep": [1]}
    assert expected | {"unheard_of.deep"} <= translated(config).left_out.keys()


def test_models_limits_and_parameters_of_graphrag_2():
    found = translated(
        """
        models:
          default_chat_model:
            type: azure_openai_chat
            auth_type: azure_managed_identity
            api_base: https://here.example
            api_version: "2025-01-01"
            model: gpt-4.1
            deployment_name: prod-${STAGE}
            api_key: $KEY
            temperature: 0.2
            top_p: 1
            n: 1
            model_supports_json: false
            tokens_per_minute: 90000
            requests_per_minute: auto
            concurrent_requests: 10
            request_timeout: 300
          reports: {type: chat, model_provider: anthropic, model: claude, api_key: "${OTHER}", top_p: 1}
          spare: {type: chat, model: gpt-0}
          default_embedding_model:
            type: azure_openai_embedding
            model: embed
            api_base: https://here.example
            api_version: "2024-02-02"
            concurrent_requests: 5
        community_reports: {max_length: 900}
        extract_claims: {enabled: true, max_gleanings: 1, model_id: reports}
        local_search: {chat_model_id: reports, top_k_entities: 20}
        """
    )
    assert found.settings == {
        "concurrency": "5",
        "tokens_per_minute": "90000",
        "request_timeout": "300",
        "chat_model": "azure/prod-${STAGE}",
        "model_parameters": '{"temperature": 0.2, "top_p": 1, "query": {"temperature": null}}',
        "chat_base_url": "https://here.example",
        "query_model": "anthropic/claude",
        "embedding_model": "azure/embed",
        "embedding_base_url": "https://here.example",
        "input": "/old/input",
        "chunking": "tokens",
        "tokenizer": "cl100k_base",
        "claims": "model",
        "chunk_size": "1200",
    }
    assert found.variables == {
        "GRAPHRAG_CHAT_API_KEY": "${KEY}",
        "AZURE_API_VERSION": "2025-01-01",
        "ANTHROPIC_API_KEY": "${OTHER}",
    }
    assert found.references() == ["KEY", "OTHER", "STAGE"]
    assert found.left_out.keys() == {
        "models.default_chat_model.model",
        "models.default_chat_model.auth_type",
        "models.default_chat_model, models.default_embedding_model: concurrency",
        "models.spare",
        "models.default_chat_model.model_supports_json",
        "models.default_embedding_model.api_version",
        *("extract_claims.model_id", "global_search.model_id", "drift_search.model_id", "basic_search.model_id"),
        *("community_reports.max_length", "local_search.top_k_entities"),
    }


def test_models_limits_and_storage_of_graphrag_3():
    found = translated(
        """
        concurrent_requests: 7
        completion_models:
          default_completion_model:
            model_provider: ollama
            model: llama3
            api_base: http://localhost:11434
            call_args: {num_ctx: 8192, timeout: 60, api_secret: x, extra: {deep: true}, top_k: "${TOP}"}
            retry: {type: exponential_backoff, max_retries: 3, base_delay: 2.5}
            rate_limit: {type: sliding_window, period_in_seconds: 30, requests_per_period: 20}
        embedding_models: {}
        chunking: {type: sentence, encoding_model: p50k_base, prepend_metadata: [year, ship]}
        input: {type: csv, title_column: name, id_column: number, encoding: windows-1252, file_pattern: "x$$", metadata: [year]}
        input_storage: {type: blob, container_name: docs, base_dir: in, connection_string: "${CONNECTION}"}
        workflows: [load_input_documents, extract_graph_nlp]
        cluster_graph: {max_cluster_size: 1, use_lcc: true, seed: 42}
        prune_graph: {min_node_freq: 3, min_edge_weight_pct: 20, remove_ego_nodes: true}
        """
    )
    assert found.settings == {
        "method": "fast",
        "claims": "off",
        "concurrency": "7",
        "requests_per_minute": "40",
        "chat_model": "ollama/llama3",
        "model_parameters": '{"num_ctx": 8192, "extra": {"deep": true}}',
        "chat_base_url": "http://localhost:11434",
        "input": "az://docs/in",
        "chunking": "sentences",
        "chunk_size": "1200",
        "title_column": "name",
        "id_column": "number",
        "text_encoding": "windows-1252",
        "file_pattern": "x$",
        "metadata_columns": "year, ship",
    }
    model = "completion_models.default_completion_model"
    assert found.left_out.keys() >= {
        *(f"{model}.call_args.{name}" for name in ("timeout", "api_secret", "top_k")),
        *(f"{model}.{name}" for name in ("retry.type", "retry.max_retries", "rate_limit.type")),
        *(
            "chunking.encoding_model",
            "prune_graph.remove_ego_nodes",
            "prune_graph.min_node_freq",
            "cluster_graph.seed",
            "input_storage.type",
            "input_storage.connection_string",
        ),
        *("cluster_graph.max_cluster_size", "cluster_graph.use_lcc"),
    }
    assert "greater than or equal to 2" in found.left_out["cluster_graph.max_cluster_size"]
    assert "${CONNECTION}" not in str(found)


def test_older_settings_are_refused():
    with pytest.raises(InputError, match="graphrag init --force"):
        translated("llm: {model: gpt-4}\nchunks: {size: 300}")


def test_parameters_and_dimensions_of_the_embedding_model_are_carried_over():
    found = translated(
        """
        completion_models: {}
        embedding_models:
          default_embedding_model:
            {model_provider: openai, model: text-embedding-3-small, api_key: k, call_args: {dimensions: 512}}
        vector_store: {type: lancedb, vector_size: 512, index_schema: {entity_description: {vector_size: 512}}}
        """
    )
    assert json.loads(found.settings["model_parameters"]) == {"embedding": {"dimensions": 512}}
    reasons = [reason for key, reason in found.left_out.items() if "vector_size" in key]
    assert len(reasons) == 2
    assert all("GRAPHRAG_MODEL_PARAMETERS" in reason for reason in reasons)
