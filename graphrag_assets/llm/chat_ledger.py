"""Chat answers in the ledger: their keys, their rows, and whether a stored answer is still valid.

A request of indexing without a valid answer has a row, too, whose key follows from the request's: after two runs it is
given up, because a model that has failed twice fails again, and is paid each time.
"""

import uuid
from dataclasses import replace

from graphrag_assets.contracts.records import GIVEN_UP
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.chat_parameters import ChatParameters
from graphrag_assets.llm.chat_replies import completion_of
from graphrag_assets.llm.ledger import Entry, Hit, Ledger, canonical, key_of
from graphrag_assets.llm.model_errors import GivenUp, InvalidAnswer
from graphrag_assets.llm.model_options import SAME_ANSWER, ChatRequest, Completion

_RUNS = 2
"""A request that so many runs got no valid answer to is given up."""


class ChatLedger:
    """The answers of one chat model in a ledger; those from before `not_before` (ISO time, UTC) are not used."""

    def __init__(self, ledger: Ledger, model: str, parameters: ChatParameters, not_before: str | None):
        self._ledger = ledger
        self._provider, self._model = provider.provider_of(model)
        self._parameters = parameters
        self._not_before = not_before

    def key(self, request: ChatRequest) -> str:
        """The ledger's key: everything that determines the answer; neither address nor API key nor run."""
        schema = structured_output.schema_text(request.response_model) if request.response_model else None
        answering = {name: value for name, value in self._parameters.of(request).items() if name not in SAME_ANSWER}
        return key_of("chat", request.task, self._provider, self._model, answering, request.messages, schema)

    def valid(self, request: ChatRequest, hit: Hit | None) -> Completion | None:
        """The stored answer, unless it is too old or not valid for the response model, which may have changed."""
        if hit is None or self._is_too_old(hit):
            return None
        text = hit.response or ""
        usage = Usage(prompt_tokens=hit.prompt_tokens, completion_tokens=hit.completion_tokens)
        if request.response_model is None:
            return Completion(text, usage=usage, from_ledger=True)
        try:
            parsed = structured_output.parse(text, request.response_model, request.may_say_nothing)
        except InvalidAnswer:
            return None
        return replace(completion_of(text, parsed, usage), from_ledger=True)

    def _is_too_old(self, hit: Hit) -> bool:
        return bool(self._not_before and hit.created_at < self._not_before)

    async def put(
        self, request: ChatRequest, key: str, text: str, usage: Usage, seconds: float, replace: bool = False
    ) -> None:
        """Store a valid answer; that of a request with parts as the answers of its parts."""
        if not request.parts:
            await self._ledger.put(self._entry(key, "chat", request, text, usage, seconds), replace=replace)
        elif entries := self._entries_of_parts(request, text, usage, seconds):
            # Replaced: what another process may have stored meanwhile was paid for, too.
            await self._ledger.put(*entries, replace=True)
        else:
            await self.put_invalid(request, usage, seconds)

    async def given_up(self, key: str) -> GivenUp | None:
        """Why the request with this key is not sent again; None if it is."""
        failures = await self._failures(key)
        return GivenUp(failures[-1].response or "") if len(failures) == _RUNS else None

    async def put_failure(
        self, request: ChatRequest, key: str, error: InvalidAnswer, usage: Usage, seconds: float
    ) -> InvalidAnswer:
        """Record that a run got no valid answer, and what the last one has cost; returns the error to raise."""
        if not request.run_id:  # of a question, which its user may ask again
            await self.put_invalid(request, usage, seconds)
            return error
        number = min(len(await self._failures(key)), _RUNS - 1)
        if number == _RUNS - 1:
            error = GivenUp(f"{error} {GIVEN_UP}")
        entry = self._entry(_failure_key(key, number), "invalid", request, str(error), usage, seconds)
        await self._ledger.put(entry, replace=True)
        return error

    async def _failures(self, key: str) -> list[Hit]:
        hits = await self._ledger.get_many([_failure_key(key, number) for number in range(_RUNS)])
        return [hit for hit in hits.values() if not self._is_too_old(hit)]

    async def put_invalid(self, request: ChatRequest, usage: Usage, seconds: float) -> None:
        """Record what an answer without use has cost."""
        await self._ledger.put(self._entry(uuid.uuid4().hex, "invalid", request, None, usage, seconds))

    def _entries_of_parts(self, request: ChatRequest, text: str, usage: Usage, seconds: float) -> list[Entry]:
        """An entry for each part that is answered, with its share, by length, of tokens, cost and time."""
        if request.response_model is None or request.split is None:
            raise TypeError("A request with parts needs a response model and a function that splits its answer.")
        answers = request.split(structured_output.parse(text, request.response_model).value)
        lengths = {
            place: len(answer) + sum(len(message["content"]) for message in request.parts[place].messages)
            for place, answer in answers.items()
        }
        entries, used, left = list[Entry](), usage, sum(lengths.values())
        for place, answer in answers.items():
            # The rest is divided again each time, so that the sums are those of the whole.
            share, left = lengths[place] / left, left - lengths[place]
            part, own = request.parts[place], _share(used, share)
            used = replace(
                used,
                prompt_tokens=used.prompt_tokens - own.prompt_tokens,
                cached_tokens=used.cached_tokens - own.cached_tokens,
                completion_tokens=used.completion_tokens - own.completion_tokens,
                cost_usd=used.cost_usd - own.cost_usd,
            )
            time_of_part = seconds * share
            seconds -= time_of_part
            entries.append(self._entry(self.key(part), "chat", part, answer, own, time_of_part))
        return entries

    def _entry(
        self, key: str, kind: str, request: ChatRequest, response: str | None, usage: Usage, seconds: float
    ) -> Entry:
        return Entry(
            key=key,
            kind=kind,
            task=request.task,
            provider=self._provider,
            model=self._model,
            parameters=canonical(self._parameters.of(request)),
            response=response,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
            seconds=seconds,
            batch=request.batch,
            unit=request.unit,
            run_id=request.run_id,
        )


def _failure_key(key: str, number: int) -> str:
    """The ledger's key of the row for the failure of this number, from 0, of a request."""
    return key_of("failure", key, number)


def _share(usage: Usage, share: float) -> Usage:
    """A share of tokens, rounded, and of cost."""
    return Usage(
        prompt_tokens=round(usage.prompt_tokens * share),
        cached_tokens=round(usage.cached_tokens * share),
        completion_tokens=round(usage.completion_tokens * share),
        cost_usd=usage.cost_usd * share,
    )
