"""A chat model judges open candidates, by sentences that name both; its verdicts are decisions like those of people."""

import re
import uuid
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any, NamedTuple

from graphrag_assets.assets.index import Index
from graphrag_assets.contracts.usage import UsageMeter
from graphrag_assets.errors import SettingsError
from graphrag_assets.extras.resolution.decide import record
from graphrag_assets.llm.backend import chat_model
from graphrag_assets.llm.event_loop import run_concurrently
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.task import Chat, TaskModel
from graphrag_assets.llm.tasks.verdicts import PAIRS_PER_REQUEST, NameVerdict, verdicts_on
from graphrag_assets.store.decisions import Decision, read_decisions
from graphrag_assets.text.words import sentences, title_key

# Decisions since the candidates were found are in the file alone.
_OPEN = """
SELECT name_key, other_key FROM entity_candidates
ANTI JOIN (SELECT unnest($low::VARCHAR[]) AS low, unnest($high::VARCHAR[]) AS high)
    ON low = least(name_key, other_key) AND high = greatest(name_key, other_key)
WHERE score >= $score AND name_key IN (SELECT title_key FROM entities) AND other_key IN (SELECT title_key FROM entities)
ORDER BY score DESC, name_key, other_key LIMIT $limit
"""
_THINGS = """
WITH wanted AS (SELECT unnest($keys::VARCHAR[]) AS title_key),
things AS (
    SELECT title_key, title, type, description, text_unit_ids[:3] AS ids
    FROM entities SEMI JOIN wanted USING (title_key)
)
SELECT title_key, things.title, type, description,
       list({'text': t.text, 'date': d.document_date} ORDER BY t.id) AS texts
FROM (SELECT * EXCLUDE ids, unnest(ids) AS id FROM things) things JOIN text_units t USING (id)
LEFT JOIN documents d ON d.id = t.document_id GROUP BY ALL
"""
_SENTENCES, _CHARACTERS = 3, 300
_KINDS = {"same": "accept", "different": "reject", "unsure": "unsure"}


class Judged(NamedTuple):
    """The verdicts recorded, how many pairs have none, the first error of a request, and the usage of the model."""

    decisions: list[Decision]
    n_without: int
    error: Exception | None
    usage: UsageMeter


def judge(index: Index, limit: int, min_score: float = 0.0, chat: Chat | None = None) -> Judged:
    """Ask the chat model about open candidates, those of the highest score first, and record its verdicts.

    Raises:
        SettingsError: no chat model is set.
        BudgetExceeded: the budget is used up; verdicts that were paid for are in the ledger.
    """
    settings, run_id = index.settings, str(uuid.uuid4())
    name, meter = settings.model_of("extraction"), UsageMeter()
    if not name:
        raise SettingsError("No chat model is set to judge. Set GRAPHRAG_CHAT_MODEL, or decide by `resolve accept`.")
    if chat is None:
        model = chat_model(settings, run_id, index.keys)
        model.usage = meter
        chat = model
    decided = [one.key[1:] for one in read_decisions(settings.index_folder) if one.kind != "split"]
    decided_pairs = {"low": [low for low, _ in decided], "high": [high for _, high in decided]}
    pairs = index.working.read(_OPEN, {"score": min_score, "limit": limit, **decided_pairs}).rows()
    verdicts, error = _verdicts(
        index, TaskModel(chat, prompts_of(settings, index.profile), run_id=run_id), pairs, meter
    )
    decisions = [
        Decision(_KINDS[one.verdict], *pair, decided_by=name, reason=one.reason)  # type: ignore[arg-type]
        for pair, one in verdicts.items()
    ]
    return Judged(record(index, decisions), len(pairs) - len(verdicts), error, meter)


def _verdicts(
    index: Index, model: TaskModel, pairs: Sequence[tuple[str, str]], meter: UsageMeter
) -> tuple[dict[tuple[str, str], NameVerdict], Exception | None]:
    rows = index.working.read(_THINGS, {"keys": sorted({key for pair in pairs for key in pair})})
    things = {row["title_key"]: row for row in rows.iter_rows(named=True)}
    requests = [pairs[start : start + PAIRS_PER_REQUEST] for start in range(0, len(pairs), PAIRS_PER_REQUEST)]

    async def ask(several: Sequence[tuple[str, str]]) -> list[NameVerdict | None]:
        texts = [pair_text(things[one], things[other]) for one, other in several]
        return await verdicts_on(model, texts)

    verdicts, error = dict[tuple[str, str], NameVerdict](), None
    for several, answers in run_concurrently(ask, requests, "requests for verdicts", meter):
        if isinstance(answers, Exception):
            error = error or answers
        else:
            verdicts |= {pair: one for pair, one in zip(several, answers, strict=True) if one}
    return {pair: verdicts[pair] for pair in pairs if pair in verdicts}, error


def _short(text: str) -> str:
    return shorten(text, _CHARACTERS, placeholder=" …")


def pair_text(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Two names with type, description and the sentences that name the first, the second, or both.

    A sentence with a longer name does not name the shorter one that stands in it: that would state what is asked.

    Args:
        one, other: title_key, title, type, description, texts (each with `text` and the `date` of its document).
    """
    keys = sorted((one["title_key"], other["title_key"]), key=len, reverse=True)
    naming = dict[tuple[str, ...], list[str]]()
    dates = {
        " ".join(text["text"][span.start : span.end].split()): text["date"]
        for text in (*one["texts"], *other["texts"])
        for span in sentences(text["text"])
    }
    for line, date in dates.items():
        rest, names = title_key(line), list[str]()
        for key in keys:
            rest, n = re.subn(rf"(?<!\w){re.escape(key)}(?!\w)", " ", rest)
            names += [key] if n else []
        naming.setdefault(tuple(names), []).append(f"- {f'({date}) ' if date else ''}{_short(line)}")
    blocks = list[str]()
    for row in (one, other):
        blocks.append(f"{row['title']} ({row['type']}): {_short(row['description'] or '')}")
        blocks += naming.get((row["title_key"],), [])[:_SENTENCES]
    both = naming.get(tuple(keys), [])[:_SENTENCES]
    return "\n".join([*blocks, *(["Both names:", *both] if both else [])])
