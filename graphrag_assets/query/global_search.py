"""Global search: all reports of one level of the hierarchy, read in batches; the best points become the answer."""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Annotated, Literal

import polars as pl
from pydantic import BeforeValidator, Field, InstanceOf
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import Passage
from graphrag_assets.embedded import rate
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.basic import BasicOptions, basic_context
from graphrag_assets.query.context import Context, Layout, Section, columns, fill, lines_of, packed
from graphrag_assets.query.fetch import level_reports, nearest_reports, report_rows, report_tree
from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.option_types import Count, Flag, Number, Options, PositiveCount, Seed, made_of
from graphrag_assets.query.question import Question
from graphrag_assets.query.question_options import CommonOptions
from graphrag_assets.query.respond import map_part, map_parts, reduce
from graphrag_assets.query.results import Draft, Failure
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import count_tokens


@dataclass(frozen=True, kw_only=True)
class DynamicOptions(Options):
    """How communities are selected.

    Args:
        threshold: minimum rating, 0 to 5, from which a report is read and the communities below it are rated.
        keep_parent: read a report even if one below it is read.
        max_level: communities below this level are not rated.
        use_summary: rate reports by their summaries, which costs less.
    """

    threshold: Number = 1.0
    keep_parent: Flag = False
    max_level: Count = 2
    use_summary: Flag = False


@dataclasses.dataclass
class Descent:
    """The way down the hierarchy: `due` are the communities to rate next, `chosen` those whose reports are read.

    Instead of a community without a report, those below it are rated. If no report of a level is relevant, the whole
    next level is rated: a report may leave out what a report below it says.
    """

    tree: pl.DataFrame
    options: DynamicOptions
    due: list[int] = field(default_factory=list)
    chosen: set[int] = field(default_factory=set)
    ratings: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.tree.select("community", "parent", "level", "children", "report").rows()
        self._parent = {community: parent for community, parent, *_ in rows}
        self._level = {community: level for community, _, level, *_ in rows}
        self._children = {community: children or [] for community, _, _, children, _ in rows}
        self.report = {community: report for community, *_, report in rows if report is not None}
        self.due = self._with_reports(c for c, level in sorted(self._level.items()) if level == 0)

    def rated(self, ratings: dict[int, float]) -> None:
        """Continue with the ratings of all communities that were due."""
        self.ratings |= ratings
        relevant = [c for c in self.due if ratings.get(c, 0.0) >= self.options.threshold]
        for community in relevant:
            self.chosen.add(community)
            if not self.options.keep_parent:
                self.chosen -= set(self._above(community))
        due = self._unrated(child for c in relevant for child in self._children.get(c, []))
        level = min((self._level[c] for c in self.due), default=self.options.max_level)
        while not due and not self.chosen and level < self.options.max_level:
            level += 1
            due = self._unrated(c for c, at in sorted(self._level.items()) if at == level)
        self.due = due

    def _unrated(self, communities: Iterable[int]) -> list[int]:
        return [c for c in self._with_reports(communities) if c not in self.ratings]

    def _with_reports(self, communities: Iterable[int]) -> list[int]:
        """These communities down to the maximum level; instead of one without a report, those below it."""
        found: dict[int, None] = {}
        waiting = list(communities)
        while waiting:
            community = waiting.pop(0)
            if self._level.get(community, self.options.max_level + 1) > self.options.max_level:
                continue
            if community in self.report:
                found[community] = None
            else:
                waiting = [*self._children.get(community, []), *waiting]
        return list(found)

    def _above(self, community: int) -> Iterable[int]:
        parent = self._parent.get(community, -1)
        while parent is not None and parent in self._parent:
            yield parent
            parent = self._parent[parent]


@dataclass(frozen=True, kw_only=True)
class GlobalOptions(CommonOptions):
    """All options of `rag.global_`; those of GraphRAG have its names and defaults unless something else is said.

    Args:
        community_level: 0 is the coarsest.
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
        dynamic: select communities by rating their reports from the top down, instead of a level; or "vector": the
            reports most similar to the question, of all levels, for the price of one embedding.
        nearest_reports: number of reports that "vector" selects.
    """

    community_level: Count = 2
    min_community_rank: Number = 0.0
    seed: Seed = 86
    use_community_summary: Flag = False
    include_community_rank: Flag = True
    include_community_weight: Flag = True
    max_reduce_tokens: PositiveCount = 12_000
    max_map_words: PositiveCount = 500
    max_reduce_words: PositiveCount = 1000
    general_knowledge: Flag = False
    dynamic: Annotated[
        bool | Literal["vector"] | InstanceOf[DynamicOptions],
        BeforeValidator(made_of(DynamicOptions)),
        Field(description="True, False, 'vector' or DynamicOptions(…)"),
    ] = False
    nearest_reports: PositiveCount = 30


