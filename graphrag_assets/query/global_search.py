"""Global search: all reports of one level of the hierarchy, read in batches; the best points become the answer."""

import random
from collections.abc import Sequence

import polars as pl
from pydantic.dataclasses import dataclass

from graphrag_assets.embedded import rate
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.basic import BasicOptions, basic_context
from graphrag_assets.query.context import Context, Layout, columns, fill, packed
from graphrag_assets.query.fetch import level_reports, report_rows, report_tree
from graphrag_assets.query.options import CommonOptions, Count, Failure, Number, PositiveCount
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import map_part, map_parts, reduce
from graphrag_assets.query.results import Answer
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import count_tokens


class Descent:
    """The way down the hierarchy: `due` are the communities to rate next, `chosen` those whose reports are read.

    Instead of a community without a report, those below it are rated. If no report of a level is relevant, the whole
    next level is rated: a report may leave out what a report below it says.
    """

    def __init__(self, tree: pl.DataFrame, max_level: int) -> None:
        """`tree`: as `report_tree` returns it; communities below `max_level` are not rated."""
        self.max_level = max_level
        self.chosen, self.ratings = set[int](), dict[int, float]()
        self._parent = dict(tree.select("community", "parent").iter_rows())
        self._level = dict(tree.select("community", "level").iter_rows())
        self._children = dict(tree.select("community", "children").iter_rows())
        self.report: dict[int, int] = dict(tree.drop_nulls("report").select("community", "report").iter_rows())
        self.due = self._with_reports([community for community, level in self._level.items() if level == 0])

    def add(self, ratings: dict[int, float]) -> None:
        """Continue with the ratings of all communities that were due."""
        self.ratings |= ratings
        relevant = [c for c in self.due if ratings.get(c, 0.0) >= _RELEVANT]
        for community in relevant:
            self.chosen.add(community)
            while (community := self._parent.get(community, -1)) in self._parent:
                self.chosen.discard(community)
        level = min((self._level[c] for c in self.due), default=self.max_level)
        self.due = self._with_reports([child for c in relevant for child in self._children.get(c) or []])
        while not self.due and not self.chosen and level < self.max_level:
            level += 1
            self.due = self._with_reports([c for c, of_community in self._level.items() if of_community == level])

    def _with_reports(self, communities: list[int]) -> list[int]:
        """Return those not rated of these down to the maximum level; instead of one without a report, those below."""
        with_report: dict[int, None] = {}
        while communities:
            community, *communities = communities
            if self._level.get(community, self.max_level + 1) > self.max_level:
                continue
            if community not in self.report:
                communities = [*(self._children.get(community) or []), *communities]
            elif community not in self.ratings:
                with_report[community] = None
        return list(with_report)


@dataclass(frozen=True, kw_only=True)
class GlobalOptions(CommonOptions):
    """All options of `rag.global_`; those of GraphRAG have its names and defaults unless something else is said.

    Args:
        community_level: 0 is the coarsest; with `dynamic`, communities below it are not read.
        min_community_rank: minimum rank of the reports that are read.
        seed: of the shuffle of reports into batches.
        use_community_summary: read the reports' summaries, not their full content.
        include_community_rank, include_community_weight: show the model these columns.
        max_reduce_tokens: maximum number of tokens of the points that the answer is written from, the best first
            (GraphRAG: data_max_tokens).
        max_map_words, max_reduce_words: length of the answers that the model is asked for (GraphRAG: map_max_length,
            1000, and reduce_max_length, 2000).
        general_knowledge: the answer may add what the data does not say, marked [LLM: verify] (GraphRAG:
            allow_general_knowledge).
        dynamic: select communities by rating their reports from the top down, instead of a level.
    """

    community_level: Count = 2
    min_community_rank: Number = 0.0
    seed: int = 86
    use_community_summary: bool = False
    include_community_rank: bool = True
    include_community_weight: bool = True
    max_reduce_tokens: PositiveCount = 12_000
    max_map_words: PositiveCount = 500
    max_reduce_words: PositiveCount = 1000
    general_knowledge: bool = False
    dynamic: bool = False


async def build_context(ask: Ask[GlobalOptions]) -> Context:
    """Return the reports in batches, each within the token limit."""
    options = ask.options
    if not options.dynamic:
        context = await ask.in_thread(global_context, ask.reader, ask.question, options, ask.scope)
    else:
        context = await ask.in_thread(batched, ask.question, await _selected_reports(ask), options)
    return ask.add_context(context)


async def answer(ask: Ask[GlobalOptions]) -> Answer:
    """Answer about the whole: every report of a level is read, and the best points become the answer."""
    context = await build_context(ask)
    batches = [section for section in context.sections if section.passages]
    points = await map_parts(ask, batches, "the reports", ranked=False)
    sections = context.sections
    direct = ask.models.answerer.min_direct_score
    of_any_rank = ask.options.min_community_rank <= 0
    if direct is not None and (batches or of_any_rank) and not any(point.score >= direct for point in points):
        # Reports quote little of the text, and entities without relationships have none: if no report answers, the
        # text itself is read.
        await ask.embed(ask.question)
        options = BasicOptions(k=_PASSAGES, max_context_tokens=ask.options.max_context_tokens)
        text = await ask.in_thread(basic_context, ask.reader, ask.question, options, ask.scope)
        points += (await map_part(ask, "map", ask.text, ask.add_context(text).evidence)).points
        sections = (*sections, *text.sections)
    return await reduce(ask, points, ask.options.max_reduce_tokens, sections)


