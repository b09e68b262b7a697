"""Structured answers: the schema of a request, the answer in a reply, and what is wrong with it."""

import functools
import json
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeVar

import json_repair
from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo, WrapValidator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import PydanticOmit

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_errors import EmptyAnswer, InvalidAnswer, RefusedAnswer, TruncatedAnswer
from graphrag_assets.llm.model_options import ChatRequest, Completion, Message, Structured
from graphrag_assets.llm.provider import Reply
from graphrag_assets.llm.thoughts import with_backslashes, without_thoughts

T = TypeVar("T")


@dataclass
class _Records:
    valid: int = 0
    dropped: int = 0


def _or_dropped(value: Any, validate: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:
    count = info.context if isinstance(info.context, _Records) else _Records()
    try:
        record = validate(value)
    except ValidationError:
        count.dropped += 1
        raise PydanticOmit from None
    count.valid += 1
    return record


def _as_list(value: Any) -> Any:
    if value is None:
        return []
    return [value] if isinstance(value, dict) else value


Salvaged = Annotated[list[Annotated[T, WrapValidator(_or_dropped)]], BeforeValidator(_as_list)]
"""`Salvaged[Record]`: a list that leaves out the records that do not validate; `parse` counts them."""


def parse(text: str, model: type[BaseModel], may_say_nothing: bool = False) -> Completion:
    """Return the answer in `text`: JSON as it is, else inside fences or prose, else repaired; see `may_say_nothing`.

    Raises:
        InvalidAnswer: it does not validate, has no field of the model, or invalid records alone.
    """
    said, count, doubtful = _body(text), _Records(), False
    body = with_backslashes(said)
    if may_say_nothing and not set(body) & set("{["):
        return Completion(text, model())
    try:
        value = model.model_validate_json(body, context=count)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            raise InvalidAnswer(_explain(error)) from None
        count = _Records()
        rescued, doubtful = _rescued(body)
        try:
            value = model.model_validate(rescued, context=count)
        except ValidationError as problem:
            raise InvalidAnswer(f"The answer is not valid JSON; read as far as possible: {_explain(problem)}") from None
    if model.model_fields and not value.model_fields_set:
        raise InvalidAnswer(f"None of the fields {', '.join(model.model_fields)} is there.")
    if count.dropped and not count.valid:
        raise InvalidAnswer(f"None of the {count.dropped} records has the required fields of the right type.")
    guessed = doubtful or body != said
    return Completion(text, value, dropped_records=count.dropped, guessed=guessed, doubtful=doubtful)


_FENCED = re.compile(r"```(?:json|JSON)?\s*\n(.*)\n\s*```", re.DOTALL)


def _body(text: str) -> str:
    """Return the JSON of an answer, without the thoughts, fences and prose around it."""
    text = without_thoughts(text).strip()
    if text.startswith("{"):
        return text
    if fenced := _FENCED.search(text):
        text = fenced.group(1).strip()
    start = text.find("{")
    return text[start:] if start > 0 else text


_decoder = json.JSONDecoder(strict=False)  # allows line breaks inside strings


def _rescued(body: str) -> tuple[dict[str, Any], bool]:
    """Return the object in `body`, which is not valid JSON, and whether something may be lost: it is repaired, or has
    more.
    """
    try:
        value, end = _decoder.raw_decode(body)
    except (ValueError, RecursionError):
        value, end = json_repair.loads(body), 0
    if not isinstance(value, dict) or not value:
        raise InvalidAnswer("The answer is not a JSON object.")
    return value, not end or any(mark in body[end:] for mark in "{[:")


def _explain(error: ValidationError) -> str:
    """Return the first problems, as field: reason."""
    problems = error.errors(include_url=False, include_input=False)
    lines = [f"{'.'.join(str(part) for part in p['loc']) or 'answer'}: {p['msg']}" for p in problems[:5]]
    return "; ".join(lines)


@functools.cache
def strict_schema(model: type[BaseModel]) -> Any:
    """Return JSON schema of `model` in the strict dialect: every property required, no others allowed, no defaults."""
    return _strict(model.model_json_schema())


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(part) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # strict mode allows only the reference here
    strict = {name: _strict(part) for name, part in node.items() if name != "default"}
    for name in {"properties", "$defs"} & node.keys():  # whose keys are names
        strict[name] = {key: _strict(part) for key, part in node[name].items()}
    if "properties" in node:
        strict |= {"required": list(node["properties"]), "additionalProperties": False}
    return strict


@functools.cache
def schema_text(model: type[BaseModel]) -> str:
    """Return the strict schema as JSON, keys in a fixed order: part of the ledger's keys."""
    return json.dumps(strict_schema(model), sort_keys=True, ensure_ascii=False)


def with_schema(
    messages: list[Message], model: type[BaseModel] | None, mode: Structured
) -> tuple[list[Message], dict[str, Any]]:
    """Return the messages and the parameters that request `model` in this mode: its schema is in one of them."""
    if model is None:
        return messages, {}
    schema = strict_schema(model)
    if mode == "json_schema":
        form = {"name": model.__name__, "schema": schema, "strict": True}
        return messages, {"response_format": {"type": mode, "json_schema": form}}
    words = (
        "Answer with one JSON object and nothing else. It must conform to this schema:\n\n"
        f"```json schema\n{json.dumps(schema, ensure_ascii=False)}\n```"
    )
    parameters = {} if mode == "text" else {"response_format": {"type": mode}}
    if messages and messages[0]["role"] == "system":
        first = Message(role="system", content=f"{messages[0]['content']}\n\n{words}")
        return [first, *messages[1:]], parameters
    return [Message(role="system", content=words), *messages], parameters


def again(messages: list[Message], answer: str, problem: InvalidAnswer) -> list[Message]:
    """Return the messages of the second request: with the invalid answer, unless it is empty, and the reason."""
    said: list[Message] = [Message(role="assistant", content=answer)] if answer.strip() else []
    words = f"This answer cannot be used. {problem} Answer again, complete, in the form that was asked for."
    return [*messages, *said, Message(role="user", content=words)]


class Answer(NamedTuple):
    """One reply as a completion, and what is wrong with it, if anything."""

    completion: Completion
    problem: InvalidAnswer | None = None


def read_answer(reply: Reply, request: ChatRequest, usage: Usage) -> Answer:
    """Return the reply as its response model, and what is wrong with it."""
    try:
        if problem := ending_of(reply):
            raise problem
        answer = completion(reply.text, request, usage)
    except InvalidAnswer as problem:
        # Half an answer is not shown to the model again.
        return Answer(Completion("" if isinstance(problem, TruncatedAnswer) else reply.text, usage=usage), problem)
    return Answer(answer, InvalidAnswer("It is not valid JSON.") if answer.doubtful else None)


def completion(text: str, request: ChatRequest, usage: Usage) -> Completion:
    """Return the answer in `text` by the form of its request. Raises InvalidAnswer."""
    if request.response_model is None:
        return Completion(text, usage=usage)
    return replace(parse(text, request.response_model, request.may_say_nothing), usage=usage)


def unusable(request: ChatRequest, where: str, problem: InvalidAnswer) -> InvalidAnswer:
    """Return the error for a call without a usable answer; `where` names its model."""
    remedies = {
        TruncatedAnswer: "Raise the limit of output tokens, or use smaller text units.",
        RefusedAnswer: "Use another model for this text.",
    }
    remedy = remedies.get(type(problem), "Use a model that follows the format better.")
    return type(problem)(f"{request.name}: {where} gave no usable answer in two attempts. {problem} {remedy}")


def ending_of(reply: Reply) -> InvalidAnswer | None:
    """Return what is wrong with a reply without a complete answer, as far as it is seen without parsing."""
    if reply.refusal or reply.finish_reason == "content_filter":
        return RefusedAnswer(f"The model refused to answer: {(reply.refusal or 'content filter')[:200]}")
    if reply.finish_reason == "length":
        return TruncatedAnswer("The answer was cut off at the limit of output tokens; it has to be shorter.")
    if reply.text.strip():
        return None
    if not reply.whole.strip() and not reply.thoughts.strip():
        return EmptyAnswer("The answer was empty.")
    instead = "thoughts" if reply.whole.strip() else "text in the field reasoning_content"
    return EmptyAnswer(
        f"The answer was empty: there came {instead} alone. Allow more output tokens, less reasoning "
        "(reasoning_effort), or start the server without a reasoning parser."
    )
