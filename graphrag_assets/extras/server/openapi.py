"""`/openapi.json`: the addresses of `/api` and `/v1` with the schemas of their requests."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from graphrag_assets import __version__
from graphrag_assets.extras.server.openai_api import ChatRequest
from graphrag_assets.extras.server.rest import SqlRequest
from graphrag_assets.extras.server.searches import Ask, Retrieve

_POSTS: dict[str, tuple[type[BaseModel], str]] = {
    "/api/query": (Ask, "Answer a question"),
    "/api/query/stream": (Ask, "Answer a question as server-sent events: status, context, token, answer, error, done"),
    "/api/retrieve": (Retrieve, "The passages that match a question best"),
    "/api/context": (Ask, "What a model would read to answer"),
    "/api/sql": (SqlRequest, "One SELECT on the published tables, where the server allows it"),
    "/v1/chat/completions": (ChatRequest, "Answer the newest message, as OpenAI's Chat Completions"),
}
_GETS: dict[str, tuple[str, dict[str, str]]] = {
    "/api/entities": ("Entities by a text", {"q": "string", "limit": "integer"}),
    "/api/entities/{name}": ("An entity, its relationships and communities", {"name": "string"}),
    "/api/entities/{name}/relationships": ("Its relationships", {"name": "string", "limit": "integer"}),
    "/api/entities/{name}/timeline": ("The claims about it, by date", {"name": "string"}),
    "/api/entities/{name}/evidence": ("The passages that name it", {"name": "string", "limit": "integer"}),
    "/api/path": ("How two entities are connected", {"from": "string", "to": "string", "max_hops": "integer"}),
    "/api/communities": ("Communities and their reports", {"level": "integer", "limit": "integer"}),
    "/api/reports/{number}": ("A report with its full text", {"number": "integer"}),
    "/api/source/{text_unit}": (
        "A passage; as a page where HTML is accepted",
        {"text_unit": "string", "span": "string"},
    ),
    "/api/status": ("The publication and its rows", {}),
    "/v1/models": ("The search methods as models", {}),
    "/metrics": ("Counts for Prometheus", {}),
    "/healthz": ("Whether the server runs", {}),
}


def openapi(public_url: str) -> dict[str, Any]:
    """The description of the server in OpenAPI 3.1."""
    models = [(kind, "validation") for kind in dict.fromkeys(kind for kind, _ in _POSTS.values())]
    _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    done = {"200": {"description": "Done"}, "4XX": {"description": "Refused: `error.message` says why"}}
    posts = {
        path: {
            "post": {
                "summary": summary,
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}},
                },
                "responses": done,
            }
        }
        for path, (kind, summary) in _POSTS.items()
    }
    gets = {
        path: {
            "get": {
                "summary": summary,
                "parameters": [
                    {
                        "name": name,
                        "in": "path" if f"{{{name}}}" in path else "query",
                        "required": f"{{{name}}}" in path,
                        "schema": {"type": kind},
                    }
                    for name, kind in parameters.items()
                ],
                "responses": done,
            }
        }
        for path, (summary, parameters) in _GETS.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "GraphRAG", "version": __version__},
        "servers": [{"url": public_url}],
        "security": [{}, {"token": []}],
        "paths": posts | gets,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
