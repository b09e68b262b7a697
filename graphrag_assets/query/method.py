"""`rag.local` and the other methods: callables with the signature and the documentation of a search."""

import functools
import inspect
import textwrap
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from graphrag_assets.query.results import Answer
from graphrag_assets.query.search import Search
from graphrag_assets.query.streaming import AnswerStream, AsyncAnswerStream

Options = ParamSpec("Options")
Result = TypeVar("Result")


Steps = Callable[[Search[Any]], Awaitable[Result]]


class _Call(Generic[Options, Result]):
    """Base of the synchronous and asynchronous methods: turns a call into a `Search`.

    Args:
        name: of the search method.
        options: the dataclass whose fields are the keyword arguments.
        steps: the function of the search; its docstring is the documentation.
        begin: `GraphRAG._begin`.
        defaults: values of options that are not given, by name.
    """

    prefix = ""

    def __init__(
        self,
        name: str,
        options: Callable[Options, Any],
        steps: Steps[Result],
        begin: Callable[..., Search[Any]],
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._steps, self._begin = name, steps, begin
        self._options: Callable[Options, Any] = functools.partial(options, **defaults or {})
        self.__name__ = self.__qualname__ = self.prefix + name
        self.__signature__ = _with_defaults(_signature(options), defaults or {})
        self.__doc__ = (
            f"{_usage(self.__name__, self.__signature__)}\n\n{inspect.getdoc(steps)}\n\n{_documentation(options)}"
        )

    def __repr__(self) -> str:
        return f"{self.__name__}(question, *, …)"


class Method(_Call[Options, Result]):
    """A search for synchronous callers."""

    def __call__(self, question: str, *args: Options.args, **options: Options.kwargs) -> Result:
        return AnswerStream[Result](
            self._begin(self._name, self._steps, question, self._options(*args, **options))
        ).wait()


class AsyncMethod(_Call[Options, Result]):
    """A search for asynchronous callers; if the caller is canceled, so is the search."""

    prefix = "a"

    async def __call__(self, question: str, *args: Options.args, **options: Options.kwargs) -> Result:
        return await AsyncAnswerStream[Result](
            self._begin(self._name, self._steps, question, self._options(*args, **options))
        ).wait()


class AnswerMethod(Method[Options, Answer]):
    """A search that answers, in one piece or in several."""

    def stream(self, question: str, *args: Options.args, **options: Options.kwargs) -> AnswerStream[Answer]:
        """The answer in pieces of text; after the last piece, `result` of the stream is the complete answer."""
        return AnswerStream(self._begin(self._name, self._steps, question, self._options(*args, **options), True))


class AsyncAnswerMethod(AsyncMethod[Options, Answer]):
    """`AnswerMethod` for asynchronous callers."""

    def stream(self, question: str, *args: Options.args, **options: Options.kwargs) -> AsyncAnswerStream[Answer]:
        """The answer in pieces of text; after the last piece, `result` of the stream is the complete answer."""
        return AsyncAnswerStream(self._begin(self._name, self._steps, question, self._options(*args, **options), True))


@functools.cache
def _signature(options: Callable[..., Any]) -> inspect.Signature:
    """The signature of a search with these options."""
    hints = get_type_hints(options)  # without pydantic's constraints
    question = inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
    own = inspect.signature(options).parameters.values()
    return inspect.Signature([question, *(p.replace(annotation=hints[p.name]) for p in own)])


def _with_defaults(signature: inspect.Signature, defaults: Mapping[str, Any]) -> inspect.Signature:
    parameters = signature.parameters.values()
    return signature.replace(parameters=[p.replace(default=defaults.get(p.name, p.default)) for p in parameters])


def _usage(name: str, signature: inspect.Signature) -> str:
    """The signature without types: `help` shortens the one of an object."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return textwrap.fill(f"{name}{inspect.Signature(plain)}", 100, subsequent_indent="    ", break_long_words=False)


@functools.cache
def _documentation(options: Callable[..., Any]) -> str:
    """The documentation of the options, from the classes that declare them."""
    classes = [kind for kind in reversed(inspect.getmro(options)) if "Args:" in (kind.__dict__.get("__doc__") or "")]  # type: ignore[arg-type]
    return "\n\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in classes)
