"""Structured answers: the schema of a request, the answer in a reply, and what is wrong with it."""

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

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
M = TypeVar("M", bound=BaseModel)

WEAKER: dict[Structured, Structured] = {"json_schema": "json_object", "json_object": "text"}
"""The next weaker way of requesting JSON, for servers that reject one."""


@dataclass
class _Count:
    kept: int = 0
    dropped: int = 0


def _or_dropped(value: Any, validate: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:
    count = info.context if isinstance(info.context, _Count) else _Count()
    try:
        record = validate(value)
    except ValidationError:
        count.dropped += 1
        raise PydanticOmit from None
    count.kept += 1
    return record


def _as_list(value: Any) -> Any:
    if value is None:
        return []
    return [value] if isinstance(value, dict) else value


Salvaged = Annotated[list[Annotated[T, WrapValidator(_or_dropped)]], BeforeValidator(_as_list)]
"""`Salvaged[Record]`: a list that leaves out the records that do not validate; `parse` counts them."""


@dataclass(frozen=True)
class Parsed(Generic[M]):
    """A valid answer, with the numbers of records kept in and dropped from its `Salvaged` lists."""

    value: M
    dropped_records: int
    kept_records: int = 0
    doubtful: bool = False  # the repair of broken JSON may have lost or changed something
    restored: bool = False  # it has backslashes that the model did not escape


def parse(text: str, model: type[M], may_say_nothing: bool = False) -> Parsed[M]:
    """The answer in `text`: JSON as it is, else inside fences or prose, else repaired; see `may_say_nothing`."""
    said, count, doubtful = _body(text), _Count(), False
    body = with_backslashes(said)
    if may_say_nothing and not set(body) & set("{["):
        return Parsed(model(), 0)
    try:
        value = model.model_validate_json(body, context=count)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            raise InvalidAnswer(_explain(error)) from None
        count = _Count()
        found, rescue = _rescued(body)
        value = _validated(found, model, count)
        all_there = value.model_fields_set == model.model_fields.keys()
        doubtful = rescue == "guessed" or (rescue == "closed" and not all_there)
    if model.model_fields and not value.model_fields_set:
        raise InvalidAnswer(f"None of the fields {', '.join(model.model_fields)} is there.")
    if count.dropped and not count.kept:
        raise InvalidAnswer(f"None of the {count.dropped} records has the required fields of the right type.")
    return Parsed(value, count.dropped, count.kept, doubtful, body != said)


_FENCED = re.compile(r"```(?:json|JSON)?\s*\n(.*)\n\s*```", re.DOTALL)


def _body(text: str) -> str:
    """The JSON of an answer, without the thoughts, fences and prose around it."""
    text = without_thoughts(text).strip()
    if text.startswith("{"):
        return text
    if fenced := _FENCED.search(text):
        text = fenced.group(1).strip()
    start = text.find("{")
    return text[start:] if start > 0 else text


_decoder = json.JSONDecoder(strict=False)  # allows line breaks inside strings


def _rescued(body: str) -> tuple[dict[str, Any], Literal["exact", "closed", "guessed"]]:
    """The object in `body`, which is not valid JSON, and how it was found.

    exact: it is JSON followed by prose, or the repair changed nothing but commas, quotes and white space.
    closed: besides that the last bracket was missing. guessed: anything more, such as a colon put in, a bracket
    moved or words left out.
    """
    try:
        value, end = _decoder.raw_decode(body)
    except (ValueError, RecursionError):
        body = _PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), body)  # json_repair would leave two halves
        value, end = json_repair.loads(body), None
    if not isinstance(value, dict) or not value:
        raise InvalidAnswer("The answer is not a JSON object.")
    written, read = _letters(body), _letters(json.dumps(value, ensure_ascii=False))
    rest = body[end:] if end is not None else written[len(read) :]
    if end is not None or written.startswith(read):
        return value, "guessed" if _looks_like_data(rest) else "exact"
    if read.startswith(written) and len(read) == len(written) + 1 and body.rstrip()[-1:] in ("}", "]", '"', "'"):
        return value, "closed"
    return value, "guessed"


def _looks_like_data(rest: str) -> bool:
    return any(mark in rest for mark in "{[:")


_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PUNCTUATION = re.compile(r"""[\s,"'“”]+""")


