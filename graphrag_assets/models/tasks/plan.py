"""What extraction will ask: the requests that are still to be paid, counted before any is sent."""

from collections.abc import Callable
from dataclasses import dataclass

from graphrag_assets.models.llm.options import ChatRequest
from graphrag_assets.models.prompts import Prompts
from graphrag_assets.models.tasks.chat import prompt_tokens
from graphrag_assets.models.tasks.claims import ClaimOptions, claims_request
from graphrag_assets.models.tasks.extraction import ExtractionOptions, extraction_request
from graphrag_assets.models.tasks.formats import RecordsForm
from graphrag_assets.models.tasks.gleaning import next_round, with_answer
from graphrag_assets.text import count_tokens

Known = Callable[[ChatRequest], RecordsForm | None]
"""The validated answer to a request if it is paid for already, else None."""


@dataclass(frozen=True, slots=True)
class AnswerLength:
    """Expected tokens of an answer: a share of its text's, and a constant; of a gleaning a share of the first's.

    The defaults are rough: a knowledge graph in JSON is about as long as its text. Where the ledger holds answers,
    their own mean is the better basis.
    """

    per_text_token: float = 0.9
    constant: float = 40.0
    gleaning: float = 0.3

    def first(self, text_tokens: int) -> int:
        """Tokens of the first answer."""
        return round(self.per_text_token * text_tokens + self.constant)

    def following(self, text_tokens: int) -> int:
        """Tokens of an answer to a gleaning."""
        return round(self.gleaning * self.first(text_tokens))


@dataclass(frozen=True, slots=True)
class Planned:
    """A request to be paid. `exact`: its prompt tokens are counted; otherwise earlier answers are estimated in it."""

    task: str
    prompt_tokens: int
    completion_tokens: int
    exact: bool


def nothing_known(request: ChatRequest) -> None:
    """A `Known` for an empty ledger."""


def extraction_plan(
    prompts: Prompts,
    text: str,
    options: ExtractionOptions,
    claims: ClaimOptions | None = None,
    known: Known = nothing_known,
    length: AnswerLength = AnswerLength(),
    encoding: str = "o200k_base",
) -> tuple[Planned, ...]:
    """The requests for one text unit that `known` has no answer to.

    The number of calls and the tokens of first requests are exact, by the same rendering as extraction's. A second
    gleaning is counted though it falls away when the first finds nothing: a preview may exceed the bill, not fall
    short of it.
    """
    tokens = count_tokens([text], encoding)[0]
    first = extraction_request(prompts, text, options)
    planned = _rounds(prompts, first, options.max_gleanings, tokens, known, length, encoding)
    if claims is not None:
        first = claims_request(prompts, text, claims)
        planned += _rounds(prompts, first, claims.max_gleanings, tokens, known, length, encoding)
    return tuple(planned)


def _rounds(
    prompts: Prompts,
    first: ChatRequest,
    max_gleanings: int,
    text_tokens: int,
    known: Known,
    length: AnswerLength,
    encoding: str,
) -> list[Planned]:
    request, told = first, 0
    for told in range(max_gleanings + 1):  # follow the conversation as far as it is paid for
        answer = known(request)
        if answer is None:
            break
        if told == max_gleanings or (told and answer.empty):
            return []
        request = next_round(prompts, first.task, request, answer)
    planned: list[Planned] = []
    answers = 0
    for place in range(told, max_gleanings + 1):
        expected = length.following(text_tokens) if place else length.first(text_tokens)
        tokens = prompt_tokens(request, encoding) + answers
        planned.append(Planned(request.task, tokens, expected, exact=place == told))
        answers += expected
        request = with_answer(prompts, first.task, request, "")
    return planned
