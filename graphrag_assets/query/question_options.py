"""Options that all methods have in common."""

from dataclasses import fields
from typing import Annotated, Literal, Self

from pydantic import Field, InstanceOf, PlainValidator, model_validator
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import Usage
from graphrag_assets.errors import QueryError
from graphrag_assets.query import option_types as types
from graphrag_assets.query.filters import Filter, Metadata
from graphrag_assets.query.history import ConversationHistory, History
from graphrag_assets.query.option_types import Options
from graphrag_assets.query.results import Failure


class Callbacks:
    """The functions that a search calls. Here they do nothing: pass an object of a subclass that overrides some.

    They are called in the thread of the models' event loop, which waits for them: they must return at once. An error
    that one raises ends the search.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def on_call(self, category: str, usage: Usage) -> None:
        """Take what an answer of a model used, by category as in `Answer.usage`; one from the ledger has no calls."""

    def on_error(self, failure: Failure) -> None:
        """Take a call that has failed, or a name of the filter is missing, and the search goes on without it."""


@dataclass(frozen=True, kw_only=True)
class QuestionOptions(Options):
    """Options of every question, answered or not.

    Args:
        history: earlier turns of the conversation, without which the question is rewritten to be understood.
        conversation_history_max_turns: number of earlier questions that are read, the newest.
        filter: limits the search to a part of the index.
        batches, documents, metadata, entity_types, relationship_types, as_of, since: a filter given as single options.
            None is no condition; an empty list allows nothing.
        rights: what the caller may see: a filter looks for its names only there.
        timeout: seconds after which the search ends with a QueryError that says what was done.
        callbacks: functions to call during the search; see `Callbacks`.
    """

    history: Annotated[History, PlainValidator(ConversationHistory.of)] = None
    conversation_history_max_turns: types.Count = 5
    filter: Annotated[InstanceOf[Filter] | None, Field(description="Filter(…)")] = None
    batches: types.OptionalTexts = None
    documents: types.OptionalTexts = None
    metadata: Metadata = None
    entity_types: types.OptionalTexts = None
    relationship_types: types.OptionalTexts = None
    as_of: types.LastDay = None
    since: types.FirstDay = None
    rights: Annotated[InstanceOf[Filter] | None, Field(description="Filter(…)")] = None
    timeout: types.Seconds = None
    callbacks: Annotated[InstanceOf[Callbacks], Field(description="an object of Callbacks or a subclass")] = Callbacks()

    @model_validator(mode="after")
    def _one_filter(self) -> Self:
        names = [f.name for f in fields(Filter) if getattr(self, f.name) is not None]
        if names and self.filter is not None:
            raise QueryError(f"Give {', '.join(names)} inside the filter, or without one.")
        return self

    @property
    def combined_filter(self) -> Filter:
        """The filter, or the one that the single options form."""
        return self.filter or Filter(**{f.name: getattr(self, f.name) for f in fields(Filter)})


@dataclass(frozen=True, kw_only=True)
class CommonOptions(QuestionOptions):
    """Options of every method that answers.

    Args:
        response_type: the form of the answer in free text, such as "a list of 3 to 7 points".
        language: language of the answer; None: the language of the question.
        max_context_tokens: maximum number of tokens that one call reads.
    """

    response_type: types.Text = "multiple paragraphs"
    language: types.OptionalText = None
    max_context_tokens: types.PositiveCount = 12_000


@dataclass(frozen=True, kw_only=True)
class LinkingOptions(Options):
    """How a question is linked to the graph.

    Args:
        linking: names: by the names and words of the question. model: a request to the model gives the names that the
            question means, and keywords for particulars and for themes; without a model, as names.
    """

    linking: Annotated[Literal["names", "model"], Field(description="'names' or 'model'")] = "names"