async def build_context(ask: Ask[GlobalOptions]) -> Context:
    """The reports in batches, each within the tokens that the history leaves."""
    options = ask.options_within_budget
    if not options.dynamic:
        found = await ask.in_thread(global_context, ask.reader, ask.question, options, ask.scope)
    else:
        reports = await (_nearest_reports(ask) if options.dynamic == "vector" else _selected_reports(ask))
        found = await ask.in_thread(batched, ask.question, reports, options)
    return ask.add_context(found)


async def answer(ask: Ask[GlobalOptions]) -> Draft:
    """An answer about the whole: every report of a level is read, and the best points become the answer."""
    context = await build_context(ask)
    batches = [section for section in context.sections if section.passages]
    points = await map_parts(ask, batches, "the reports", ranked=False)
    sections = context.sections
    direct = ask.models.answerer.min_direct_score
    of_any_rank = ask.options.min_community_rank <= 0
    if direct is not None and (batches or of_any_rank) and not any(point.score >= direct for point in points):
        # Reports quote little of the text, and entities without relationships have none: if no report answers, the
        # text itself is read.
        text = await _nearest_passages(ask)
        points += (await map_part(ask, "map", ask.text, text.evidence)).points
        sections = (*sections, *text.sections)
    return await reduce(ask, points, ask.options.max_reduce_tokens, sections)


async def _nearest_passages(ask: Ask[GlobalOptions]) -> Context:
    """The passages nearest to the question, within the tokens that the history leaves."""
    await ask.embed(ask.question)
    options = BasicOptions(k=_PASSAGES, max_context_tokens=ask.tokens_left)
    return ask.add_context(await ask.in_thread(basic_context, ask.reader, ask.question, options, ask.scope))


async def _selected_reports(ask: Ask[GlobalOptions]) -> pl.DataFrame:
    """The reports that dynamic selection finds relevant, with the columns of `level_reports`."""
    dynamic = ask.options.dynamic if isinstance(ask.options.dynamic, DynamicOptions) else DynamicOptions()
    tree = await ask.in_thread(report_tree, ask.reader, ask.scope)
    descent, small = Descent(tree, dynamic), set(tree.filter(pl.col("size") <= _SMALL)["community"])
    while descent.due:
        rows = await ask.in_thread(report_rows, ask.reader, [descent.report[c] for c in descent.due])
        texts = dict(zip(descent.due, rows["summary" if dynamic.use_summary else "full_content"], strict=True))
        few_entities = {c: text or "" for c, text in texts.items() if c in small}
        ratings = await ask.in_thread(lambda few: {c: rate(ask.text, t) for c, t in few.items()}, few_entities)
        others = {c: text or "" for c, text in texts.items() if c not in small}
        ratings |= await _ratings(ask, others, dynamic, all_may_fail=bool(descent.ratings or ratings))
        descent.rated(ratings)
    ask.trace.notes.append(f"{len(descent.ratings)} communities rated, {len(descent.chosen)} chosen")
    rows = await ask.in_thread(report_rows, ask.reader, [descent.report[c] for c in sorted(descent.chosen)])
    return _with_weights(rows, tree).with_columns(
        rating=pl.col("community").replace_strict(descent.ratings, default=None, return_dtype=pl.Float64)
    )


async def _nearest_reports(ask: Ask[GlobalOptions]) -> pl.DataFrame:
    """The reports most similar to the question, with the columns of `level_reports`."""
    await ask.embed(ask.question)
    limit = ask.options.nearest_reports
    nearest = await ask.in_thread(nearest_reports, ask.reader, ask.question, limit, ask.scope)
    tree = await ask.in_thread(report_tree, ask.reader, ask.scope)
    return _with_weights(await ask.in_thread(report_rows, ask.reader, nearest), tree)