async def _selected_reports(ask: Ask[GlobalOptions]) -> pl.DataFrame:
    """Return the reports that dynamic selection finds relevant, with the columns of `level_reports`."""
    tree = await ask.in_thread(report_tree, ask.reader, ask.scope)
    descent, small = Descent(tree, ask.options.community_level), set(tree.filter(pl.col("size") <= _SMALL)["community"])
    while descent.due:
        rows = await ask.in_thread(report_rows, ask.reader, [descent.report[c] for c in descent.due])
        texts = rows["summary" if ask.options.use_community_summary else "full_content"].fill_null("")
        by_rule, by_model = dict[int, str](), dict[int, str]()
        for community, text in zip(descent.due, texts, strict=True):
            (by_rule if community in small else by_model)[community] = text
        ratings = await ask.in_thread(lambda few: {c: rate(ask.text, t) for c, t in few.items()}, by_rule)
        ratings |= await _ratings(ask, by_model, all_may_fail=bool(descent.ratings or ratings))
        descent.add(ratings)
    ask.trace.notes.append(f"{len(descent.ratings)} communities rated, {len(descent.chosen)} chosen")
    rows = await ask.in_thread(report_rows, ask.reader, [descent.report[c] for c in sorted(descent.chosen)])
    rating = pl.col("community").replace_strict(descent.ratings, default=None, return_dtype=pl.Float64)
    share = (pl.col("text_units") / pl.max_horizontal(pl.col("text_units").max(), 1)).round(4)
    weighted = rows.rename({"full_content": "content"}).join(tree.select("community", "text_units"), on="community")
    return weighted.with_columns(rating=rating, occurrence_weight=share).sort(
        "text_units", "rank", "human_readable_id", descending=[True, True, False], nulls_last=True
    )


async def _ratings(ask: Ask[GlobalOptions], reports: dict[int, str], all_may_fail: bool) -> dict[int, float]:
    """Return the ratings by the model, by community; several reports share a request.

    A report whose rating failed is read: it may be relevant.
    """

    async def rated(group: Sequence[int]) -> list[float | None]:
        ratings, usage = await ask.models.rater.arate(ask.text, [reports[community] for community in group])
        ask.trace.add("rating", usage)
        return ratings

    sizes = await ask.in_thread(count_tokens, list(reports.values()))
    least = _RATED_TOKENS // _RATED_TOGETHER
    parts = packed([max(size, least) for size in sizes], _RATED_TOKENS) if reports else []
    groups = [[list(reports)[place] for place in part] for part in parts]
    calls = [(f"the ratings of {len(group)} communities", rated(group)) for group in groups]
    ratings = dict.fromkeys(reports, _RELEVANT)
    for group, answers in zip(groups, await ask.gather("rating", calls, all_may_fail), strict=True):
        for community, rating in zip(group, [] if isinstance(answers, Exception) else answers, strict=False):
            if rating is None:
                ask.add_error(Failure("rating", f"the rating of community {community}", "The model gave none."))
            else:
                ratings[community] = rating
    return ratings


_RELEVANT = 1.0
"""Minimum rating, 0 to 5, from which a report is read and the communities below it are rated."""
_RATED_TOKENS, _RATED_TOGETHER = 8_000, 10
"""Maximum tokens and number of the reports that are rated in one request."""
_SMALL = 2
"""Entities of communities whose reports, which no model wrote, are rated without a model: there are many of them."""
_PASSAGES = 30  # that are read where no report answers
_HEADING_TOKENS = 32
_CELLS_TOKENS = 24  # of a line: id, weight, rank, the bars between the cells, the end

GLOBAL_REPORTS = Layout(
    "Reports",
    columns("id=human_readable_id title") | {"occurrence weight": "occurrence_weight"} | columns("content rank"),
    title="title",
    text="content",
)
_DEFAULTS = GlobalOptions()


def global_context(
    reader: Reader, question: Question, options: GlobalOptions = _DEFAULTS, scope: Scope = EVERYTHING
) -> Context:
    """Return the context of a global search over a level: one section Reports per batch."""
    return batched(question, level_reports(reader, options.community_level, scope), options)


def batched(question: Question, reports: pl.DataFrame, options: GlobalOptions) -> Context:
    """Return the context of these reports, without those below the minimum rank.

    They are shuffled into batches; inside a batch, they are in their order. A report that does not fit into a batch is
    represented by its summary, or what of it fits.
    """
    reports = reports.filter(pl.col("rank").fill_null(0) >= options.min_community_rank)
    layout = GLOBAL_REPORTS.without(
        *([] if options.include_community_weight else ["occurrence weight"]),
        *([] if options.include_community_rank else ["rank"]),
    )
    room = options.max_context_tokens - _HEADING_TOKENS

    def tokens(text: str) -> pl.Expr:  # an upper bound: a token has at least one byte
        return pl.coalesce(f"{text}_tokens", pl.col(text).str.len_bytes().cast(pl.Int64), 0) + _CELLS_TOKENS

    title = pl.col("title").str.len_chars().fill_null(0)
    short = pl.lit(options.use_community_summary) | (tokens("content") + title > room)
    reports = reports.with_columns(
        content=pl.when(short).then(pl.coalesce("summary", "content")).otherwise("content"),
        line_tokens=pl.when(short).then(tokens("summary")).otherwise(tokens("content")) + title,
    )
    order = sorted(range(reports.height), key=reports["human_readable_id"].to_list().__getitem__)
    random.Random(options.seed).shuffle(order)
    counts = reports["line_tokens"].to_list()
    sections = [
        fill(layout, reports[sorted(order[place] for place in part)], options.max_context_tokens)
        for part in packed([counts[place] for place in order], room)
    ]
    return Context("global", question.text, tuple(sections))
