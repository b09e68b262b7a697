"""A chat model with scripted answers, which are validated as those of any other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from graphrag_assets.contracts.usage import Usage
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.llm.structured_output import parse

Said = str | Exception


@dataclass
class ScriptedChat:
    """Answers by a function of the request, or by a list in the order in which answers are wanted.

    Each call is billed as 100 tokens of prompt, a token per word of the answer, and a dollar.
    """

    script: Callable[[ChatRequest], Said] | Sequence[Said]
    requests: list[ChatRequest] = field(default_factory=list)
    answers: dict[str, Completion] = field(default_factory=dict)  # by messages

    async def stored_answer(self, request: ChatRequest) -> Completion | None:
        return self.answers.get(str(request.messages))

    async def given_up(self, request: ChatRequest) -> None:
        """No request is given up."""

    async def complete(self, request: ChatRequest) -> Completion:
        self.requests.append(request)
        said = self.script(request) if callable(self.script) else self.script[len(self.requests) - 1]
        if isinstance(said, Exception):
            raise said
        usage = Usage(prompt_tokens=100, completion_tokens=len(said.split()), cost_usd=1.0)
        if request.response_model is None:
            return Completion(said, usage=usage)
        answer = replace(parse(said, request.response_model, request.may_say_nothing), usage=usage)
        each = request.split(answer.parsed) if request.split else {}
        self.answers |= {str(request.parts[n].messages): Completion("", one) for n, one in each.items()}
        self.answers[str(request.messages)] = answer
        return answer

    @property
    def tasks(self) -> list[str]:
        return [request.task for request in self.requests]
