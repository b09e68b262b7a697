"""`query`: ask the publication, or what to ask it."""

import sys
from pathlib import Path
from typing import Any, Literal

import click
from rich.markdown import Markdown

from graphrag_assets.cli.shared_options import HISTORY, INDEX, filtered, search_options
from graphrag_assets.cli.terminal import Console, write
from graphrag_assets.query import METHODS, Answering, AnswerStream, GraphRAG, answer_to_json, answer_to_markdown
from graphrag_assets.query.query_models import default_options
from graphrag_assets.settings import Settings

_QUESTIONS = "questions"
_HINT = 'The method comes before the question, and ask chooses it: graphrag-assets query ask "{question}"'


class _Query(click.Command):
    """Tells who gives a question without a method, or the method as an option, how to ask."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name != "--method":
                raise
            raise click.UsageError(f"No such option '--method'. {_HINT.format(question='…')}", ctx) from None


class _Method(click.Choice[str]):
    def get_invalid_choice_message(self, value: str, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message} {_HINT.format(question=value if ' ' in value else '…')}"


@click.command(cls=_Query)
@click.argument("method", type=_Method((*METHODS, "ask", _QUESTIONS)))
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
@click.option(
    "--linking",
    type=click.Choice(("names", "model")),
    help="Local, DRIFT, lazy and planned search: how the question is linked to the graph (default: names).",
)
@click.option("--response-type", help='The form of the answer, such as "a list of 3 to 7 points".')
@filtered
@HISTORY
@click.option("--timeout", type=float, help="Timeout of the search in seconds.")
@click.option("--stream/--no-stream", default=None, help="Stream the answer. Default: on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer, its citations and usage as JSON.")
@click.option("--context", is_flag=True, help="Show the context for the model instead of an answer.")
@click.option("--count", type=int, default=5, show_default=True, help="questions: maximum number of questions.")
def query(
    method: Answering | Literal["questions"],
    question: str,
    path: Path | None,
    dynamic: bool,
    hops: int | None,
    stream: bool | None,
    as_json: bool,
    context: bool,
    count: int,
    **others: Any,
) -> None:
    """Ask QUESTION by METHOD: local, global, drift, basic, lazy or planned; ask chooses the method by the question.

    The METHOD questions suggests questions that the data answers: after QUESTION, or to begin with.
    """
    if method == "questions":
        _print_questions(question, count, path, search_options(**others))
        return
    if not question:
        raise click.UsageError("Missing argument 'QUESTION'.")
    options = dynamic_option(method, dynamic) | hops_option(method, hops) | search_options(**others)
    console = Console()
    with GraphRAG(path) as rag:
        if context:
            if method == "ask":
                raise click.UsageError("ask chooses a method when it answers: name one for its context.")
            console.print(rag.context(method, question, **options).text, markup=False, highlight=False, soft_wrap=True)
        elif as_json:
            write(answer_to_json(rag.stream(method, question, **options).wait()) + "\n")
        elif stream or (stream is None and sys.stdout.isatty()):
            _print_stream(rag.stream(method, question, **options), console)
        else:
            console.print(Markdown(answer_to_markdown(rag.stream(method, question, **options).wait())))


def _print_questions(asked: str, count: int, path: Path | None, options: dict[str, Any]) -> None:
    before = [*options.pop("history", ()), *([("user", asked)] if asked else [])]
    with GraphRAG(path) as rag:
        for question in rag.questions(before, count, **options):
            Console().print(question, markup=False, highlight=False, soft_wrap=True)


def hops_option(method: str, hops: int | None) -> dict[str, Any]:
    """The length of paths: an option of local search, and of the local searches of DRIFT beside their defaults."""
    if hops is None:
        return {}
    if method == "drift":
        return {"local": {**default_options(Settings.load())["drift"].get("local", {}), "hops": hops}}
    return {"hops": hops}


def dynamic_option(method: str, dynamic: bool) -> dict[str, Any]:
    """Dynamic selection with its defaults, which may be more than that it is on."""
    return {"dynamic": True} if dynamic and not default_options(Settings.load()).get(method, {}).get("dynamic") else {}


def _print_stream(stream: AnswerStream[Any], console: Console) -> None:
    with stream:
        for piece in stream:
            console.print(piece, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(Markdown(answer_to_markdown(stream.result, with_answer=False)))
