"""A chat model's reply as a completion, and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_errors import EmptyAnswer, InvalidAnswer, RefusedAnswer, TruncatedAnswer
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.provider import Reply
from graphrag_assets.llm.structured_output import Parsed, parse


class Answer(NamedTuple):
    """One reply as a completion, and what is wrong with it, if anything.

    `guess`: the repair of broken JSON, used only if the second answer is no better; `kept_records` ranks guesses.
    """

    completion: Completion
    problem: InvalidAnswer | None = None
    guess: bool = False
    kept_records: int = 0


def read_answer(reply: Reply, request: ChatRequest, usage: Usage) -> Answer:
    """The reply as its response model, and what is wrong with it."""
    completion = Completion(reply.text, usage=usage)
    try:
        if problem := ending_of(reply):
            raise problem
        if request.response_model is None:
            return Answer(completion)
        parsed = parse(reply.text, request.response_model, request.may_say_nothing)
    except TruncatedAnswer as problem:
        return Answer(replace(completion, text=""), problem)  # half an answer is not shown to the model again
    except InvalidAnswer as problem:
        return Answer(completion, problem)
    completion = completion_of(reply.text, parsed, usage)
    if parsed.doubtful:
        return Answer(completion, InvalidAnswer("It is not valid JSON."), True, parsed.kept_records)
    return Answer(completion)


def completion_of(text: str, parsed: Parsed[Any], usage: Usage) -> Completion:
    """A structured answer as a completion."""
    return Completion(
        text, parsed.value, usage, dropped_records=parsed.dropped_records, guessed=parsed.doubtful or parsed.restored
    )


def best_guess(answers: Sequence[Answer]) -> Answer | None:
    """Of repaired answers, the one with the most records, on a tie the last; None if there are none."""
    guesses = [answer for answer in reversed(answers) if answer.guess]
    return max(guesses, key=lambda guess: guess.kept_records, default=None)


def unusable(name: str, where: str, problem: InvalidAnswer | None) -> InvalidAnswer:
    """The error for a call without a usable answer; `name` and `where` are those of the request and its model."""
    kind = type(problem or InvalidAnswer())
    return kind(f"{name}: {where} gave no usable answer in two attempts. {problem} {_remedy(kind)}")


def flaws(completion: Completion) -> Usage:
    """The losses of a completion, as they are counted in the usage."""
    return Usage(dropped_records=completion.dropped_records, guessed_repairs=int(completion.guessed))


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


def _remedy(kind: type[InvalidAnswer]) -> str:
    if kind is TruncatedAnswer:
        return "Raise the limit of output tokens, or use smaller text units."
    if kind is RefusedAnswer:
        return "Use another model for this text."
    return "Use a model that follows the format better."
