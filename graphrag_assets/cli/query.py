"""`query` and `questions`: ask the publication, and what to ask it."""

import enum
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markdown import Markdown

from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.errors import InputError, QueryError
from graphrag_assets.query import AnswerStream, GraphRAG, answer_to_json, answer_to_markdown
from graphrag_assets.query.query_models import default_options


class Output(enum.Enum):
    """The form of the output."""

    CONTEXT = "the context alone"
    JSON = "the answer as JSON"
    STREAM = "the answer in pieces as it is written, then its citations"
    MARKDOWN = "the answer with its citations, formatted"

    @classmethod
    def of(cls, stream: bool | None) -> "Output":
        """Streamed if requested, or by default on a terminal."""
        return cls.STREAM if stream or (stream is None and sys.stdout.isatty()) else cls.MARKDOWN


def run_query(method: str, question: str, path: Path | None, options: Mapping[str, Any], output: Output) -> None:
    """Print the answer, or only its context."""
    console = Console()
    with GraphRAG(path) as rag:
        if output is Output.CONTEXT:
            text = rag.context(method, question, **options).text
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif output is Output.STREAM:
            _print_stream(rag.stream(method, question, **options), console)
        else:
            answer = rag.stream(method, question, **options).wait()
            if output is Output.JSON:
                write(answer_to_json(answer) + "\n")
            else:
                console.print(Markdown(answer_to_markdown(answer)))


def run_questions(asked: Sequence[str], count: int, path: Path | None, options: Mapping[str, Any]) -> None:
    """Print questions to ask after those of the history and `asked`."""
    before = [*options.get("history", ()), *(("user", question) for question in asked)]
    others = {name: value for name, value in options.items() if name != "history"}
    with GraphRAG(path) as rag:
        for question in rag.questions(before, count, **others):
            Console().print(question, markup=False, highlight=False, soft_wrap=True)


def common_options(history: Path | None, metadata: Sequence[str] = (), **filters: Any) -> dict[str, Any]:
    """The options of every search that were given on the command line.

    Raises:
        InputError: the history is no JSON list.
        QueryError: metadata without a key.
    """
    given = {**filters, "metadata": _metadata(metadata), "history": _turns(history) if history else None}
    return {name: value for name, value in given.items() if value}


def hops_option(method: str, hops: int | None) -> dict[str, Any]:
    """The length of paths: an option of local search, and of the local searches of DRIFT beside their defaults."""
    if hops is None:
        return {}
    if method == "drift":
        return {"local": {**default_options()["drift"].get("local", {}), "hops": hops}}
    return {"hops": hops}


def dynamic_option(method: str, dynamic: bool) -> dict[str, Any]:
    """Dynamic selection with its defaults, which may be more than that it is on."""
    return {"dynamic": True} if dynamic and not default_options().get(method, {}).get("dynamic") else {}


def _metadata(pairs: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise QueryError(f"--filter {pair!r} must be KEY=VALUE, such as topic=standards.")
        found.setdefault(key, []).append(value)
    return found


def _turns(file: Path) -> list[Any]:
    try:
        turns = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"The history {file} cannot be read as JSON: {error}.") from None
    if not isinstance(turns, list):
        raise InputError(f'The history {file} must be a list of turns, such as [{{"role": "user", "content": "…"}}].')
    return turns


def _print_stream(stream: AnswerStream[Any], console: Console) -> None:
    with stream:
        for piece in stream:
            console.print(piece, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(Markdown(answer_to_markdown(stream.result, with_answer=False)))
