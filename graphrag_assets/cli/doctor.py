"""`doctor`: whether each configured model answers."""

import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import click

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.settings import Settings, Use


class CheckedModel(NamedTuple):
    """A model, its tasks, and what its reply showed, or the error; with what the question used."""

    tasks: str
    model: str
    finding: str
    error: str = ""
    tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0


@click.command()
def doctor() -> None:
    """Ask each configured model one tiny question."""
    console, settings = Console(), Settings.load()
    console.say(f"Method: {settings.method_in_words}")
    with console.status("Asking the models"):
        checked = list(check_models(settings))
    if not checked:
        console.say("No model is set: the embedded default needs none.")
        return
    table = table_of("tasks", "model", "reply", numbers=("tokens", "seconds", "US$"))
    for one in checked:
        reply = "failed" if one.error else one.finding
        table.add_row(one.tasks, one.model, reply, f"{one.tokens:,}", f"{one.seconds:.1f}", f"{one.cost_usd:.6f}")
    print_table(console, table)
    failed = [one for one in checked if one.error]
    for one in failed:
        console.say(f"{one.tasks}: {one.error}")
    if failed:
        sys.exit(1)


def check_models(settings: Settings) -> Iterator[CheckedModel]:
    """Ask each configured model one tiny question: those of indexing, and the one that answers questions."""
    if settings.embeds_locally:
        yield _check_local_embeddings(settings)
    tasks: dict[Use, list[str]] = {"extraction": settings.model_tasks} if settings.model_tasks else {}
    if settings.model_of("query"):
        tasks["query"] = ["questions"]
    if not tasks and not settings.embeds_remotely:
        return
    from graphrag_assets.llm.event_loop import wait_for
    from graphrag_assets.llm.model_checks import model_checks  # imports litellm
    from graphrag_assets.llm.model_errors import ModelError

    for check in model_checks(settings, tasks):
        finding, error, began = "", "", time.monotonic()
        try:
            finding = wait_for(check.ask())
        except ModelError as problem:
            error = str(problem)
        used = check.usage.total
        tokens = used.prompt_tokens + used.completion_tokens
        seconds = time.monotonic() - began
        yield CheckedModel(", ".join(check.tasks), check.options.where, finding, error, tokens, seconds, used.cost_usd)


def _check_local_embeddings(settings: Settings) -> CheckedModel:
    from graphrag_assets.embedded import encoder_of

    began = time.monotonic()
    try:
        (vector,) = encoder_of(settings.embedding_model).embed_passages(["ready"])
    except GraphRAGError as problem:
        return CheckedModel("embeddings", settings.embedding_model, "", str(problem))
    finding, seconds = f"{len(vector)} dimensions", time.monotonic() - began
    return CheckedModel("embeddings", settings.embedding_model, finding, seconds=seconds)
