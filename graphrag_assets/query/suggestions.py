"""Suggests questions that the data answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_assets.contracts.answering import Evidence
from graphrag_assets.errors import InvalidOption
from graphrag_assets.query import local
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import fill
from graphrag_assets.query.fetch import level_reports
from graphrag_assets.query.history import ConversationHistory, History


@dataclass(frozen=True)
class Suggestions:
    """Up to `count` questions to ask after the questions `asked`, the last of which is the newest."""

    asked: Sequence[str]
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise InvalidOption(f"The number of questions is {self.count!r}; it must be a whole number from 1.")

    async def find(self, ask: Ask[local.LocalSearchOptions]) -> list[str]:
        """The questions; from a local search for the newest one, or from the most important reports."""
        if self.asked:
            evidence = (await local.build_context(ask)).evidence
        else:
            evidence = await ask.in_thread(_top_reports, ask)
        questions, usage = await ask.models.answerer.aquestions(self.asked, evidence, self.count, ask.form)
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