def _letters(text: str) -> str:
    """The characters of JSON that no repair may change: without commas, quotes, white space and case."""

    def meant(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else "" if escape[2] in "bfnrt" else escape[2]

    return _PUNCTUATION.sub("", _ESCAPE.sub(meant, text)).casefold().replace("none", "null")


def _validated(value: dict[str, Any], model: type[M], count: _Count) -> M:
    try:
        return model.model_validate(value, context=count)
    except ValidationError as error:
        raise InvalidAnswer(f"The answer is not valid JSON; read as far as possible: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    """The first problems, as field: reason."""
    problems = error.errors(include_url=False, include_input=False)
    lines = [f"{'.'.join(str(part) for part in p['loc']) or 'answer'}: {p['msg']}" for p in problems[:5]]
    return "; ".join(lines)


@functools.cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` in the strict dialect: every property required, no others allowed, no defaults."""
    schema: dict[str, Any] = _strict(model.model_json_schema())
    return schema


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
    """The strict schema as JSON, keys in a fixed order: part of the ledger's keys."""
    return json.dumps(strict_schema(model), sort_keys=True, ensure_ascii=False)


def response_format(model: type[BaseModel] | None, mode: Structured) -> dict[str, Any] | None:
    """The parameter `response_format` that requests `model` in this mode; None for plain text."""
    if model is None or mode == "text":
        return None
    if mode == "json_object":
        return {"type": "json_object"}
    schema = {"name": model.__name__, "schema": strict_schema(model), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def with_schema(messages: Sequence[Message], model: type[BaseModel] | None, mode: Structured) -> list[Message]:
    """The messages, with the schema in the system message where `response_format` does not carry it."""
    if model is None or mode == "json_schema":
        return list(messages)
    words = (
        "Answer with one JSON object and nothing else. It must conform to this schema:\n\n"
        f"```json schema\n{json.dumps(strict_schema(model), ensure_ascii=False)}\n```"
    )
    if messages and messages[0]["role"] == "system":
        first = Message(role="system", content=f"{messages[0]['content']}\n\n{words}")
        return [first, *messages[1:]]
    return [Message(role="system", content=words), *messages]


def again(messages: list[Message], answer: str, problem: InvalidAnswer) -> list[Message]:
    """The messages of the second request: with the invalid answer, unless it is empty, and the reason."""
    said: list[Message] = [Message(role="assistant", content=answer)] if answer.strip() else []
    words = f"This answer cannot be used. {problem} Answer again, complete, in the form that was asked for."
    return [*messages, *said, Message(role="user", content=words)]


class Answer(NamedTuple):
    """One reply as a completion, and what is wrong with it, if anything."""

    completion: Completion
    problem: InvalidAnswer | None = None


def read_answer(reply: Reply, request: ChatRequest, usage: Usage) -> Answer:
    """The reply as its response model, and what is wrong with it."""
    empty = Completion(reply.text, usage=usage)
    try:
        if problem := ending_of(reply):
            raise problem
        found = completion(reply.text, request, usage)
    except TruncatedAnswer as problem:
        return Answer(replace(empty, text=""), problem)  # half an answer is not shown to the model again
    except InvalidAnswer as problem:
        return Answer(empty, problem)
    return Answer(found, InvalidAnswer("It is not valid JSON.") if found.doubtful else None)


def completion(text: str, request: ChatRequest, usage: Usage) -> Completion:
    """The answer in `text` by the form of its request. Raises InvalidAnswer."""
    if request.response_model is None:
        return Completion(text, usage=usage)
    found = parse(text, request.response_model, request.may_say_nothing)
    guessed, records = found.doubtful or found.restored, (found.dropped_records, found.kept_records)
    return Completion(text, found.value, usage, False, records[0], guessed, found.doubtful, records[1])


def best_guess(answers: Sequence[Answer]) -> Completion | None:
    """Of answers that are doubtful repairs, the one with the most records, on a tie the last; None without any."""
    guesses = [answer.completion for answer in reversed(answers) if answer.completion.doubtful]
    return max(guesses, key=lambda guess: guess.kept_records, default=None)


def unusable(request: ChatRequest, where: str, problem: InvalidAnswer) -> InvalidAnswer:
    """The error for a call without a usable answer; `where` names its model."""
    remedies = {
        TruncatedAnswer: "Raise the limit of output tokens, or use smaller text units.",
        RefusedAnswer: "Use another model for this text.",
    }
    remedy = remedies.get(type(problem), "Use a model that follows the format better.")
    return type(problem)(f"{request.name}: {where} gave no usable answer in two attempts. {problem} {remedy}")


def ending_of(reply: Reply) -> InvalidAnswer | None:
    """What is wrong with a reply without a complete answer, as far as it is seen without parsing."""
    if reply.refusal or reply.finish_reason == "content_filter":
        return RefusedAnswer(f"The model refused to answer: {(reply.refusal or 'content filter')[:200]}")
    if reply.finish_reason == "length":
        return TruncatedAnswer("The answer was cut off at the limit of output tokens; it has to be shorter.")
    if reply.text.strip():
        return None
    if not reply.instead:
        return EmptyAnswer("The answer was empty.")
    return EmptyAnswer(
        f"The answer was empty: there came {reply.instead}. Allow more output tokens, less reasoning "
        "(reasoning_effort), or start the server without a reasoning parser."
    )
