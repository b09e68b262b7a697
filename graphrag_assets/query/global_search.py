"""Global search: all reports of one level of the hierarchy, in batches to be read one by one."""

import random
import time
from dataclasses import dataclass

import polars as pl

from graphrag_assets.query.context import Context, Layout, Section, fill, lines_of
from graphrag_assets.query.options import check_number, check_whole
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.rows import level_reports
from graphrag_assets.store.published import Reader
from graphrag_assets.text import count_tokens

_HEADING_TOKENS = 32

GLOBAL_REPORTS = Layout(
    "Reports",
    {
        "id": "human_readable_id",
        "title": "title",
        "occurrence weight": "occurrence_weight",
        "content": "content",
        "rank": "rank",
    },
    title="title",
    text="content",
)


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """Which reports are read, and how; names and defaults are GraphRAG's.

    `community_level`: 0 is the coarsest. `max_context_tokens` limits a batch, `seed` its composition.
    """

    community_level: int = 2
    min_community_rank: float = 0.0
    max_context_tokens: int = 12_000
    seed: int = 86

    def __post_init__(self) -> None:
        check_whole(self, "community_level")
        check_number(self, "min_community_rank")
        check_whole(self, "max_context_tokens", least=1)
        check_whole(self, "seed", least=None)


_DEFAULTS = GlobalOptions()


def global_context(reader: Reader, question: Question, options: GlobalOptions = _DEFAULTS) -> Context:
    """The context of a global search: one section Reports per batch."""
    started = time.perf_counter()
    reports = level_reports(reader, options.community_level)
    reports = reports.filter(pl.col("rank") >= options.min_community_rank)
    batches = report_batches(reports, options.max_context_tokens, options.seed)
    return Context("global", question.text, tuple(batches), time.perf_counter() - started)


def report_batches(reports: pl.DataFrame, max_tokens: int, seed: int) -> list[Section]:
    """The reports in shuffled batches of at most `max_tokens`; inside a batch by weight, then rank.

    A report that is too long even for a batch of its own is represented by its summary.
    """
    room = max_tokens - _HEADING_TOKENS
    full = pl.Series(count_tokens(lines_of(GLOBAL_REPORTS, reports)), dtype=pl.Int64)
    reports = reports.with_columns(content=pl.when(full <= room).then("content").otherwise("summary"))
    tokens = count_tokens(lines_of(GLOBAL_REPORTS, reports))
    order = sorted(range(reports.height), key=reports["human_readable_id"].to_list().__getitem__)
    random.Random(seed).shuffle(order)
    batches: list[list[int]] = []
    left = 0
    for place in order:
        if tokens[place] > left:
            batches.append([])
            left = room
        batches[-1].append(place)
        left -= tokens[place]
    # The frame is sorted by weight and rank, so sorted places are too.
    return [fill(GLOBAL_REPORTS, reports[sorted(batch)], max_tokens) for batch in batches]
