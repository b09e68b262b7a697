"""Which of the ledger's answers an index depends on: models that answer from the ledger alone."""

from collections.abc import Sequence

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.indexing.provider_models import without_sending
from graphrag_assets.llm.backend import chat_model
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.model_errors import GivenUp
from graphrag_assets.llm.model_options import ChatRequest, Completion
from graphrag_assets.settings import Settings, Use


class NotStoredError(Exception):
    """The answer to a request is not in the ledger, and nothing is sent."""


class LedgerOnlyChat:
    """A `Chat` that answers from the ledger alone, and collects the keys of its answers in `keys`."""

    def __init__(self, paid: ChatModel, keys: set[str]):
        self.paid, self.keys = paid, keys

    async def known(self, request: ChatRequest) -> Completion | None:
        """The stored answer, or None."""
        return await self.paid.known(request)

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        """Why the request would not be sent; None if it would."""
        return await self.paid.given_up(request)

    async def complete(self, request: ChatRequest) -> Completion:
        """The stored answer.

        Raises:
            NotStoredError: there is none.
        """
        if answer := await self.paid.known(request):
            self.keys.add(self.paid.key(request))
            return answer
        raise NotStoredError(f"no answer to this {request.task} is stored")


def ledger_only_models(settings: Settings, keys: set[str], profile: PromptProfile | None = None) -> IndexingModels:
    """The models of the settings, which send nothing and add the keys of the answers they find to `keys`."""

    def look_up(model: EmbeddingModel, texts: Sequence[str]) -> None:
        keys.update(wait_for(model.stored_keys(texts)))

    def chats(use: Use) -> LedgerOnlyChat:
        return LedgerOnlyChat(chat_model(settings, use=use), keys)

    return without_sending(settings, chats, look_up, profile=profile)
