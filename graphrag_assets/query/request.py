"""A question with its options, checked before anything is done."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from graphrag_assets.answering import AnswerOptions
from graphrag_assets.errors import QueryError
from graphrag_assets.query.basic import BasicOptions
from graphrag_assets.query.callbacks import check_callbacks
from graphrag_assets.query.context import Section
from graphrag_assets.query.drift import DriftOptions
from graphrag_assets.query.filters import Filter
from graphrag_assets.query.global_search import GlobalOptions
from graphrag_assets.query.history import ConversationHistory
from graphrag_assets.query.local import LocalOptions
from graphrag_assets.query.options import check_choice, check_flags, check_number, check_text, check_whole
from graphrag_assets.query.passages import RANKING_METHODS, RankingMethod
from graphrag_assets.query.retrieval import Question

METHODS = ("local", "global", "drift", "basic")


@dataclass(frozen=True, slots=True)
class AskOptions:
    """`ask` chooses the method and its options; what is limited here holds for every method."""

    max_context_tokens: int = 12_000

    def __post_init__(self) -> None:
        check_whole(self, "max_context_tokens", least=1)


@dataclass(frozen=True, slots=True)
class RetrieveOptions(BasicOptions):
    """`retrieve` gives the `k` best passages by a ranking: graph, text, words or vectors."""

    method: RankingMethod = "graph"

    def __post_init__(self) -> None:
        check_whole(self, "k", least=1)
        check_choice(self, "method", *RANKING_METHODS)


MethodOptions = LocalOptions | GlobalOptions | DriftOptions | BasicOptions | AskOptions
OPTIONS: Mapping[str, type[MethodOptions]] = {
    "local": LocalOptions,
    "global": GlobalOptions,
    "drift": DriftOptions,
    "basic": BasicOptions,
    "ask": AskOptions,
    "retrieve": RetrieveOptions,
}


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """Options of every method.

    Args:
        response_type: the form of the answer in free text, such as "a list of 3 to 7 points".
        language: of the answer; None: the question's.
        history: what was said before: `ConversationHistory`, or a list of turns. The newest turns are kept, at most
            those of `conversation_history_max_turns` questions, in up to half of the token limit; of the user's
            side only, where `conversation_history_user_turns_only`. They help to find what is meant, too.
        filter: what of the index is searched; in its place `batches`, `documents`, `metadata`, `entity_types`.
        timeout: seconds; after them the search ends with a QueryError that says what had been done.
        callbacks: told of what happens meanwhile; see `Callbacks`.
    """

    response_type: str = "multiple paragraphs"
    language: str | None = None
    history: ConversationHistory = field(default_factory=ConversationHistory)
    conversation_history_max_turns: int = 5
    conversation_history_user_turns_only: bool = True
    filter: Filter | None = None
    timeout: float | None = None
    callbacks: Any = None

    def __post_init__(self) -> None:
        check_text(self, "response_type")
        check_text(self, "language", optional=True)
        object.__setattr__(self, "history", ConversationHistory.of(self.history))
        check_whole(self, "conversation_history_max_turns")
        check_flags(self, "conversation_history_user_turns_only")
        if self.filter is not None and not isinstance(self.filter, Filter):
            raise QueryError(f"The search option filter is {self.filter!r}; it must be Filter(…).")
        if self.timeout is not None:
            check_number(self, "timeout")
            if self.timeout <= 0:
                raise QueryError(f"The search option timeout is {self.timeout!r}; it must be more than 0 seconds.")
        check_callbacks(self.callbacks)


@dataclass(frozen=True)
class Request:
    """A question, the method, and its options."""

    method: str
    question: str
    options: MethodOptions
    common: CommonOptions

    @property
    def retrieval(self) -> Question:
        """What is searched for: the question, and what was asked before, the newest first."""
        earlier = self.common.history.newest(self.common.conversation_history_max_turns, user_turns_only=True)
        return Question("\n".join([self.question, *(turn.content for turn in earlier)]))

    @property
    def history(self) -> Section | None:
        """The turns that go with the question, in half of its token limit at most."""
        common = self.common
        return common.history.section(
            common.conversation_history_max_turns,
            common.conversation_history_user_turns_only,
            self.options.max_context_tokens // 2,
        )

    @property
    def form(self) -> AnswerOptions:
        """The form of the answer; what was said before is added by the search."""
        form = AnswerOptions(response_type=self.common.response_type, language=self.common.language)
        if not isinstance(self.options, GlobalOptions | DriftOptions):
            return form
        words = {name: getattr(self.options, name) for name in _names(AnswerOptions) & _names(type(self.options))}
        return AnswerOptions(**{name: getattr(form, name) for name in _names(AnswerOptions)} | words)


def request(method: str, question: Any, given: Mapping[str, Any]) -> Request:
    """The request that keyword arguments make.

    Raises:
        QueryError: there is no such method or option, or a value is not allowed.
    """
    if method not in OPTIONS:
        raise QueryError(f"There is no search method {method!r}. Choose one of: {', '.join(OPTIONS)}.")
    kind = OPTIONS[method]
    filters = {name: value for name, value in given.items() if name in _names(Filter)}
    common = {name: value for name, value in given.items() if name in _names(CommonOptions)}
    own = {name: value for name, value in given.items() if name not in filters and name not in common}
    if unknown := sorted(own.keys() - _names(kind)):
        known = ", ".join(f.name for f in (*fields(kind), *fields(CommonOptions), *fields(Filter)))
        raise QueryError(f"Unknown search option {', '.join(unknown)}. This method knows: {known}.")
    if filters:
        if common.get("filter") is not None:
            raise QueryError(f"Give {', '.join(filters)} inside of the filter, or without one.")
        common["filter"] = Filter(**filters)
    Question(question)  # says what is wrong with it
    return Request(method, question, kind(**own), CommonOptions(**common))


def _names(kind: type) -> set[str]:
    return {f.name for f in fields(kind)}
