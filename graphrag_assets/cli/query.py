"""`query`: ask the published index."""

import enum
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from graphrag_assets.query import AnswerStream, GraphRAG, answer_to_json, answer_to_markdown


class Output(enum.Enum):
    """What is printed, and when."""

    CONTEXT = "the context alone"
    JSON = "the answer as JSON"
    STREAM = "the answer as it comes, then its citations"
    MARKDOWN = "the answer with its citations, formatted"

    @classmethod
    def of(cls, stream: bool | None) -> "Output":
        """As it comes, if that is wanted, or nothing is said and somebody looks on."""
        return cls.STREAM if stream or (stream is None and sys.stdout.isatty()) else cls.MARKDOWN


def run_query(method: str, question: str, path: Path | None, options: Mapping[str, Any], output: Output) -> None:
    """Print the answer, or only the context it would be given."""
    console = Console()
    rag = GraphRAG(path)
    if output is Output.CONTEXT:
        console.print(rag.context(method, question, **options).text, markup=False, highlight=False, soft_wrap=True)
        return
    stream = rag.stream(method, question, **options)
    if output is Output.STREAM:
        _print_as_it_comes(stream, console)
    elif output is Output.JSON:
        print(answer_to_json(stream.wait()))
    else:
        console.print(Markdown(answer_to_markdown(stream.wait())))


def _print_as_it_comes(stream: AnswerStream[Any], console: Console) -> None:
    with stream:
        for piece in stream:
            console.print(piece, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(Markdown(answer_to_markdown(stream.result, with_answer=False)))