def _with_weights(reports: pl.DataFrame, tree: pl.DataFrame) -> pl.DataFrame:
    """Reports by the share of the corpus that they represent; `tree`: as `report_tree` returns it."""
    return (
        reports.rename({"full_content": "content"})
        .join(tree.select("community", "text_units"), on="community", how="left")
        .with_columns(
            occurrence_weight=(pl.col("text_units") / pl.max_horizontal(pl.col("text_units").max(), 1)).round(4)
        )
        .sort("text_units", "rank", "human_readable_id", descending=[True, True, False], nulls_last=True)
    )


async def _ratings(
    ask: Ask[GlobalOptions], reports: dict[int, str], options: DynamicOptions, all_may_fail: bool
) -> dict[int, float]:
    """The ratings by the model, by community; several reports share a request.

    A report whose rating failed is read: it may be relevant.
    """
    sizes = await ask.in_thread(count_tokens, list(reports.values()))
    least = _RATED_TOKENS // _RATED_TOGETHER
    parts = packed([max(size, least) for size in sizes], _RATED_TOKENS) if reports else []
    groups = [[list(reports)[place] for place in part] for part in parts]
    calls = [(f"the ratings of {len(group)} communities", _rated(ask, [reports[c] for c in group])) for group in groups]
    ratings = dict.fromkeys(reports, options.threshold)
    for group, found in zip(groups, await ask.gather("rating", calls, all_may_fail), strict=True):
        for community, rating in zip(group, [] if isinstance(found, Exception) else found, strict=False):
            if rating is None:
                ask.add_error(Failure("rating", f"the rating of community {community}", "The model gave none."))
            else:
                ratings[community] = rating
    return ratings


async def _rated(ask: Ask[GlobalOptions], reports: Sequence[str]) -> list[float | None]:
    ratings, usage = await ask.models.rater.arate(ask.text, reports)
    ask.trace.add("rating", usage)
    return ratings


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
    """The context of a global search over a level: one section Reports per batch."""
    return batched(question, level_reports(reader, options.community_level, scope), options)


def batched(question: Question, reports: pl.DataFrame, options: GlobalOptions) -> Context:
    """The context of these reports, without those below the minimum rank."""
    reports = reports.filter(pl.col("rank").fill_null(0) >= options.min_community_rank)
    if options.use_community_summary:
        reports = reports.with_columns(content=pl.coalesce("summary", "content"))
        if "summary_tokens" in reports.columns:
            reports = reports.with_columns(content_tokens="summary_tokens")
    left_out = [] if options.include_community_weight else ["occurrence weight"]
    left_out += [] if options.include_community_rank else ["rank"]
    layout = GLOBAL_REPORTS.without(*left_out)
    sections = report_batches(reports, options.max_context_tokens, options.seed, layout)
    return Context("global", question.text, tuple(sections))


def report_batches(reports: pl.DataFrame, max_tokens: int, seed: int, layout: Layout = GLOBAL_REPORTS) -> list[Section]:
    """The reports in shuffled batches of at most `max_tokens`; inside a batch by weight, then rank.

    A report that does not fit into a batch is represented by its summary. Reports whose summaries do not fit either
    are in a last section without text; if this applies to all of them, the first one is cut at a sentence.
    """
    room = max_tokens - _HEADING_TOKENS
    reports, tokens = _fitted(reports, layout, room)
    order = sorted(range(reports.height), key=reports["human_readable_id"].to_list().__getitem__)
    random.Random(seed).shuffle(order)
    fitting = [place for place in order if tokens[place] <= room]
    parts = packed([tokens[place] for place in fitting], room) if fitting else []
    # The frame is sorted by weight and rank, so sorted places are too.
    found = list(_sections(reports, layout, [sorted(fitting[i] for i in part) for part in parts], tokens))
    too_long = sorted(set(order).difference(fitting))
    if too_long or not parts:  # without any report, the frame has its columns and no rows
        found.append(fill(layout, reports[too_long], 0 if parts else max_tokens))
    return found


def _fitted(reports: pl.DataFrame, layout: Layout, room: int) -> tuple[pl.DataFrame, list[int]]:
    """The reports, those longer than `room` tokens by their summaries, and the tokens of their lines.

    The token counts of the publication are an upper bound; without them, lines are counted.
    """
    if {"content_tokens", "summary_tokens"} <= set(reports.columns):
        around = reports["title"].str.len_chars().fill_null(0) + _CELLS_TOKENS  # a token has at least one character
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
        text = layout.heading + "".join(lines[start:end])
        yield Section(layout.name, ordered.slice(start, len(batch)), tuple(passages[start:end]), text, used)
        start = end
