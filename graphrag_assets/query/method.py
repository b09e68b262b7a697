"""`rag.local` and the other methods: callables with the signature and the documentation of a search."""

import copy
import functools
import inspect
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, get_type_hints

from graphrag_assets.errors import InvalidOption, QueryError
from graphrag_assets.query.ask import Ask, SearchMethod, Tools
from graphrag_assets.query.context import Context
from graphrag_assets.query.results import Answer, Draft
from graphrag_assets.query.streaming import AnswerStream, AsyncAnswerStream

Options = ParamSpec("Options")
Result = TypeVar("Result")
Steps = Callable[[Ask[Any]], Awaitable[Result]]


class HasTools(Protocol):
    """What methods are attributes of: `GraphRAG`."""

    tools: Tools


class _Method(Generic[Options, Result]):
    """Base of the synchronous and asynchronous methods: an attribute of `GraphRAG`.

    Args:
        name: of the search method.
        options: the dataclass whose fields are the keyword arguments.
        steps: the function of the search; its docstring is the documentation.
    """

    prefix = ""
    _tools: Tools
    __signature__: inspect.Signature

    def __init__(self, name: str, options: Callable[Options, Any], steps: Steps[Result]) -> None:
        self._name, self._options, self._steps = name, options, steps
        self.__name__ = self.__qualname__ = self.prefix + name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, rag: HasTools | None, owner: type | None = None) -> Self:
        """The method of `rag`."""
        if rag is None:
            return self
        bound = copy.copy(self)
        bound._tools = rag.tools
        bound.__signature__ = signature = _signature(self._options)
        usage, search = _usage(self.__name__, signature), inspect.getdoc(self._steps)
        bound.__doc__ = f"{usage}\n\n{search}\n\n{_documentation(self._options)}"
        vars(rag)[self._attribute] = bound  # `rag` has its method from now on
        return bound

    def __repr__(self) -> str:
        return f"{self.__name__}(question, *, …)"


class Method(_Method[Options, Result]):
    """A search for synchronous callers."""

    def __call__(self, question: str, *args: Options.args, **options: Options.kwargs) -> Result:
        ask = Ask(self._tools, self._name, self._steps, question, options_of(self._options, args, options))
        return AnswerStream[Result](ask).wait()


class AsyncMethod(_Method[Options, Result]):
    """A search for asynchronous callers; if the caller is canceled, so is the search."""

    prefix = "a"

    async def __call__(self, question: str, *args: Options.args, **options: Options.kwargs) -> Result:
        ask = Ask(self._tools, self._name, self._steps, question, options_of(self._options, args, options))
        return await AsyncAnswerStream[Result](ask).wait()


class AnswerMethod(Method[Options, Answer]):
    """A search that answers, in one piece or in several."""

    def stream(self, question: str, *args: Options.args, **options: Options.kwargs) -> AnswerStream[Answer]:
        """The answer in pieces of text; after the last piece, `result` of the stream is the complete answer."""
        return AnswerStream(
            Ask(self._tools, self._name, self._steps, question, options_of(self._options, args, options), True)
        )


class ContextMethod(AnswerMethod[Options]):
    """A search that answers from a context, which can be had without an answer."""

    def __init__(self, name: str, options: Callable[Options, Any], steps: Steps[Answer], context: Steps[Context]):
        super().__init__(name, options, steps)
        self._context = context

    def context(self, question: str, *args: Options.args, **options: Options.kwargs) -> Context:
        """The context from which the search would answer; of DRIFT, its primer's reports.

        Global search, DRIFT, lazy and planned search read their sections in separate calls, each within
        `max_context_tokens`. Lazy search tests text units for it, and planned search takes its steps.
        """
        given = options_of(self._options, args, options)
        return AnswerStream[Context](Ask(self._tools, self._name, self._context, question, given)).wait()


class AsyncAnswerMethod(AsyncMethod[Options, Answer]):
    """`AnswerMethod` for asynchronous callers."""

    def stream(self, question: str, *args: Options.args, **options: Options.kwargs) -> AsyncAnswerStream[Answer]:
        """The answer in pieces of text; after the last piece, `result` of the stream is the complete answer."""
        ask = Ask(self._tools, self._name, self._steps, question, options_of(self._options, args, options), True)
        return AsyncAnswerStream(ask)


class AsyncContextMethod(AsyncAnswerMethod[Options]):
    """`ContextMethod` for asynchronous callers."""

    def __init__(self, name: str, options: Callable[Options, Any], steps: Steps[Answer], context: Steps[Context]):
        super().__init__(name, options, steps)
        self._context = context

    async def context(self, question: str, *args: Options.args, **options: Options.kwargs) -> Context:
        """See `ContextMethod.context`."""
        given = options_of(self._options, args, options)
        return await AsyncAnswerStream[Context](Ask(self._tools, self._name, self._context, question, given)).wait()


def options_of(kind: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The options. A ValueError that is raised while pydantic validates would become pydantic's own."""
    try:
        return kind(*args, **options)
    except QueryError as error:
        raise InvalidOption(str(error)) from None


def answering(method: SearchMethod[Options]) -> tuple[ContextMethod[Options], AsyncContextMethod[Options]]:
    """A search method, for synchronous and for asynchronous callers."""
    parts = (method.name, method.options, as_answer(method.answer), method.context)
    return ContextMethod(*parts), AsyncContextMethod(*parts)


def as_answer(answer: Steps[Draft]) -> Steps[Answer]:
    """The steps of an answer, from those of its draft."""

    @functools.wraps(answer)
    async def steps(ask: Ask[Any]) -> Answer:
        return await ask.finish(await answer(ask))

    return steps


@functools.cache
def _signature(options: Callable[..., Any]) -> inspect.Signature:
    hints = get_type_hints(options)  # without pydantic's constraints
    question = inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    own = inspect.signature(options).parameters.values()
    return inspect.Signature([question, *(p.replace(annotation=hints[p.name]) for p in own)])


def _usage(name: str, signature: inspect.Signature) -> str:
    """The signature without types: `help` shortens the one of an object."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return textwrap.fill(f"{name}{inspect.Signature(plain)}", 100, subsequent_indent="    ", break_long_words=False)


@functools.cache
def _documentation(options: Callable[..., Any]) -> str:
    """The documentation of the options, from the classes that declare them."""
    classes = [kind for kind in reversed(inspect.getmro(options)) if "Args:" in (kind.__dict__.get("__doc__") or "")]  # type: ignore[arg-type]
    return "\n\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in classes)
