"""The origin of requests of extraction."""

from dataclasses import dataclass

from pydantic import BaseModel

from graphrag_assets.llm.model_errors import stops_the_run
from graphrag_assets.llm.model_options import ChatRequest, Message
from graphrag_assets.llm.task import Chat

__all__ = ["NOWHERE", "Chat", "Origin", "stops_the_run"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a request, recorded in the ledger: batch, row (of the text unit, entity, …) and run."""

    batch: str | None = None
    unit: str | None = None
    run_id: str | None = None

    def request(
        self, task: str, messages: tuple[Message, ...], response_model: type[BaseModel] | None = None
    ) -> ChatRequest:
        """A request of this origin."""
        return ChatRequest(task, messages, response_model, batch=self.batch, unit=self.unit, run_id=self.run_id)


NOWHERE = Origin()
