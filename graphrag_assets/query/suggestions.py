"""Suggests questions that the data answers."""

from collections.abc import Sequence

from graphrag_assets.contracts.answering import Evidence
from graphrag_assets.errors import InvalidOption
from graphrag_assets.query import local
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import fill
from graphrag_assets.query.fetch import level_reports
from graphrag_assets.query.history import ConversationHistory, History


async def suggest(ask: Ask[local.LocalSearchOptions], asked: Sequence[str], count: int) -> list[str]:
    """Up to `count` questions to ask after the questions `asked`, the last of which is the newest.

    They come from a local search for that one, or else from the most important reports.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidOption(f"The number of questions is {count!r}; it must be a whole number from 1.")
    if asked:
        evidence = (await local.build_context(ask)).evidence
    else:
        evidence = await ask.in_thread(_top_reports, ask)
    questions, usage = await ask.models.answerer.aquestions(asked, evidence, count, ask.form)
    ask.trace.add("questions", usage)
    return list(questions)


def split_history(given: History | str) -> tuple[list[str], ConversationHistory]:
    """The questions of a conversation, and the turns before the last question."""
    turns = [given] if isinstance(given, str) else given
    if not isinstance(turns, ConversationHistory):
        turns = [("user", turn) if isinstance(turn, str) else turn for turn in turns or ()]
    history = ConversationHistory.of(turns)
    places = [place for place, turn in enumerate(history.turns) if turn.role == "user"]
    before = ConversationHistory(history.turns[: max(places, default=0)])
    return [history.turns[place].content for place in places], before


def _top_reports(ask: Ask[local.LocalSearchOptions]) -> Evidence:
    reports = level_reports(ask.reader, 0, ask.scope).with_columns(full_content="content")
    return fill(local.REPORTS, reports, ask.options.max_context_tokens).evidence
