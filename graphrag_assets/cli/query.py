"""`query`: ask the publication, find passages for a question, or questions that it answers."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
import polars as pl
from rich.markdown import Markdown
from rich.text import Text

from graphrag_assets.cli.terminal import INDEX, Console, write
from graphrag_assets.query import (
    METHODS,
    AnswerStream,
    Callbacks,
    Failure,
    GraphRAG,
    answer_to_json,
    answer_to_markdown,
)
from graphrag_assets.query.passages import RANKING_METHODS

_CHARACTERS = 240  # of a passage, on the screen
_HINT = 'The method comes before the question, and ask chooses it: graphrag-assets query ask "{question}"'


class _Method(click.Choice[str]):
    """Tells who gives a question without a method how to ask."""

    def get_invalid_choice_message(self, value: str, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message} {_HINT.format(question=value if ' ' in value else '…')}"


def _metadata(_: click.Context, option: click.Parameter, pairs: Sequence[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{pair!r} must be KEY=VALUE, such as topic=standards.", param=option)
        values.setdefault(key, []).append(value)
    return values


def _turns(_: click.Context, option: click.Parameter, file: TextIO | None) -> Any:
    try:
        turns = json.load(file) if file else None
    except ValueError as error:
        raise click.BadParameter(f"The file cannot be read as JSON: {error}", param=option) from None
    if turns is not None and not isinstance(turns, list):
        raise click.BadParameter("The file must hold a JSON list of turns.", param=option)
    return turns


@click.command()
@click.argument("method", type=_Method((*METHODS, "ask", "retrieve", "questions")))
@click.argument("question", default="")
@INDEX
@click.option(
    "--level",
    "--community-level",
    "community_level",
    type=int,
    help="Level of communities, 0 being the coarsest. Global search reads this level (default: 2); local search and "
    "DRIFT use reports down to it (default: all).",
)
@click.option("--dynamic", is_flag=True, help="Global search: select communities by rating their reports.")
@click.option("--hops", type=int, help="Local search and DRIFT: maximum length of paths between entities, 1 to 4.")
@click.option("--budget", type=int, help="Lazy search: maximum number of text units that are tested (default: 100).")
@click.option("--response-type", help='The form of the answer, such as "a list of 3 to 7 points".')
@click.option("--batch", "batches", multiple=True, help="Search this batch only; may be given several times.")
@click.option("--document", "documents", multiple=True, help="Search this document (title, source or id) only.")
@click.option(
    "--filter",
    "metadata",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_metadata,
    help="Search documents with this value of their metadata only; several values of a key are alternatives.",
)
@click.option("--as-of", metavar="DATE", help="Search documents of this date or an earlier one only.")
@click.option("--since", metavar="DATE", help="Search documents of this date or a later one only.")
@click.option(
    "--entity-type", "entity_types", multiple=True, help="Only entities of this type; may be given several times."
)
@click.option(
    "--relationship-type",
    "relationship_types",
    multiple=True,
    help="Only relationships of this type; may be given several times.",
)
@click.option(
    "--history",
    type=click.File(encoding="utf-8"),
    callback=_turns,
    help='JSON file with earlier turns: [{"role": "user", "content": "…"}, …].',
)
@click.option("--timeout", type=float, help="Timeout of the search in seconds.")
@click.option("--stream/--no-stream", default=None, help="Stream the answer. Default: on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer, its citations and usage as JSON.")
@click.option("--context", is_flag=True, help="Show the context for the model instead of an answer.")
@click.option("--count", type=int, help="Maximum number of passages of retrieve (10), or of questions (5).")
@click.option(
    "--ranking",
    type=click.Choice(RANKING_METHODS),
    default="graph",
    show_default=True,
    help="retrieve: how passages are ranked. text: by words and vectors; words: BM25.",
)
def query(
    method: Any,
    question: str,
    path: Path | None,
    dynamic: bool,
    hops: int | None,
    stream: bool | None,
    as_json: bool,
    context: bool,
    count: int | None,
    ranking: str,
    **others: Any,
) -> None:
    """Ask QUESTION by METHOD; ask chooses the method by the question.

    The METHOD retrieve shows the passages that match QUESTION best, without an answer. The METHOD questions suggests
    questions that the data answers: after QUESTION, or to begin with.
    """
    callbacks = _PrintsErrors()
    options = {name: value for name, value in others.items() if value not in (None, (), {}, [])}
    if method == "questions":
        _print_questions(question, count or 5, path, options | {"callbacks": callbacks})
        return
    if not question:
        raise click.UsageError("Missing argument 'QUESTION'.")
    if method == "retrieve":
        options |= {"method": ranking, "callbacks": callbacks, **({"k": count} if count else {})}
        _print_passages(GraphRAG(path).retrieve(question, **options), as_json)
        return
    options |= {"dynamic": True} if dynamic else {}
    if hops is not None:  # an option of local search, and of the local searches of DRIFT
        options |= {"local": {"hops": hops}} if method == "drift" else {"hops": hops}
    console = Console()
    with GraphRAG(path) as rag:
        if context:
            if method == "ask":
                raise click.UsageError("ask chooses a method when it answers: name one for its context.")
            console.print(
                rag.context(method, question, **options, callbacks=callbacks).text,
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        elif as_json:
            write(answer_to_json(rag.search(method, question, **options)) + "\n")
        elif stream or (stream is None and sys.stdout.isatty()):
            _print_stream(rag.stream(method, question, **options), console)
        else:
            console.print(Markdown(answer_to_markdown(rag.search(method, question, **options))))


class _PrintsErrors(Callbacks):
    def on_error(self, failure: Failure) -> None:
        Console(stderr=True).print(failure.error, markup=False, highlight=False, soft_wrap=True)


def _print_questions(question: str, count: int, path: Path | None, options: dict[str, Any]) -> None:
    before = [*options.pop("history", ()), *([("user", question)] if question else [])]
    with GraphRAG(path) as rag:
        for question in rag.questions(before, count, **options):
            Console().print(question, markup=False, highlight=False, soft_wrap=True)


def _print_passages(passages: pl.DataFrame, as_json: bool) -> None:
    if as_json:
        write(passages.write_json() + "\n")
        return
    if passages.is_empty():
        Console(stderr=True).print("No passage contains a word of the question.")
    for row in passages.iter_rows(named=True):
        Console().print(_passage(row), soft_wrap=True)


def _passage(row: Mapping[str, Any]) -> Text:
    """Return a passage with its document and place."""
    place = f", characters {row['start_char']}-{row['end_char']}" if row["start_char"] is not None else ""
    passage = Text.assemble((f"{row['rank']}. {row['document'] or ''}", "bold"), f"\n{row['source']}{place}\n")
    if row["about"]:
        passage.append(f"found through: {', '.join(row['about'])}\n", "italic")
    text = " ".join(row["text"].split())
    return passage.append(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS].rstrip()} …").append("\n")


def _print_stream(stream: AnswerStream, console: Console) -> None:
    with stream:
        for piece in stream:
            console.print(piece, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(Markdown(answer_to_markdown(stream.result, with_answer=False)))
