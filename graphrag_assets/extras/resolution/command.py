"""`resolve` (`list`, `accept`, `reject`, `split`, `undo`, `judge`): decide which names are one thing."""

from typing import Literal

import click

from graphrag_assets.assets.index import Index
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.resolution import decide
from graphrag_assets.extras.resolution.judge import judge as judge_candidates
from graphrag_assets.store.decisions import Decision, pair_key, read_decisions
from graphrag_assets.text.words import title_key

_NEXT = "`graphrag-assets index` applies it; `graphrag-assets resolve undo` takes it back."
_CANDIDATES = """
SELECT name_key, other_key, evidence, score, documents, neighbors FROM entity_candidates WHERE evidence <> ''
ORDER BY score DESC, name_key, other_key
"""
_IN_WORDS = {"accept": "is", "reject": "is not", "unsure": "may be", "split": "is split:"}


@click.command()
@click.argument("name", default="")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Number of pairs.")
@click.option("--decided", is_flag=True, help="List the decisions instead.")
def list_(name: str, limit: int, decided: bool) -> None:
    """List pairs of names, or those of NAME, that may be one thing, and that nobody has decided on."""
    console, index, key = Console(), _existing_index(), title_key(name)
    decisions = read_decisions(index.settings.index_folder)
    if decided:
        decisions = [one for one in decisions if key in ("", one.name, one.other)]
        for one in decisions[:limit]:
            console.say(f"{_in_words(one)} ({one.decided_by}{f': {one.reason}' if one.reason else ''})")
        console.say(f"{len(decisions)} decisions")
        return
    # Decisions since the candidates were found are in the file alone.
    kinds = {one.key: one.kind for one in decisions}
    candidates = index.working.read(_CANDIDATES).iter_rows()
    rows = [row for row in candidates if kinds.get(pair_key(row[0], row[1]), "unsure") == "unsure"]
    page = [row for row in rows if key in ("", row[0], row[1])][:limit]
    table = table_of("name", "may be", "evidence", numbers=("score", "documents", "neighbors"))
    for one, other, evidence, score, documents, neighbors in page:
        why = f"{evidence} (unsure)" if pair_key(one, other) in kinds else evidence
        table.add_row(one, other, why, f"{score or 0:.2f}", f"{documents:,}", f"{neighbors:,}")
    print_table(console, table)
    console.say(f"{len(page):,} of {len(rows):,} open candidates")


@click.command()
@click.argument("name")
@click.argument("other")
def accept(name: str, other: str) -> None:
    """Decide that NAME is OTHER, and is shown under that name."""
    _say(decide.accept(Index.from_environment(), name, other))


@click.command()
@click.argument("name")
@click.argument("other")
def reject(name: str, other: str) -> None:
    """Decide that NAME and OTHER are two things; the pair is not proposed again."""
    _say(decide.reject(Index.from_environment(), name, other))


@click.command()
@click.argument("name")
@click.option("--by", type=click.Choice(["type", "documents"]), required=True, help="What tells the things apart.")
@click.option("--documents", multiple=True, help="A pattern of sources, such as 'chemistry/*'. Repeatable.")
@click.option("--as", "other", default="", help="What NAME is in these documents, such as 'Mercury (element)'.")
def split(name: str, by: Literal["type", "documents"], documents: tuple[str, ...], other: str) -> None:
    """Decide that NAME stands for several things: one per type, or per document, or one in some documents."""
    _say(decide.split(Index.from_environment(), name, by, documents, other))


@click.command()
@click.argument("names", nargs=-1)
def undo(names: tuple[str, ...]) -> None:
    """Take back decisions: on two NAMES, on one, or, without a name, the newest one."""
    if len(names) > 2:
        raise click.UsageError("Give two names, one, or none.")
    for one in decide.undo(Index.from_environment(), *names):
        Console().say(f"Taken back: {_in_words(one)}.")
    Console().say("`graphrag-assets index` restores the graph.")


@click.command()
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), help="Number of pairs to judge.")
@click.option("--min-score", default=0.5, show_default=True, help="Of the pairs.")
def judge(limit: int, min_score: float) -> None:
    """Let the chat model decide on open pairs, the highest scores first; it may not be sure. This costs money."""
    console, index = Console(), _existing_index()
    judged = judge_candidates(index, limit, min_score)
    for one in judged.decisions:
        console.say(f"{_in_words(one)}{f': {one.reason}' if one.reason else ''}")
    if judged.error:
        console.say(f"A request failed: {judged.error}")
    used = judged.usage.total
    applied = " `graphrag-assets index` applies them." if judged.decisions else ""
    console.say(
        f"{len(judged.decisions)} decisions, {judged.n_without} pairs without a verdict, {used.calls} calls, "
        f"${used.cost_usd:.4f}.{applied}"
    )


def _existing_index() -> Index:
    index = Index.from_environment()
    if not index.working.path.exists():
        raise StoreError("Nothing is indexed yet, so there are no candidates. Run `graphrag-assets index`.")
    return index


def _say(decision: Decision) -> None:
    Console().say(f"{_in_words(decision)}. {_NEXT}")


def _in_words(decision: Decision) -> str:
    what = decision.other
    if decision.kind == "split":
        what = f"{what} in {', '.join(decision.documents)}" if decision.documents else f"one per {decision.split_by}"
    return f"{decision.name} {_IN_WORDS[decision.kind]} {what}"
