"""Global search: all reports of one level of the hierarchy, in batches to be read one by one."""

import random
import time
from dataclasses import dataclass

import polars as pl

from graphrag_assets.query.context import Context, Layout, Section, fill, lines_of
from graphrag_assets.query.options import check_number, check_whole
from graphrag_assets.query.retrieval import Question
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


def level_reports(reader: Reader, level: int) -> pl.DataFrame:
    """The reports that together speak of every entity once: of its community at `level`, or of its deepest.

    Membership is level-complete, so the roll-up is a plain filter. `occurrence_weight` is the number of distinct
    text units that name a member, as a part of the largest such number.

    Returns:
        human_readable_id, id, community, level, title, summary, content, findings, rank, text_units,
        occurrence_weight; by weight, then rank.
    """
    return reader.rows(
        """
        WITH members AS (
            SELECT entity, community FROM entity_communities
            WHERE level = (SELECT least($level, max(level)) FROM entity_communities)
        ), weights AS (
            SELECT m.community, count(DISTINCT t.text_unit) AS text_units
            FROM members m LEFT JOIN entity_text_units t USING (entity) GROUP BY m.community
        )
        SELECT r.human_readable_id, r.id, r.community, r.level, r.title, r.summary, r.full_content AS content,
               r.findings, r.rank, w.text_units,
               round(w.text_units / greatest(max(w.text_units) OVER (), 1), 4) AS occurrence_weight
        FROM community_reports r JOIN weights w USING (community)
        ORDER BY w.text_units DESC, r.rank DESC, r.human_readable_id
        """,
        {"level": level},
    )


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
