"""Global search: all reports of one level of the hierarchy, in batches to be read one by one."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from graphrag_assets.answering import Passage
from graphrag_assets.errors import QueryError
from graphrag_assets.query.context import Context, Layout, Section, lines_of
from graphrag_assets.query.dynamic import DynamicOptions
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.options import check_flags, check_number, check_whole
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.rows import level_reports
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text import count_tokens

_HEADING_TOKENS = 32
_CELLS_TOKENS = 24  # of a line: id, weight, rank, the bars between the cells, the end

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

    Args:
        community_level: 0 is the coarsest.
        max_context_tokens: of a batch, the question to each of which is a call; `seed` shuffles the batches.
        use_community_summary: read the reports' summaries, not their full content.
        include_community_rank, include_community_weight: show the model these columns.
        max_reduce_tokens: of the points that the answer is put together from, the best first.
        max_map_words, max_reduce_words: what a model is told about the length of its answers.
        general_knowledge: the answer may add what the data does not tell, marked [LLM: verify].
        dynamic: choose the communities by rating their reports from the top down, in place of a level.
    """

    community_level: int = 2
    min_community_rank: float = 0.0
    max_context_tokens: int = 12_000
    seed: int = 86
    use_community_summary: bool = False
    include_community_rank: bool = True
    include_community_weight: bool = True
    max_reduce_tokens: int = 12_000
    max_map_words: int = 500
    max_reduce_words: int = 1000
    general_knowledge: bool = False
    dynamic: bool | DynamicOptions = False

    def __post_init__(self) -> None:
        check_whole(self, "community_level")
        check_number(self, "min_community_rank")
        check_whole(self, "max_context_tokens", "max_reduce_tokens", "max_map_words", "max_reduce_words", least=1)
        check_whole(self, "seed", least=None)
        check_flags(
            self,
            "use_community_summary",
            "include_community_rank",
            "include_community_weight",
            "general_knowledge",
        )
        if not isinstance(self.dynamic, bool | DynamicOptions):
            raise QueryError(f"The search option dynamic is {self.dynamic!r}; it must be True, or DynamicOptions(…).")


_DEFAULTS = GlobalOptions()


def global_context(
    reader: Reader, question: Question, options: GlobalOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """The context of a global search over a level: one section Reports per batch."""
    started = time.perf_counter()
    return batched(question, level_reports(reader, options.community_level, scope), options, started)


def batched(question: Question, reports: pl.DataFrame, options: GlobalOptions, started: float) -> Context:
    """The context made of these reports, those of the least rank at least."""
    reports = reports.filter(pl.col("rank").fill_null(0) >= options.min_community_rank)
    if options.use_community_summary:
        reports = reports.with_columns(content=pl.coalesce("summary", "content"))
        if "summary_tokens" in reports.columns:
            reports = reports.with_columns(content_tokens="summary_tokens")
    left_out = [] if options.include_community_weight else ["occurrence weight"]
    left_out += [] if options.include_community_rank else ["rank"]
    layout = GLOBAL_REPORTS.without(*left_out)
    sections = report_batches(reports, options.max_context_tokens, options.seed, layout)
    return Context("global", question.text, tuple(sections), time.perf_counter() - started)


def report_batches(reports: pl.DataFrame, max_tokens: int, seed: int, layout: Layout = GLOBAL_REPORTS) -> list[Section]:
    """The reports in shuffled batches of at most `max_tokens`; inside a batch by weight, then rank.

    A report that is too long even for a batch of its own is represented by its summary; one whose summary is too
    long is in a last section without text.
    """
    room = max_tokens - _HEADING_TOKENS
    reports, tokens = _that_fit(reports, layout, room)
    order = sorted(range(reports.height), key=reports["human_readable_id"].to_list().__getitem__)
    random.Random(seed).shuffle(order)
    batches: list[list[int]] = []
    too_long: list[int] = []
    left = 0
    for place in order:
        if tokens[place] > room:
            too_long.append(place)
            continue
        if tokens[place] > left:
            batches.append([])
            left = room
        batches[-1].append(place)
        left -= tokens[place]
    # The frame is sorted by weight and rank, so sorted places are too.
    groups = [sorted(batch) for batch in batches]
    found = list(_sections(reports, layout, groups, tokens))
    if too_long:
        unread = reports[sorted(too_long)].with_columns(in_context=pl.lit(False))
        found.append(Section(layout.name, unread, (), "", 0))
    return found


def _that_fit(reports: pl.DataFrame, layout: Layout, room: int) -> tuple[pl.DataFrame, list[int]]:
    """The reports, those longer than `room` tokens by their summaries, and the tokens of their lines.

    Tokens counted when the index was published serve as an upper bound; without them lines are counted.
    """
    if {"content_tokens", "summary_tokens"} <= set(reports.columns):
        around = reports["title"].str.len_chars().fill_null(0) + _CELLS_TOKENS  # a token is a character at least
        full, short = reports["content_tokens"] + around, reports["summary_tokens"] + around
        shortened = full > room
        tokens = pl.select(pl.when(shortened).then(short).otherwise(full)).to_series().to_list()
        return reports.with_columns(content=pl.when(shortened).then("summary").otherwise("content")), tokens
    tokens = count_tokens(lines_of(layout, reports))
    shortened = pl.Series([count > room for count in tokens], dtype=pl.Boolean)
    if shortened.any():
        reports = reports.with_columns(content=pl.when(shortened).then("summary").otherwise("content"))
        tokens = count_tokens(lines_of(layout, reports))
    return reports, tokens


def _sections(reports: pl.DataFrame, layout: Layout, batches: list[list[int]], tokens: list[int]) -> Iterator[Section]:
    """A section for each batch of places in `reports`."""
    heading = f"-----{layout.name}-----\n{'|'.join(layout.shown)}\n"
    places = [place for batch in batches for place in batch]
    ordered = reports[places].with_columns(in_context=pl.lit(True))
    lines = lines_of(layout, ordered)
    weights = ordered["occurrence_weight"] if "occurrence_weight" in ordered.columns else [1.0] * ordered.height
    columns = (ordered["human_readable_id"], ordered["title"], ordered[layout.text], weights)
    passages = [
        Passage(layout.name, number, title or "", text or "", weight)
        for number, title, text, weight in zip(*columns, strict=True)
    ]
    start = 0
    for batch in batches:
        end = start + len(batch)
        used = _HEADING_TOKENS + sum(tokens[place] for place in batch)
        text = heading + "".join(lines[start:end])
        yield Section(layout.name, ordered.slice(start, len(batch)), tuple(passages[start:end]), text, used)
        start = end
