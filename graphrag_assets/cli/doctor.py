"""`doctor`: whether each configured model answers, and what extraction finds in a few text units."""

import sys

import click

from graphrag_assets.assets.doctor import UnitYield, check_models, mean_yield, sample_yield
from graphrag_assets.assets.index import Index
from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console

_SHOWN = 8  # characters of a text unit's id
_NOTHING = (
    "Nothing was extracted from these text units, so an index of them would be empty. Use a model that follows the "
    "form of the answers better, allow it more tokens (max_tokens, or num_ctx of Ollama, in "
    "GRAPHRAG_MODEL_PARAMETERS), or set GRAPHRAG_METHOD=fast."
)


@click.command()
@click.option("--texts", type=click.IntRange(min=0), default=0, help="Also extract N text units of the input.")
def doctor(texts: int) -> None:
    """Ask each configured model one tiny question, and show what extraction finds in a few text units."""
    console, index = Console(), Index.from_environment()
    console.say(f"Method: {index.settings.method_in_words}")
    if not _print_models(console, index) or (texts and not _print_yield(console, index, texts)):
        sys.exit(1)


def _print_models(console: Console, index: Index) -> bool:
    with console.status("Asking the models"):
        checked = list(check_models(index.settings))
    if not checked:
        console.say("No model is set: the embedded default needs none.")
        return True
    table = table_of("tasks", "model", "reply", numbers=("tokens", "seconds", "US$"))
    for one in checked:
        reply = "failed" if one.error else one.finding
        table.add_row(one.tasks, one.model, reply, f"{one.tokens:,}", f"{one.seconds:.1f}", f"{one.cost_usd:.6f}")
    print_table(console, table)
    failed = [one for one in checked if one.error]
    for one in failed:
        console.say(f"{one.tasks}: {one.error}")
    return not failed


def _print_yield(console: Console, index: Index, n_texts: int) -> bool:
    with console.status("Extracting text units"):
        found = list(sample_yield(index, n_texts))
    if not found:
        console.say(f"The input folder {index.settings.input_folder} has no text.")
        return False
    counts = ("entities", "relationships", "claims", "invalid records", "tokens", "seconds", "US$")
    table = table_of("text unit", numbers=counts)
    for one in found:
        table.add_row(one.text_unit[:_SHOWN], *_numbers(one))
    table.add_section()
    table.add_row("per text unit", *_numbers(mean_yield(found)))
    print_table(console, table)
    for one in found:
        if one.error:
            console.say(f"{one.text_unit[:_SHOWN]}: {one.error}")
    if any(one.entities for one in found):
        return True
    console.say(_NOTHING)
    return False


def _numbers(one: UnitYield) -> list[str]:
    """The numbers of a row: counts whole, or with one digit where they are means."""
    counts = (one.entities, one.relationships, one.claims, one.invalid, one.tokens)
    return [f"{n:,}" if isinstance(n, int) else f"{n:,.1f}" for n in counts] + [
        f"{one.seconds:.1f}",
        f"{one.cost_usd:.6f}",
    ]
