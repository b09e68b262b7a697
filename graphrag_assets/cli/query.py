"""`query`: ask the publication."""

import enum
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.markdown import Markdown

from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.query import AnswerStream, GraphRAG, answer_to_json, answer_to_markdown


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


def _print_stream(stream: AnswerStream[Any], console: Console) -> None:
    with stream:
        for piece in stream:
            console.print(piece, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(Markdown(answer_to_markdown(stream.result, with_answer=False)))
