"""The content of the test server's answers, made from the request alone: the same request has the same answer.

With a schema (in `response_format`, or written in the prompt) it is an instance of that schema whose names and
sentences come from the text of the last message; without one, sentences of that text.
"""

import hashlib
import json
import random
import re
from typing import Any

from graphrag_assets.llm.structured_output import strict_schema
from graphrag_assets.llm.tasks.extract_graph import ExtractGraph, ExtractGraphWithClaims
from graphrag_assets.llm.tasks.summarize_descriptions import Summary

Schema = dict[str, Any]
FILLER = " it rained." * 50
"""Makes a text long enough for a gleaning: neither a name nor a sentence for answers."""
DIMENSIONS = 32

_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
_SENTENCE = re.compile(r"[^.!?\n]{20,200}[.!?]")
_FENCE = re.compile(r"```[a-z]*\n(.*?)```|<(\w+) id=\"([0-9a-f]{8})\">\n(.*?)\n</\2 \3>", re.DOTALL)
_SCHEMA = re.compile(r"```json schema\n(\{.*?\})\n```", re.DOTALL)
_PLACE = re.compile(r"^\n?\[[^\n]*\]\n\n")
CORRECTION = "This answer cannot be used."  # how `structured.again` begins
_TASK = re.compile(r"^### (?:Task|Passage) \d+ of \d+\n", re.MULTILINE)  # how several are asked for together
_NAMES = {"title", "name", "source", "target", "subject", "object", "entity"}


def content_for(body: dict[str, Any]) -> str:
    """The message that answers a chat request."""
    asked, schema = asked_of(body), schema_of(body)
    if tasks := _TASK.split("\n\n".join(asked))[1:]:
        return _answers_together(tasks, task_of(body))
    seed = json.dumps([asked, schema], sort_keys=True).encode()
    data = fenced_text("\n".join(asked))
    text = _Words(
        sorted(set(_NAME.findall(data)) or {"Nobody"}),
        _SENTENCE.findall(data) or ["Nothing is said."],
        random.Random(hashlib.blake2b(seed, digest_size=8).digest()),
    )
    if schema is None:
        return " ".join(text.sentence() for _ in range(3))
    return json.dumps(_instance(schema, schema, "", text))


def _answers_together(tasks: list[str], name: str) -> str:
    """The answers to several tasks in one request: each is the one that the task would have by itself."""
    form = {"ExtractGraphs": ExtractGraph, "ExtractGraphsWithClaims": ExtractGraphWithClaims}.get(name, Summary)
    wanted = {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": strict_schema(form)}}
    alone = ({"messages": [{"role": "user", "content": task.strip()}], "response_format": wanted} for task in tasks)
    numbered = [
        {"number": number, "title": fenced_text(body["messages"][0]["content"]).split("\n")[0]}
        | json.loads(content_for(body))
        for number, body in enumerate(alone, 1)
    ]
    return json.dumps({"summaries" if form is Summary else "passages": numbered})


def asked_of(body: dict[str, Any]) -> list[str]:
    """The user's messages: the data, and what is asked of it.

    Answers are left out, and so is being told that one was not valid: asked again, the answer is the one that the
    first question would have had.
    """
    said = (m["content"] for m in body["messages"] if m["role"] == "user")
    return [content for content in said if not content.startswith(CORRECTION)]


def fenced_text(message: str) -> str:
    """The data of a prompt: the longest fenced block, or the whole message where nothing is fenced.

    What a gleaning lists is no data of its own, nor is the line that says where a text unit stands.
    """
    found = (match for match in _FENCE.finditer(message) if match.group(2) != "listed")
    blocks = [match.group(1) or match.group(4) or "" for match in found]
    return _PLACE.sub("", max(blocks, key=len, default="")) or message


def task_of(body: dict[str, Any]) -> str:
    """The task of a chat request: the name of its schema, else "json" or "text"."""
    wanted = body.get("response_format") or {}
    return wanted.get("json_schema", {}).get("name") or ("json" if wanted else "text")


def embedding_of(text: str | list[int], dimensions: int = DIMENSIONS) -> list[float]:
    """A vector that depends on nothing but the text; not of unit length, so that normalizing shows."""
    chance = random.Random(str(text))
    return [chance.gauss(0, 1) for _ in range(dimensions)]


def schema_of(body: dict[str, Any]) -> Schema | None:
    """The requested JSON schema, by `response_format` or in words."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return wanted["json_schema"]["schema"]
    for message in body["messages"]:
        if found := _SCHEMA.search(message["content"]):
            return json.loads(found.group(1))
    return {"type": "object", "properties": {"answer": {"type": "string"}}} if wanted else None


class _Words:
    """Names and sentences drawn from a text."""

    def __init__(self, names: list[str], sentences: list[str], chance: random.Random):
        self.names, self.sentences, self.chance = names, sentences, chance

    def name(self) -> str:
        return self.chance.choice(self.names)

    def sentence(self) -> str:
        return self.chance.choice(self.sentences).strip()


def _instance(schema: Schema, root: Schema, field: str, text: _Words) -> Any:
    """A value that satisfies `schema`; `field` is the name of the property it is for."""
    if "$ref" in schema:
        return _instance(root["$defs"][schema["$ref"].rpartition("/")[2]], root, field, text)
    if "enum" in schema:
        return text.chance.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _instance(options[0], root, field, text)
    match schema.get("type"):
        case "object":
            return {name: _instance(part, root, name, text) for name, part in schema.get("properties", {}).items()}
        case "array":
            few = min(schema.get("maxItems", 4), max(schema.get("minItems", 2), 3))
            return [_instance(schema.get("items", {}), root, field, text) for _ in range(few)]
        case "integer":
            return text.chance.randint(schema.get("minimum", 1), schema.get("maximum", 10))
        case "number":
            return round(text.chance.uniform(schema.get("minimum", 1), schema.get("maximum", 10)), 2)
        case "boolean":
            return text.chance.random() < 0.5
        case "null":
            return None
    is_name = any(part in _NAMES for part in field.lower().split("_"))
    return text.name() if is_name else text.sentence()
